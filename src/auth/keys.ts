import { type Kysely, sql } from 'kysely';
import { instantOf } from '../db/instant.ts';
import type { Database } from '../db/schema.ts';
import { isPublicId, newKey } from './key-format.ts';
import { scopesOf } from './scope-list.ts';
import { digestOf, instantOrNull, scopesOfRow } from './verify-key.ts';

/** The life of a key, unless its maker asks for another, in days. */
export const KEY_LIFETIME_DAYS = 365;

const TEXT_LENGTH_MAX = 200;

/** A request about keys that cannot be met. The message is one line for a terminal. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}

export interface KeyRequest {
  /** What the key is for, as its keeper will recognise it. */
  readonly name: string;
  readonly owner?: string | null;
  readonly scopes: readonly string[];
  /** When the key stops working; null for never. */
  readonly expiresAt: Date | null;
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
}

function checkText(what: string, text: string): void {
  if (text.trim() === '') throw new KeyError(`the ${what} must not be empty`);
  if (text.length > TEXT_LENGTH_MAX) {
    throw new KeyError(`the ${what} has more than ${TEXT_LENGTH_MAX} characters`);
  }
  if (/[\p{Cc}\p{Cs}]/u.test(text)) throw new KeyError(`the ${what} has control characters`);
}

function checkExpiry(expiresAt: Date | null): void {
  if (expiresAt !== null && !(expiresAt.getTime() > Date.now())) {
    throw new KeyError('the expiry must lie in the future');
  }
}

/** A misplaced key must not show up in an error message, nor in a statement. */
function checkId(id: string): void {
  if (!isPublicId(id)) {
    throw new KeyError('a key is named by its public id, the 10 characters after cps_live_');
  }
}

async function readKeys(db: Kysely<Database>, id?: string): Promise<KeyInfo[]> {
  const rows = await db
    .selectFrom('api_key')
    .select(['public_id', 'name', 'owner', scopesOfRow.as('scopes')])
    .select(['created_at', 'expires_at', 'revoked_at', 'revoked_reason'])
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
  }));
}

/**
 * Makes a key. Its text is in the answer and nowhere else: the database holds the SHA-256.
 * @throws KeyError for a bad name, owner or expiry, UnknownScopeError for an unknown scope
 */
export async function createKey(
  db: Kysely<Database>,
  request: KeyRequest,
): Promise<KeyInfo & { readonly key: string }> {
  const { name, owner = null, expiresAt } = request;
  checkText('name', name);
  if (owner !== null) checkText('owner', owner);
  checkExpiry(expiresAt);
  const scopes = scopesOf(request.scopes);
  if (scopes.length === 0) throw new KeyError('a key needs at least one scope');
  const { text, publicId } = newKey();
  await db.transaction().execute(async (trx) => {
    const { id } = await trx
      .insertInto('api_key')
      .values({
        public_id: publicId,
        name,
        owner,
        digest: digestOf(text),
        expires_at: expiresAt?.toISOString() ?? null,
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    await trx
      .insertInto('api_key_scope')
      .values(scopes.map((scope) => ({ api_key_id: id, scope })))
      .execute();
  });
  return { ...(await showKey(db, publicId)), key: text };
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

/**
 * Revokes a key for good. A key that was revoked before keeps its first time and reason.
 * @throws KeyError when there is no such key, or no reason
 */
export async function revokeKey(
  db: Kysely<Database>,
  id: string,
  reason: string,
): Promise<KeyInfo> {
  checkId(id);
  checkText('reason', reason);
  await db
    .updateTable('api_key')
    .set({ revoked_at: sql<string>`now()`, revoked_reason: reason })
    .where('public_id', '=', id)
    .where('revoked_at', 'is', null)
    .execute();
  return showKey(db, id);
}
