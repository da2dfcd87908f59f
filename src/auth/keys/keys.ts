import { type Kysely, sql, type Transaction } from 'kysely';
import { scopesOf } from '../../catalog/scopes.ts';
import type { Database } from '../../db/schema.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { newKey } from './format.ts';
import { checkId, checkText, KeyError, type KeyInfo, showKey } from './info.ts';
import { digestOf } from './verify.ts';

/** The life of a key, unless its maker asks for another, in days. */
export const KEY_LIFETIME_DAYS = 365;

interface KeyRequest {
  /** What the key is for, as its keeper will recognise it. */
  readonly name: string;
  readonly owner?: string | null;
  readonly scopes: readonly string[];
  /** When the key stops working; null for never. */
  readonly expiresAt: Date | null;
  readonly limits?: KeyLimits | null;
}

/** A key that was just made: its text is shown this once. */
export type NewKeyInfo = KeyInfo & { readonly key: string };

/** Who changes a key and why, for the audit table; the account of the database, when not given. */
interface KeyChange {
  readonly actor?: string | undefined;
  readonly reason?: string | undefined;
}

function checkExpiry(expiresAt: Date | null): void {
  if (expiresAt !== null && !(expiresAt.getTime() > Date.now())) {
    throw new KeyError('the expiry must lie in the future');
  }
}

function checkLimits(limits: KeyLimits | null): void {
  if (limits === null) return;
  if ((limits.perMinute === null) !== (limits.burst === null)) {
    throw new KeyError('a rate needs a burst, and a burst a rate');
  }
}

/** One transaction whose changes the audit table will know the author and the reason of. */
const changing = <T>(
  db: Kysely<Database>,
  { actor = '', reason = '' }: KeyChange,
  work: (trx: Transaction<Database>) => Promise<T>,
): Promise<T> =>
  db.transaction().execute(async (trx) => {
    await sql`select set_config('prices.actor', ${actor}, true),
      set_config('prices.reason', ${reason}, true)`.execute(trx);
    return work(trx);
  });

/** Writes a new key; returns its row's id and its text. */
async function insertKey(trx: Transaction<Database>, request: KeyRequest) {
  const { name, owner = null, expiresAt, limits = null } = request;
  const scopes = scopesOf(request.scopes);
  if (scopes.length === 0) throw new KeyError('a key needs at least one scope');
  const { text, publicId } = newKey();
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
 * Makes a key. Its text is in the answer and nowhere else: the database holds the SHA-256.
 * @throws KeyError for a bad name, owner, limit or expiry, UnknownScopeError for an unknown scope
 */
export async function createKey(
  db: Kysely<Database>,
  request: KeyRequest,
  change: KeyChange = {},
): Promise<NewKeyInfo> {
  checkText('name', request.name);
  if (typeof request.owner === 'string') checkText('owner', request.owner);
  checkExpiry(request.expiresAt);
  checkLimits(request.limits ?? null);
  const { text, publicId } = await changing(db, change, (trx) => insertKey(trx, request));
  return { ...(await showKey(db, publicId)), key: text };
}

/**
 * Revokes a key for good. A key that was revoked before keeps its first time and reason.
 * @throws KeyError when there is no such key, or no reason
 */
export async function revokeKey(
  db: Kysely<Database>,
  id: string,
  reason: string,
  change: KeyChange = {},
): Promise<KeyInfo> {
  checkId(id);
  checkText('reason', reason);
  await changing(db, { ...change, reason }, (trx) =>
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
  /** How long the old key goes on working, in milliseconds; 0 ends it at once. */
  readonly graceMs: number;
  /** When the new key ends; null for never, 'as-before' for as long a life as the old one had. */
  readonly expiresAt: Date | null | 'as-before';
}

const DAY_MS = 86_400_000;

/** The end of a key made now that lives as long as another was to; there is always one. */
function endAsOf({ createdAt, expiresAt }: KeyInfo): Date {
  const span =
    expiresAt === null ? KEY_LIFETIME_DAYS * DAY_MS : Date.parse(expiresAt) - Date.parse(createdAt);
  return new Date(Date.now() + span);
}

/**
 * Makes a key that takes the place of another: same name, owner, scopes and limits. The old one
 * works until the grace is over, and never longer than it would have.
 * @throws KeyError when there is no such key, or it does not work any more or has an heir
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
      `the key ${id} was rotated before, to ${old.replacedBy}: rotate that one; ` +
        `\`keys revoke ${id}\` ends this one now`,
    );
  }
  const expiresAt = wanted === 'as-before' ? endAsOf(old) : wanted;
  checkExpiry(expiresAt);
  const { name, owner, scopes, limits } = old;
  const made = await changing(db, change, async (trx) => {
    const heir = await insertKey(trx, { name, owner, scopes, limits, expiresAt });
    const end = sql<string>`least(expires_at, now() + ${`${graceMs} milliseconds`}::interval)`;
    const changed = await trx
      .updateTable('api_key')
      .set({ replaced_by: heir.id })
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
    return heir;
  });
  return { ...(await showKey(db, made.publicId)), key: made.text };
}
