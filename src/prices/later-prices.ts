import { type Kysely, sql } from 'kysely';
import { instantOf } from '../db/instant.ts';
import { numberIn, requireCommit } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';

/** A price that was added after a revision. */
export interface LaterPrice {
  readonly code: string;
  /** The revision that added it, as on the wire, and when it was committed (RFC 3339). */
  readonly revision: string;
  readonly committedAt: string;
}

/** Finds prices of a market that were added after a revision, by the keys of their codes. */
export async function laterPrices(
  db: Kysely<Database>,
  slug: string,
  revision: string,
  codeKeys: readonly string[],
): Promise<ReadonlyMap<string, LaterPrice>> {
  const { rows } = await sql<{ key: string } & LaterPrice>`
    select p.code_key as key, p.code, revision_text(added.number) as revision,
      added.committed_at as "committedAt"
    from price as p
      join revision as added on added.number = least(p.revision,
        (select min(h.revision) from price_history as h where h.id = p.id))
    where p.code_key = any(${[...codeKeys]}::text[]) and added.number > ${numberIn(revision)}
      and p.market_id = (select id from market where slug = ${slug})
      and ${requireCommit(revision)}`.execute(db);
  return new Map(
    rows.map(({ key, ...price }) => [key, { ...price, committedAt: instantOf(price.committedAt) }]),
  );
}
