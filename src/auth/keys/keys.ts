import { type Kysely, sql, type Transaction } from 'kysely';
import { scopesOf } from '../../catalog/scopes.ts';
import { holdersText, isLockTimeout, LockedOutError } from '../../db/migrate/lock-holders.ts';
import type { Database } from '../../db/schema.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { type KeyKind, kindOf, newKey } from './format.ts';
import { checkId, checkText, KeyError, type KeyInfo, showKey } from './info.ts';
import { digestOf } from './verify.ts';

/*
 * API keys: `format.ts` has their form, this file creates, changes and revokes them, and
 * `verify.ts` checks the key of a request. The database holds the SHA-256 of a key, never the key.
 */

/** Default lifetime of a key, in days. */
export const KEY_LIFETIME_DAYS = 365;

interface KeyRequest {
  /** Purpose of the key, for its owner. */
  readonly name: string;
  readonly owner?: string | null;
  readonly scopes: readonly string[];
  /** Null for a key that does not expire. */
  readonly expiresAt: Date | null;
  readonly limits?: KeyLimits | null;
  /** `live` if absent. */
  readonly kind?: KeyKind;
}

/** A key that was just created: its text is shown only now. */
export type NewKeyInfo = KeyInfo & { readonly key: string };

/** Entries for the audit table; the actor defaults to the database account. */
export interface KeyChange {
  readonly actor?: string | undefined;
  readonly reason?: string | undefined;
}

function checkExpiry(expiresAt: Date | null): void {
  if (expiresAt !== null && !(expiresAt.getTime() > Date.now())) {
    throw new KeyError('the expiry must lie in the future');
  }
}

/** A change of a key writes few rows: a longer wait has a cause that an operator must end. */
const LOCK_TIMEOUT_MS = 5_000;

/** Matches sessions that may block a change of a key: they hold more than the lock of a reader. */
const KEY_LOCKS = sql<boolean>`
  relation in (to_regclass('public.api_key'), to_regclass('public.api_key_scope'),
    to_regclass('public.service'), to_regclass('public.webhook')) and mode <> 'AccessShareLock'
    and pid not in (select pid from pg_locks where not granted)`;

/**
 * Runs one transaction. The audit triggers record its actor and reason.
 * @throws LockedOutError if another session holds a lock for too long
 */
export async function inAuditedTransaction<T>(
  db: Kysely<Database>,
  { actor = '', reason = '' }: KeyChange,
  work: (trx: Transaction<Database>) => Promise<T>,
): Promise<T> {
  try {
    return await db.transaction().execute(async (trx) => {
      await sql`select set_config('prices.actor', ${actor}, true),
        set_config('prices.reason', ${reason}, true),
        set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, true)`.execute(trx);
      return await work(trx);
    });
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    throw new LockedOutError(
      `the keys were locked for ${LOCK_TIMEOUT_MS / 1_000} s by ` +
        `${await holdersText(db, KEY_LOCKS)}; nothing was changed: end that session, and run the ` +
        'command again',
      { cause: error },
    );
  }
}

