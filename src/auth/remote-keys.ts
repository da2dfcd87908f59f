import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
} from 'jose';
import { authUnavailable, invalidToken } from './refusals.ts';
import type { TokenHeader } from './token-form.ts';

/** Times of a remote key set, in milliseconds. */
export interface RemoteKeyTimes {
  /** How long one attempt to read it may take. */
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

/** That no key fits is the token's fault; every other failure is the key source's. */
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

/** What was read last, for the time when nothing can be. */
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
