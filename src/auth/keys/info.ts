import { type Kysely, type RawBuilder, sql } from 'kysely';
import { instantOf, instantOrNull } from '../../db/instant.ts';
import type { Database } from '../../db/schema.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { isPublicId } from './format.ts';
import { limitsOf, scopesOfRow } from './verify.ts';

/** The key that each key took the place of, by their public ids. */
const predecessors = (db: Kysely<Database>) =>
  db
    .selectFrom('api_key as old')
    .innerJoin('api_key as heir', 'heir.id', 'old.replaced_by')
    // By hand a key can be given for the heir of several: the newest of them is told.
    .distinctOn('heir.id')
    .select(['heir.public_id as heir', 'old.public_id as replaced'])
    .orderBy('heir.id')
    .orderBy('old.id', 'desc');

/**
 * The audited state of a key before or after a change. The row number of its replacement, which
 * nobody outside the database knows, becomes the public id; null if that row was removed since.
 */
const withPublicIds = (side: 'before' | 'after'): RawBuilder<unknown> => {
  const kept = sql.ref(`key_audit.${side}`);
  return sql`case when ${kept} ->> 'replaced_by' is null then ${kept}
    else jsonb_set(${kept}, '{replaced_by}', coalesce((select to_jsonb(heir.public_id)
      from api_key heir where heir.id = (${kept} ->> 'replaced_by')::integer), 'null')) end`;
};

const TEXT_LENGTH_MAX = 200;

/** A request about keys that cannot be met. The message is one line for a terminal. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
  readonly exitCode = 2;
}

/** All that may be shown of a key. Instants are RFC 3339 in UTC. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  readonly scopes: readonly string[];
  readonly status: 'active' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly revokedReason: string | null;
  /** To the minute; null when it was never used. */
  readonly lastUsedAt: string | null;
  /** Its own limits; null for those of the service. */
  readonly limits: KeyLimits | null;
  /** The key that took its place. */
  readonly replacedBy: string | null;
  /** The key that it took the place of. */
  readonly replaces: string | null;
}

/** @throws KeyError for a text that is empty, too long or has control characters */
export function checkText(what: string, text: string): void {
  if (text.trim() === '') throw new KeyError(`the ${what} must not be empty`);
  if (text.length > TEXT_LENGTH_MAX) {
    throw new KeyError(`the ${what} has more than ${TEXT_LENGTH_MAX} characters`);
  }
  if (/[\p{Cc}\p{Cs}]/u.test(text)) throw new KeyError(`the ${what} has control characters`);
}

/** A misplaced key must not show up in an error message, nor in a statement. */
export function checkId(id: string): void {
  if (!isPublicId(id)) {
    throw new KeyError('a key is named by its public id, the 10 characters after cps_live_');
  }
}

async function readKeys(db: Kysely<Database>, id?: string): Promise<KeyInfo[]> {
  const rows = await db
    .selectFrom('api_key')
    .leftJoin(predecessors(db).as('succession'), 'succession.heir', 'api_key.public_id')
    .select(['succession.replaced', 'public_id', 'name', 'owner', scopesOfRow.as('scopes')])
    .select(['created_at', 'expires_at', 'revoked_at', 'revoked_reason', 'last_used_at'])
    .select(['rate_per_minute', 'rate_burst', 'concurrent'])
    .select(
      sql<string | null>`(select heir.public_id from api_key heir
        where heir.id = api_key.replaced_by)`.as('replaced_by'),
    )
    .select(
      sql<KeyInfo['status']>`case when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'active' end`.as('status'),
    )
    .$if(id !== undefined, (query) => query.where('public_id', '=', id ?? ''))
    .orderBy('api_key.id')
    .execute();
  return rows.map((row) => ({
    id: row.public_id,
    name: row.name,
    owner: row.owner,
    scopes: row.scopes,
    status: row.status,
    createdAt: instantOf(row.created_at),
    expiresAt: instantOrNull(row.expires_at),
    revokedAt: instantOrNull(row.revoked_at),
    revokedReason: row.revoked_reason,
    lastUsedAt: instantOrNull(row.last_used_at),
    limits: limitsOf(row),
    replacedBy: row.replaced_by,
    replaces: row.replaced,
  }));
}

/** Every key, oldest first. */
export async function listKeys(db: Kysely<Database>): Promise<KeyInfo[]> {
  return readKeys(db);
}

/**
 * One key, by its public id.
 * @throws KeyError when there is none
 */
export async function showKey(db: Kysely<Database>, id: string): Promise<KeyInfo> {
  checkId(id);
  const [key] = await readKeys(db, id);
  if (key === undefined) throw new KeyError(`there is no key with the id ${id}`);
  return key;
}

/** One thing that was done to a key. */
export interface KeyEvent {
  /** RFC 3339 in UTC. */
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly id: string;
  /** The state of the key before and after; never any part of its secret. */
  readonly before: unknown;
  readonly after: unknown;
  readonly reason: string | null;
  /** The key that this one was made to replace. */
  readonly replaces: string | null;
}

/**
 * Reads the audit of one key or of all keys, newest first. The table cannot be changed.
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
