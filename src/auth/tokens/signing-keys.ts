import { createPublicKey, KeyObject, type webcrypto } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
} from 'jose';
import { authUnavailable, invalidToken } from '../refusals.ts';
import { type Algorithm, ASYMMETRIC, type TokenHeader } from './tokens.ts';

/** Times of a remote key set, in milliseconds. */
export interface RemoteKeyTimes {
  /** Timeout of one attempt to read it. */
  readonly patience: number;
  /** After it was read, an unknown key is not looked for so long. */
  readonly cooldown: number;
  /** So long it holds without being read again: a key that was removed is gone after it. */
  readonly maxAge: number;
  /** So long it holds while it cannot be read. */
  readonly keep: number;
  /**
   * The first pause after an attempt that failed while no key was ever read; it doubles up to the
   * cooldown. With keys that hold, the pause is the cooldown.
   */
  readonly retry: number;
}

const TIMES: RemoteKeyTimes = {
  patience: 2_000,
  cooldown: 30_000,
  maxAge: 600_000,
  keep: 86_400_000,
  retry: 2_000,
};

/** If no key fits, the token is at fault; every other failure is one of the key source. */
const isForToken = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;

/** @throws Error for another status than 200, and as soon as there are more than `bytesMax` */
async function textOf(response: Response, bytesMax: number): Promise<string> {
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the key set was answered with ${response.status}`);
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > bytesMax) throw new Error(`the key set is larger than ${bytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

type FindKey = ReturnType<typeof createLocalJWKSet>;

/** The key set that was read last, used while it cannot be read again. */
class LastGood {
  readonly #times: RemoteKeyTimes;
  readonly #bytesMax: number;
  #find: FindKey | null = null;
  #readAt = 0;
  #failures = 0;
  #notBefore = 0;

  constructor(times: RemoteKeyTimes, bytesMax: number) {
    this.#times = times;
    this.#bytesMax = bytesMax;
  }

  /** The copy, unless there is none or it is too old. */
  get find(): FindKey | null {
    return performance.now() - this.#readAt <= this.#times.keep ? this.#find : null;
  }

  /** Reads the key set; for some time after a failure it fails at once. */
  readonly read = async (url: string, options: RequestInit): Promise<Response> => {
    if (performance.now() < this.#notBefore) throw new Error('the key set failed a moment ago');
    try {
      const text = await textOf(await fetch(url, options), this.#bytesMax);
      this.#find = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
      this.#readAt = performance.now();
      this.#failures = 0;
      return new Response(text, { status: 200 });
    } catch (error) {
      const { retry, cooldown } = this.#times;
      const pause = this.find === null ? Math.min(cooldown, retry * 2 ** this.#failures) : cooldown;
      this.#notBefore = performance.now() + pause;
      this.#failures += 1;
      throw error;
    }
  };
}

/**
 * Finds keys in the JWKS at one fixed address. Strangers cannot make it read more often: an unknown
 * key is looked for once in a cooldown, and so is an address asked that fails; one that never
 * answered sooner at first, since a service often starts beside its issuer. While it fails, the
 * keys that were read last hold for a day.
 * @param bytesMax the largest key set; of a larger one no more is read
 */
export function remoteKeys(url: string, bytesMax: number, times: RemoteKeyTimes = TIMES) {
  const last = new LastGood(times, bytesMax);
  const keySet = createRemoteJWKSet(new URL(url), {
    timeoutDuration: times.patience,
    cooldownDuration: times.cooldown,
    cacheMaxAge: times.maxAge,
    [customFetch]: last.read,
  });
  /** @throws Problem invalid_token when no key fits, auth_unavailable when that is not known */
  return async ({ alg, kid }: TokenHeader) => {
    const wanted = kid === undefined ? { alg } : { alg, kid };
    try {
      return await keySet(wanted);
    } catch (cause) {
      if (isForToken(cause)) throw invalidToken(cause);
      if (last.find === null) throw authUnavailable(cause);
      // A key that the copy lacks may be a new one: nobody can say so now.
      return last.find(wanted).catch(() => {
        throw authUnavailable(cause);
      });
    }
  };
}

/** Where the key that a token must be signed with comes from. */
export interface KeySource {
  /** What the keys may be used with: HS256 alone or public keys alone, never both. */
  readonly algorithms: readonly Algorithm[];
  /**
   * The secret, or the public key as SPKI PEM.
   * @throws Problem invalid_token when there is no key for this header, auth_unavailable when
   *   the keys cannot be had
   */
  readonly keyOf: (header: TokenHeader) => Promise<string>;
}

/** The settings that say which tokens are trusted, named as in the environment. */
export interface KeySettings {
  readonly JWT_SECRET?: string;
  readonly JWT_PUBLIC_KEY_FILE?: string;
  readonly JWT_JWKS_URL?: string;
  readonly JWT_JWKS_BYTES_MAX: number;
}

/** A setting that no token could be checked with. One line that names the variable. */
export class TokenSettingError extends Error {
  override readonly name = 'TokenSettingError';
  readonly exitCode = 2;
}

const SECRET_BYTES_MIN = 32;
const RSA_BITS_MIN = 2048;

/** What a public key may be used with; nothing for weak keys and other curves. */
function algorithmsOf(key: KeyObject): Algorithm[] {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS_MIN) return ['RS256', 'PS256'];
  if (key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return ['ES256'];
  return key.asymmetricKeyType === 'ed25519' ? ['EdDSA'] : [];
}

const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();

function secretSource(secret: string): KeySource {
  if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) {
    throw new TokenSettingError(`JWT_SECRET: must have at least ${SECRET_BYTES_MIN} bytes`);
  }
  // A public key is public: taken for a secret, everybody could sign with it.
  if (secret.includes('-----BEGIN') || secret.includes('"kty"')) {
    throw new TokenSettingError('JWT_SECRET: is a key; name its file in JWT_PUBLIC_KEY_FILE');
  }
  return { algorithms: ['HS256'], keyOf: async () => secret };
}

async function fileSource(path: string): Promise<KeySource> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new TokenSettingError(`JWT_PUBLIC_KEY_FILE: ${why}`, { cause });
  };
  const text = await readFile(path, 'utf8').catch((cause) => {
    const { code } = cause as NodeJS.ErrnoException;
    // Its path is not told: somebody may have set the key itself.
    return refuse(code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`, cause);
  });
  // Node would quietly take the public half of a private key, which has no business here.
  if (text.includes('PRIVATE KEY-----')) refuse('holds a private key; the public one is needed');
  let key: KeyObject;
  try {
    key = createPublicKey(text);
  } catch (cause) {
    return refuse('holds no public key in PEM form', cause);
  }
  const algorithms = algorithmsOf(key);
  if (algorithms.length === 0) {
    refuse('must hold an RSA key of at least 2048 bits, a P-256 key or an Ed25519 key');
  }
  const pem = pemOf(key);
  return { algorithms, keyOf: async () => pem };
}

function remoteSource(url: string, bytesMax: number): KeySource {
  const find = remoteKeys(url, bytesMax);
  const pems = new WeakMap<object, string>();
  const keyOf = async (header: TokenHeader): Promise<string> => {
    const found = await find(header);
    const known = pems.get(found);
    if (known !== undefined) return known;
    const key = KeyObject.from(found as webcrypto.CryptoKey);
    if (!algorithmsOf(key).includes(header.alg)) throw invalidToken(new Error('a weak key'));
    const pem = pemOf(key);
    pems.set(found, pem);
    return pem;
  };
  return { algorithms: ASYMMETRIC, keyOf };
}

/**
 * The key source that the settings name; undefined when no tokens are taken.
 * @throws TokenSettingError when a setting cannot be used, or when two of them exclude each other
 */
export async function keySourceOf(settings: KeySettings): Promise<KeySource | undefined> {
  const { JWT_SECRET, JWT_PUBLIC_KEY_FILE, JWT_JWKS_URL } = settings;
  const given = [JWT_SECRET, JWT_PUBLIC_KEY_FILE, JWT_JWKS_URL].filter((each) => each);
  if (given.length > 1) {
    throw new TokenSettingError(
      'JWT_SECRET: JWT_SECRET, JWT_PUBLIC_KEY_FILE and JWT_JWKS_URL never mix; set one',
    );
  }
  if (JWT_SECRET) return secretSource(JWT_SECRET);
  if (JWT_PUBLIC_KEY_FILE) return fileSource(JWT_PUBLIC_KEY_FILE);
  return JWT_JWKS_URL ? remoteSource(JWT_JWKS_URL, settings.JWT_JWKS_BYTES_MAX) : undefined;
}
