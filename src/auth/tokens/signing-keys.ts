import { createPublicKey, KeyObject, type webcrypto } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
} from 'jose';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { bytesOf } from '../../std/http.ts';
import { authUnavailable, invalidToken, UnknownSigningKey } from '../refusals.ts';
import { type Algorithm, ASYMMETRIC, type TokenHeader } from './tokens.ts';

/** Timing of a remote key set, in milliseconds. */
export interface RemoteKeyTimes {
  /** Timeout of one fetch. */
  readonly timeoutMs: number;
  /** Minimum time between a fetch and the next one for an unknown key id. */
  readonly cooldownMs: number;
  /** Maximum age without a fetch: a removed key is trusted at most this long. */
  readonly maxAgeMs: number;
  /** Maximum age while fetches fail. */
  readonly staleMaxMs: number;
  /**
   * First pause after a failed fetch if there is no usable key set; it doubles up to the cooldown.
   * With a usable key set, the pause is the cooldown.
   */
  readonly retryMs: number;
}

const TIMES: RemoteKeyTimes = {
  timeoutMs: 2_000,
  cooldownMs: 30_000,
  maxAgeMs: 600_000,
  staleMaxMs: 86_400_000,
  retryMs: 2_000,
};

/** Bounds the memory of a key set from an issuer that fails; usual ones have a few KiB. */
const KEY_SET_BYTES_MAX = 262_144;

/** True if no key matches, a fault of the token. All other errors are faults of the key source. */
const isNoMatch = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;