/** Inserts a new key. Returns its row id, text and public id. */
async function insertKey(trx: Transaction<Database>, request: KeyRequest) {
  const { name, owner = null, expiresAt, limits = null } = request;
  const scopes = scopesOf(request.scopes);
  if (scopes.length === 0) throw new KeyError('a key needs at least one scope');
  const { text, publicId } = newKey(request.kind);
  const { id } = await trx
    .insertInto('api_key')
    .values({
      public_id: publicId,
      name,
      owner,
      digest: digestOf(text),
      expires_at: expiresAt?.toISOString() ?? null,
      rate_per_minute: limits?.perMinute ?? null,
      rate_burst: limits?.burst ?? null,
      concurrent: limits?.concurrent ?? null,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  await trx
    .insertInto('api_key_scope')
    .values(scopes.map((scope) => ({ api_key_id: id, scope })))
    .execute();
  return { id, text, publicId };
}

/**
 * Creates a key. Only the result has its text: the database stores the SHA-256.
 * @throws KeyError for an invalid name, owner or expiry, UnknownScopeError for an unknown scope,
 *   and the error of the database for a rate without a burst
 */
export async function createKey(
  db: Kysely<Database>,
  request: KeyRequest,
  change: KeyChange = {},
): Promise<NewKeyInfo> {
  checkText('name', request.name);
  if (typeof request.owner === 'string') checkText('owner', request.owner);
  checkExpiry(request.expiresAt);
  const { text, publicId } = await inAuditedTransaction(db, change, (trx) =>
    insertKey(trx, request),
  );
  return { ...(await showKey(db, publicId)), key: text };
}

/**
 * Revokes a key permanently. A revoked key keeps the time and reason of its first revocation.
 * @throws KeyError for an unknown key or an empty reason
 */
export async function revokeKey(
  db: Kysely<Database>,
  id: string,
  reason: string,
  change: KeyChange = {},
): Promise<KeyInfo> {
  checkId(id);
  checkText('reason', reason);
  await inAuditedTransaction(db, { ...change, reason }, (trx) =>
    trx
      .updateTable('api_key')
      .set({ revoked_at: sql<string>`now()`, revoked_reason: reason })
      .where('public_id', '=', id)
      .where('revoked_at', 'is', null)
      .execute(),
  );
  return showKey(db, id);
}

interface Rotation {
  /** Grace period of the old key, in milliseconds; 0 revokes it immediately. */
  readonly graceMs: number;
  /** Expiry of the new key; null for none, 'same-lifetime' for the lifetime of the old key. */
  readonly expiresAt: Date | null | 'same-lifetime';
}

const DAY_MS = 86_400_000;

/** Expiry of a new key with the lifetime of another; the default if that one does not expire. */
function expiryLike({ createdAt, expiresAt }: KeyInfo): Date {
  const span =
    expiresAt === null ? KEY_LIFETIME_DAYS * DAY_MS : Date.parse(expiresAt) - Date.parse(createdAt);
  return new Date(Date.now() + span);
}

/**
 * Rotates a key: creates a replacement with the same name, owner, scopes and limits. The old key
 * works until the grace period ends, or until its own expiry if that is earlier.
 * @throws KeyError for a key that is unknown, inactive or already replaced
 */
export async function rotateKey(
  db: Kysely<Database>,
  id: string,
  { graceMs, expiresAt: wanted }: Rotation,
  change: KeyChange = {},
): Promise<NewKeyInfo> {
  const old = await showKey(db, id);
  if (old.status !== 'active') throw new KeyError(`the key ${id} is ${old.status}; create another`);
  if (old.replacedBy !== null) {
    throw new KeyError(
      `the key ${id} was already replaced by ${old.replacedBy}: rotate that key; ` +
        `\`keys revoke ${id}\` revokes the old key now`,
    );
  }
  const expiresAt = wanted === 'same-lifetime' ? expiryLike(old) : wanted;
  checkExpiry(expiresAt);
  const { name, owner, scopes, limits } = old;
  const created = await inAuditedTransaction(db, change, async (trx) => {
    const kind = kindOf(id);
    const replacement = await insertKey(trx, { name, owner, scopes, limits, expiresAt, kind });
    const end = sql<string>`least(expires_at, now() + ${`${graceMs} milliseconds`}::interval)`;
    const changed = await trx
      .updateTable('api_key')
      .set({ replaced_by: replacement.id })
      .$if(graceMs > 0, (query) => query.set({ expires_at: end }))
      .$if(graceMs === 0, (query) =>
        query.set({ revoked_at: sql<string>`now()`, revoked_reason: 'rotated without grace' }),
      )
      .where('public_id', '=', id)
      .where('replaced_by', 'is', null)
      .where('revoked_at', 'is', null)
      .executeTakeFirst();
    if (changed.numUpdatedRows === 0n) {
      throw new KeyError(`the key ${id} was rotated or revoked meanwhile`);
    }
    return replacement;
  });
  return { ...(await showKey(db, created.publicId)), key: created.text };
}
