import { type Kysely, sql } from 'kysely';
import { instantOf } from '../db/instant.ts';
import type { Database } from '../db/schema.ts';
import { isPublicId } from './key-format.ts';
import { instantOrNull, type KeyLimits, limitsOf, scopesOfRow } from './key-row.ts';
import { predecessors } from './key-succession.ts';

const TEXT_LENGTH_MAX = 200;

/** A request about keys that cannot be met. The message is one line for a terminal. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
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
