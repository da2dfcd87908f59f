import { hash, timingSafeEqual } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { databaseProblem } from '../../db/failures.ts';
import { instantOrNull } from '../../db/instant.ts';
import type { Newest } from '../../db/newest.ts';
import type { Database } from '../../db/schema.ts';
import { sharedReading } from '../../db/shared-work.ts';
import { Problem } from '../../errors.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import type { Principal } from '../principal.ts';
import { authUnavailable, expiredApiKey, invalidApiKey, revokedApiKey } from '../refusals.ts';
import { publicIdOf } from './format.ts';

/** What is stored of a key, as far as a request needs it. */
interface KeyRecord {
  readonly publicId: string;
  /** SHA-256 of the whole key. */
  readonly digest: Uint8Array;
  readonly scopes: ReadonlySet<string>;
  /** RFC 3339 in UTC; null for a key that never expires. */
  readonly expiresAt: string | null;
  readonly revoked: boolean;
  /** The clock of the database when the key was read, and `performance.now()` then. */
  readonly readAt: { readonly databaseMs: number; readonly ownMs: number };
  readonly limits: KeyLimits | null;
}

/** The scopes of the key that a query on `api_key` is at. */
export const scopesOfRow = sql<string[]>`array(
  select scope from api_key_scope where api_key_id = api_key.id order by scope)`;

/** The limits in a row of `api_key`; null when it has none of its own. */
export function limitsOf(
  row: Readonly<Record<'rate_per_minute' | 'rate_burst' | 'concurrent', number | null>>,
): KeyLimits | null {
  const { rate_per_minute: perMinute, rate_burst: burst, concurrent } = row;
  return perMinute === null && concurrent === null ? null : { perMinute, burst, concurrent };
}

/**
 * How a key is looked up: in the database, or in what a cache kept of it. A cache knows the digest
 * of whoever asks, so that it answers nobody else sooner than it answers strangers.
 */
export type FindKey = (publicId: string, digest: Uint8Array) => Promise<KeyRecord | undefined>;

/** What is stored of a key's text. 190 random bits cannot be guessed: no slow hash is needed. */
export const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Stands in for the digest of an unknown key, so that both paths do the same work. */
const NO_DIGEST = Buffer.alloc(32);

/**
 * Reads a key by its public id; the secret is never part of a statement. There is a row of an
 * unknown id too: without one the database would be done sooner.
 */
export async function findKey(
  db: Kysely<Database>,
  publicId: string,
): Promise<KeyRecord | undefined> {
  const row = await db
    .selectFrom(sql<{ id: string }>`(select ${publicId}::text as id)`.as('asked'))
    .leftJoin('api_key', 'api_key.public_id', 'asked.id')
    .select(['public_id', 'digest', 'expires_at', 'revoked_at', scopesOfRow.as('scopes')])
    .select(['rate_per_minute', 'rate_burst', 'concurrent'])
    .select(sql<number>`(1000 * extract(epoch from clock_timestamp()))::float8`.as('now_ms'))
    .executeTakeFirstOrThrow();
  const { digest } = row;
  if (digest === null) return undefined;
  return {
    publicId,
    digest,
    scopes: new Set(row.scopes),
    expiresAt: instantOrNull(row.expires_at),
    revoked: row.revoked_at !== null,
    readAt: { databaseMs: row.now_ms, ownMs: performance.now() },
    limits: limitsOf(row),
  };
}

/** True if a digest is that of a key; of an unknown one it takes as long. */
const isDigestOf = (key: KeyRecord | undefined, digest: Uint8Array): boolean =>
  timingSafeEqual(digest, key?.digest ?? NO_DIGEST) && key !== undefined;

async function lookUp(
  find: FindKey,
  publicId: string,
  digest: Uint8Array,
): Promise<KeyRecord | undefined> {
  try {
    return await find(publicId, digest);
  } catch (cause) {
    if (cause instanceof Problem && cause.code !== 'database_unavailable') throw cause;
    // A database without its tables is the operator's to mend, and says so everywhere.
    const problem = databaseProblem(cause);
    throw problem?.code === 'schema_outdated' ? problem : authUnavailable(cause);
  }
}

/**
 * Checks the key of a request. Only a client that knows the secret learns that a key expired or
 * was revoked. The clock of the database decides whether it expired, whatever the clock of this
 * machine says.
 * @throws Problem invalid_api_key, api_key_expired, api_key_revoked; auth_unavailable when the
 *   lookup fails, schema_outdated when there is nothing to look in
 */
export async function verifyKey(find: FindKey, text: string): Promise<Principal> {
  const publicId = publicIdOf(text);
  if (publicId === null) throw invalidApiKey();
  const digest = digestOf(text);
  const key = await lookUp(find, publicId, digest);
  const matches = isDigestOf(key, digest);
  if (key === undefined || !matches) throw invalidApiKey();
  if (key.revoked) throw revokedApiKey(publicId);
  const { expiresAt, readAt } = key;
  const nowMs = readAt.databaseMs + performance.now() - readAt.ownMs;
  if (expiresAt !== null && Date.parse(expiresAt) <= nowMs) {
    throw expiredApiKey(publicId, expiresAt);
  }
  const { scopes, limits } = key;
  return { kind: 'key', id: publicId, scopes, expiresAt, limits };
}

/** Looks a key up as of a look at the database: what was revoked before it is revoked. */
type KeysAt = (
  newest: Newest,
  publicId: string,
  digest: Uint8Array,
) => Promise<KeyRecord | undefined>;

/**
 * Keys that were read, for as long as the database says that no key has changed. Ids that are
 * not known are not kept: strangers draw as many as they like. A wrong secret of a key that is kept
 * is looked up as they are, so that the time of a refusal does not tell that the key exists. Many
 * requests that come with one key at once, as after a change of any, share one lookup.
 * @param keep how many keys are kept, some 500 bytes each
 */
export function rememberedKeys(db: Kysely<Database>, keep: number): KeysAt {
  const kept = new Map<string, KeyRecord>();
  const once = sharedReading<KeyRecord | undefined>();
  let version = '';
  return async (newest, publicId, digest) => {
    const current = `${newest.epoch}.${newest.keysVersion}`;
    if (current !== version) {
      kept.clear();
      version = current;
    }
    const found = kept.get(publicId);
    if (isDigestOf(found, digest)) return found;
    // Read after the look, so never older than it says; one that is newer is refused no less.
    const asked = `${current} ${publicId} ${Buffer.from(digest).toString('base64')}`;
    const record = await once(asked, () => findKey(db, publicId));
    // Another request may have seen a newer version meanwhile.
    if (record === undefined || current !== version) return record;
    kept.set(publicId, record);
    for (const oldest of kept.keys()) {
      if (kept.size <= keep) break;
      kept.delete(oldest);
    }
    return record;
  };
}
