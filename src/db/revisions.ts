import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import type { Database } from './schema.ts';

/** The newest state of some scopes: what an answer reads at, and names in `$metadata`. */
export interface Head {
  /** Greatest revision that touched one of the scopes; "0" when none did. */
  readonly revision: string;
  /** When it was committed, RFC 3339 in UTC. */
  readonly committedAt: string;
  /** Greatest revision that touched the scope `reference`. */
  readonly reference: string;
  readonly epoch: string;
}

/** A revision as it is on the wire, `<epoch>.<number>`. */
export const revisionText = (head: Head): string => `${head.epoch}.${head.revision}`;

/**
 * The newest revision of a set of scopes (markets by slug, `fx:<source>`) and of the reference
 * data. One statement, so all of it is one state of the database.
 * @param until the last revision that counts, or null for all there are
 */
export async function headOf(
  db: Kysely<Database>,
  scopes: readonly string[],
  until: string | null = null,
): Promise<Head> {
  const newest = (names: readonly string[]) => sql<string>`
    (select coalesce(max(newest.revision), 0) from unnest(${names}::text[]) as s (scope)
      cross join lateral (select r.revision from revision_scope r
        where r.scope = s.scope and r.revision <= bounds.until
        order by r.revision desc limit 1) as newest)`;
  const { rows } = await sql<Record<keyof Head, string>>`
    select service.epoch as "epoch", heads.revision as "revision", heads.reference as "reference",
      coalesce(revision.committed_at, 'epoch'::timestamptz) as "committedAt"
    from service
      cross join (select coalesce(${until}::bigint, 9223372036854775807) as until) as bounds
      cross join lateral (select ${newest([...scopes, 'reference'])} as revision,
        ${newest(['reference'])} as reference) as heads
      left join revision on revision.number = heads.revision`.execute(db);
  const [head] = rows;
  if (!head) throw new Error('the table service has no row');
  return { ...head, committedAt: instantOf(head.committedAt) };
}

/** The newest revision of all and the epoch, in one statement. */
export async function newestRevision(
  db: Kysely<Database>,
): Promise<{ readonly epoch: string; readonly revision: string }> {
  const { rows } = await sql<{ epoch: string; revision: string }>`
    select epoch, (select coalesce(max(number), 0) from revision) as revision from service
  `.execute(db);
  const [found] = rows;
  if (!found) throw new Error('the table service has no row');
  return found;
}

/**
 * The last revision committed at or before a moment (RFC 3339), "0" before the first; null when
 * the moment lies in the future. What it returns for a moment it returns for ever.
 */
export async function revisionAsOf(db: Kysely<Database>, instant: string): Promise<string | null> {
  const { rows } = await sql<{ number: string | null }>`
    select revision_as_of(${instant}::timestamptz) as number`.execute(db);
  return rows[0]?.number ?? null;
}
