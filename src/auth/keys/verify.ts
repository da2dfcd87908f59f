import { hash, timingSafeEqual } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { databaseFailureOf } from '../../db/failures.ts';
import { instantOrNull } from '../../db/instant.ts';
import type { NewestRevision } from '../../db/newest-revision.ts';
import type { Database } from '../../db/schema.ts';
import { sharedLoad } from '../../db/shared-work.ts';
import { Problem } from '../../errors.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { type QueueGroup, Semaphore } from '../../std/semaphore.ts';
import type { Principal } from '../credentials.ts';
import {
  authUnavailable,
  expiredApiKey,
  invalidApiKey,
  type KeyPlace,
  revokedApiKey,
} from '../refusals.ts';
import { publicIdOf } from './format.ts';

/** The stored data of a key that a request needs. */
interface KeyRecord {
  readonly publicId: string;
  /** SHA-256 of the whole key. */
  readonly digest: Uint8Array;
  readonly scopes: ReadonlySet<string>;
  /** RFC 3339 in UTC; null for a key that does not expire. */
  readonly expiresAt: string | null;
  readonly revoked: boolean;
  /** The database clock when the key was read, and `performance.now()` at that time. */
  readonly readAt: { readonly databaseMs: number; readonly ownMs: number };
  readonly limits: KeyLimits | null;
}

/** Subquery: scopes of the current row of `api_key`. */
export const scopesOfRow = sql<string[]>`array(
  select scope from api_key_scope where api_key_id = api_key.id order by scope)`;

/** Limits in a row of `api_key`; null if the key has no limits of its own. */
export function limitsOf(
  row: Readonly<Record<'rate_per_minute' | 'rate_burst' | 'concurrent', number | null>>,
): KeyLimits | null {
  const { rate_per_minute: perMinute, rate_burst: burst, concurrent } = row;
  return perMinute === null && concurrent === null ? null : { perMinute, burst, concurrent };
}

/**
 * Looks up a key in the database or in a cache. A cache needs the digest of the request: a cached
 * result for a wrong secret would be faster than one for an unknown key.
 */
export type KeyLookup = (publicId: string, digest: Uint8Array) => Promise<KeyRecord | undefined>;

/** SHA-256 of a key. 190 random bits cannot be guessed, so no slow password hash is needed. */
export const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Digest of an unknown key, so that both paths take the same time. */
const NO_DIGEST = Buffer.alloc(32);

/**
 * Reads a key by its public id; the secret is never part of a statement. An unknown id returns a
 * row too, because an empty result would be faster.
 */
export async function findKey(
  db: Kysely<Database>,
  publicId: string,
): Promise<KeyRecord | undefined> {
  const row = await db
    .selectFrom(sql<{ id: string }>`(select ${publicId}::text as id)`.as('requested'))
    .leftJoin('api_key', 'api_key.public_id', 'requested.id')
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

/** Compares a digest in constant time, which is the same for an unknown key. */
const isDigestOf = (key: KeyRecord | undefined, digest: Uint8Array): boolean =>
  timingSafeEqual(digest, key?.digest ?? NO_DIGEST) && key !== undefined;

async function lookUp(
  lookup: KeyLookup,
  publicId: string,
  digest: Uint8Array,
): Promise<KeyRecord | undefined> {
  try {
    return await lookup(publicId, digest);
  } catch (cause) {
    if (cause instanceof Problem) throw cause;
    const failure = databaseFailureOf(cause);
    // These two are reported by the same code on every route.
    const isGeneral = failure?.reason === 'busy' || failure?.reason === 'schema_outdated';
    throw isGeneral ? failure : authUnavailable(cause);
  }
}

/**
 * Checks the key of a request. Expiry and revocation are reported only to a client that knows the
 * secret. The database clock decides about expiry, because clocks of instances may differ.
 * @throws Problem invalid_api_key, api_key_expired or api_key_revoked, and auth_unavailable if the
 *   lookup fails
 * @throws DatabaseFailure if the database is busy or lacks the schema
 */
export async function verifyKey(
  lookup: KeyLookup,
  text: string,
  place: KeyPlace = 'x-api-key',
): Promise<Principal> {
  const publicId = publicIdOf(text);
  if (publicId === null) throw invalidApiKey(place);
  const digest = digestOf(text);
  const key = await lookUp(lookup, publicId, digest);
  const matches = isDigestOf(key, digest);
  if (key === undefined || !matches) throw invalidApiKey(place);
  if (key.revoked) throw revokedApiKey(publicId);
  const { expiresAt, readAt } = key;
  const nowMs = readAt.databaseMs + performance.now() - readAt.ownMs;
  if (expiresAt !== null && Date.parse(expiresAt) <= nowMs) {
    throw expiredApiKey(publicId, expiresAt);
  }
  const { scopes, limits } = key;
  return { kind: 'key', id: publicId, scopes, expiresAt, limits };
}

/**
 * Concurrent lookups of keys that are not cached. A request looks up its key before the gate, and
 * ids may be guessed: half of the default connections stay free for admitted requests.
 */
const LOOKUPS_MAX = 4;

/** Looks up a key as of a revision check: every earlier revocation is seen. */
type KeysAtRevision = (
  newest: NewestRevision,
  publicId: string,
  digest: Uint8Array,
) => Promise<KeyRecord | undefined>;

/**
 * Cache of keys, cleared whenever the version of the key table changes. Unknown ids are not cached,
 * because guessed ids are unlimited. A wrong secret of a cached key is looked up like an unknown
 * id, so that response times do not reveal which keys exist. Concurrent requests with one key share
 * a lookup.
 * @param entriesMax maximum number of keys, about 500 bytes each
 * @param queues queues of the database: a lookup waits as long as it is away
 */
export function cachedKeys(
  db: Kysely<Database>,
  entriesMax: number,
  queues?: QueueGroup,
): KeysAtRevision {
  const cache = new LRUCache<string, KeyRecord>({ max: entriesMax });
  const shareLookup = sharedLoad<KeyRecord | undefined>();
  // The deadlines of the requests end their waits.
  const lookups = new Semaphore(LOOKUPS_MAX, { waitingMax: 0, waitMs: 0 }, queues);
  const findOne = async (publicId: string): Promise<KeyRecord | undefined> => {
    const release = await lookups.acquire({ isUntimed: true });
    try {
      return await findKey(db, publicId);
    } finally {
      release?.();
    }
  };
  let version = '';
  return async (newest, publicId, digest) => {
    const current = `${newest.epoch}.${newest.keysVersion}`;
    if (current !== version) {
      cache.clear();
      version = current;
    }
    const found = cache.get(publicId);
    if (isDigestOf(found, digest)) return found;
    // The lookup begins after the revision check, so it cannot miss an earlier revocation.
    const lookup = `${current} ${publicId} ${Buffer.from(digest).toString('base64')}`;
    const record = await shareLookup(lookup, () => findOne(publicId));
    // Another request may have seen a newer version and cleared the cache.
    if (record !== undefined && current === version) cache.set(publicId, record);
    return record;
  };
}
