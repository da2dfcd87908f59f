import type { Kysely } from 'kysely';
import { instantOf } from '../db/instant.ts';
import type { Database } from '../db/schema.ts';
import { checkId } from './key-info.ts';

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
}

/** What was done to keys, newest first: to one, or to all. The table cannot be changed. */
export async function readAudit(
  db: Kysely<Database>,
  { id, limit }: { readonly id?: string | undefined; readonly limit: number },
): Promise<KeyEvent[]> {
  if (id !== undefined) checkId(id);
  const rows = await db
    .selectFrom('key_audit')
    .selectAll()
    .$if(id !== undefined, (query) => query.where('public_id', '=', id ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ at, actor, action, public_id, before, after, reason }) => ({
    at: instantOf(at),
    actor,
    action,
    id: public_id,
    before,
    after,
    reason,
  }));
}