/** @throws Error for a status other than 200, and after more than `KEY_SET_BYTES_MAX` bytes */
async function textOf(response: Response): Promise<string> {
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the key set was answered with ${response.status}`);
  }
  const bytes = await bytesOf(response, KEY_SET_BYTES_MAX);
  if (bytes !== null) return bytes.toString('utf8');
  throw new Error(`the key set is larger than ${KEY_SET_BYTES_MAX} bytes`);
}

type FindSigningKey = ReturnType<typeof createLocalJWKSet>;

/** Cache of the last key set, used while fetches fail. */
class KeySetCache {
  readonly #times: RemoteKeyTimes;
  #find: FindSigningKey | null = null;
  #readAt = 0;
  #failures = 0;
  #notBefore = 0;

  constructor(times: RemoteKeyTimes) {
    this.#times = times;
  }

  /** The cached key set; null if there is none or it is too old. */
  get find(): FindSigningKey | null {
    return performance.now() - this.#readAt <= this.#times.staleMaxMs ? this.#find : null;
  }

  /** Time of the last successful fetch, by `performance.now()`. */
  get readAt(): number {
    return this.#readAt;
  }

  /** Fetches the key set. During the pause after a failure it rejects without a fetch. */
  readonly read = async (url: string, options: RequestInit): Promise<Response> => {
    if (performance.now() < this.#notBefore)
      throw new Error('the last fetch of the key set failed, and the retry is paused');
    try {
      const text = await textOf(await fetch(url, options));
      this.#find = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
      this.#readAt = performance.now();
      this.#failures = 0;
      return new Response(text, { status: 200 });
    } catch (error) {
      const { retryMs, cooldownMs } = this.#times;
      const pause =
        this.find === null ? Math.min(cooldownMs, retryMs * 2 ** this.#failures) : cooldownMs;
      this.#notBefore = performance.now() + pause;
      this.#failures += 1;
      throw error;
    }
  };
}

/**
 * Finds keys in the JWKS at one fixed address. Unauthenticated requests cannot increase the fetch
 * rate: unknown key ids and failures cause at most one fetch per cooldown. An issuer that never
 * responded is retried sooner at first, because it often starts together with this service. While
 * fetches fail, the cached keys are used for a day. A key id that is unknown within the cooldown
 * may be a new key of the issuer, so it is no invalid token until a fetch has not found it.
 */
export function remoteKeys(url: string, times: RemoteKeyTimes = TIMES) {
  const last = new KeySetCache(times);
  const keySet = createRemoteJWKSet(new URL(url), {
    timeoutDuration: times.timeoutMs,
    cooldownDuration: times.cooldownMs,
    cacheMaxAge: times.maxAgeMs,
    [customFetch]: last.read,
  });
  /** @throws Problem invalid_token if no key matches, auth_unavailable if that is unknown */
  return async ({ alg, kid }: TokenHeader) => {
    const wanted = kid === undefined ? { alg } : { alg, kid };
    const { readAt } = last;
    try {
      return await keySet(wanted);
    } catch (cause) {
      // A key that a fetch for this request did not find is unknown; before it, it may be new.
      if (isNoMatch(cause) && (kid === undefined || last.readAt !== readAt)) {
        throw invalidToken(cause);
      }
      if (isNoMatch(cause)) {
        const waitMs = Math.max(1, readAt + times.cooldownMs - performance.now());
        throw new UnknownSigningKey(cause, Math.ceil(waitMs / 1_000));
      }
      if (last.find === null) throw authUnavailable(cause);
      // A key id missing in the cached set may be a new key of the issuer.
      return last.find(wanted).catch(() => {
        throw authUnavailable(cause);
      });
    }
  };
}

/** Source of the keys that verify tokens. */
interface KeySource {
  /** Accepted algorithms: HS256 alone or those of public keys, never both. */
  readonly algorithms: readonly Algorithm[];
  /**
   * The secret, or the public key as SPKI PEM.
   * @throws Problem invalid_token if no key matches the header, auth_unavailable if the keys
   *   cannot be fetched
   */
  readonly keyOf: (header: TokenHeader) => Promise<string>;
}

/** The keys that tokens are signed with: at most one of them. */
export interface SigningKeySettings {
  readonly secret: string | undefined;
  readonly publicKeyFile: string | undefined;
  readonly jwksUrl: string | undefined;
}

/** An unusable token setting. The message is one line that names the variable. */
export class TokenSettingError extends ExpectedError {
  override readonly name = 'TokenSettingError';
  override readonly exitCode = EXIT.usage;
}

const SECRET_BYTES_MIN = 32;
const RSA_BITS_MIN = 2048;

/** Algorithms of a public key; empty for weak keys and other curves. */
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
  // Anyone could sign with a public key that is used as an HMAC secret.
  if (secret.includes('-----BEGIN') || secret.includes('"kty"')) {
    throw new TokenSettingError('JWT_SECRET: is a key; name its file in JWT_PUBLIC_KEY_FILE');
  }
  return { algorithms: ['HS256'], keyOf: async () => secret };
}

async function fileSource(path: string): Promise<KeySource> {
  const reject = (why: string, cause?: unknown): never => {
    throw new TokenSettingError(`JWT_PUBLIC_KEY_FILE: ${why}`, { cause });
  };
  const text = await readFile(path, 'utf8').catch((cause) => {
    const { code } = cause as NodeJS.ErrnoException;
    // The message omits the path: the setting may hold the key itself by mistake.
    return reject(code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`, cause);
  });
  // Node would silently use the public half of a private key.
  if (text.includes('PRIVATE KEY-----')) reject('holds a private key; the public one is needed');
  let key: KeyObject;
  try {
    key = createPublicKey(text);
  } catch (cause) {
    return reject('holds no public key in PEM form', cause);
  }
  const algorithms = algorithmsOf(key);
  if (algorithms.length === 0) {
    reject('must hold an RSA key of at least 2048 bits, a P-256 key or an Ed25519 key');
  }
  const pem = pemOf(key);
  return { algorithms, keyOf: async () => pem };
}

function remoteSource(url: string): KeySource {
  const find = remoteKeys(url);
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
 * The key source of the settings; undefined if the service accepts no tokens.
 * @throws TokenSettingError for an unusable setting, or two settings that exclude each other
 */
export async function keySourceOf(settings: SigningKeySettings): Promise<KeySource | undefined> {
  const { secret, publicKeyFile, jwksUrl } = settings;
  const used = [secret, publicKeyFile, jwksUrl].filter((each) => each);
  if (used.length > 1) {
    throw new TokenSettingError(
      'JWT_SECRET: JWT_SECRET, JWT_PUBLIC_KEY_FILE and JWT_JWKS_URL exclude each other; set one',
    );
  }
  if (secret) return secretSource(secret);
  if (publicKeyFile) return fileSource(publicKeyFile);
  return jwksUrl ? remoteSource(jwksUrl) : undefined;
}
