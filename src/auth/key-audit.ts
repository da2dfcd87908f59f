import type { Kysely } from 'kysely';
import { instantOf } from '../db/instant.ts';
import type { Database } from '../db/schema.ts';
import { checkId, showKey } from './key-info.ts';
import { predecessors, withPublicIds } from './key-succession.ts';

/** One thing that was done to a key. */
export interface KeyEvent {
  /** RFC 3339 in UTC. */
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly id: string;
  /** What of the key was before and after; never anything of its secret. */
  readonly before: unknown;
  readonly after: unknown;
  readonly reason: string | null;
  /** Of a key that was made in place of another: that one. */
  readonly replaces: string | null;
}

/**
 * What was done to keys, newest first: to one, or to all. The table cannot be changed.
 * @throws KeyError when there neither is nor was a key with the id
 */
export async function readAudit(
  db: Kysely<Database>,
  { id, limit }: { readonly id?: string | undefined; readonly limit: number },
): Promise<KeyEvent[]> {
  if (id !== undefined) checkId(id);
  const rows = await db
    .selectFrom('key_audit')
    .leftJoin(predecessors(db).as('succession'), (join) =>
      join
        .onRef('succession.heir', '=', 'key_audit.public_id')
        .on('key_audit.action', '=', 'created'),
    )
    .select(['at', 'actor', 'action', 'public_id', 'reason', 'succession.replaced'])
    .select([withPublicIds('before').as('before'), withPublicIds('after').as('after')])
    .$if(id !== undefined, (query) => query.where('public_id', '=', id ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  // The audit of a key that was removed is kept; one that was never noted may still be there.
  if (id !== undefined && rows.length === 0) await showKey(db, id);
  return rows.map(({ at, actor, action, public_id, before, after, reason, replaced }) => ({
    at: instantOf(at),
    actor,
    action,
    id: public_id,
    before,
    after,
    reason,
    replaces: replaced,
  }));
}
