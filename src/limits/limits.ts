import { isIPv4, isIPv6 } from 'node:net';
import { type QueueBounds, type QueueGroup, type Release, Semaphore } from '../std/semaphore.ts';
import { Buckets, type Rate, type Verdict } from './bucket.ts';

/** Nothing waits: a request beyond the limit is rejected at once. */
const NO_QUEUE: QueueBounds = { waitingMax: 0, waitMs: 0 };

/** The eight groups of an IPv6 address, or null when it is none. */
function groupsOf(address: string): string[] | null {
  if (!isIPv6(address)) return null;
  const [head = '', tail] = address.split('::');
  const split = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = split(head);
  const after = tail === undefined ? [] : split(tail);
  const missing = Math.max(8 - before.length - after.length, 0);
  return [...before, ...Array.from({ length: missing }, () => '0'), ...after];
}

/**
 * The key of a client in a limit by address: an IPv4 address, or the /64 of an IPv6 address, since
 * a single machine has all of those (RFC 6177).
 */
export function clientNetwork(address: string): string {
  if (isIPv4(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const groups = groupsOf(address.replace(/%.*$/, ''));
  if (groups === null) return address;
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Limits the concurrent requests of each name. */
export class Concurrency {
  readonly #running = new Map<string, Semaphore>();

  get size(): number {
    return this.#running.size;
  }

  /** Admits one more request of a name; null if it has reached `most`. 0 is no limit. */
  enter(name: string, most: number): Release | null {
    const semaphore = this.#running.get(name) ?? new Semaphore(0, NO_QUEUE);
    const release = semaphore.tryAcquire(most);
    if (release === null) return null;
    this.#running.set(name, semaphore);
    return () => {
      release();
      if (semaphore.inUse === 0 && this.#running.get(name) === semaphore)
        this.#running.delete(name);
    };
  }
}

/** What one principal may do. A number of 0 is no limit. */
export interface PrincipalLimits extends Rate {
  /** Requests at the same time. */
  readonly concurrent: number;
}

/** Limits of an API key's own. 0 is no limit; null is the limit of the settings. */
export interface KeyLimits {
  readonly perMinute: number | null;
  readonly burst: number | null;
  readonly concurrent: number | null;
}

export interface LimitSettings {
  readonly principal: PrincipalLimits;
  /** Failed authentications of one network; 0 is no limit. */
  readonly failuresPerMinute: number;
  /** Requests processed at a time (0 for no limit), and the bounds of their queue. */
  readonly gate: QueueBounds & { readonly runningMax: number };
}

/** What was counted of one name, for other instances. */
export interface Counted {
  readonly name: string;
  readonly count: number;
  /** The rate that it was counted by. */
  readonly perMinute: number;
}

/** Names that are remembered: more clients than that at once share nothing, and nothing grows. */
const NAMES_MAX = 100_000;

/** The limits of one instance of the service. Nothing here waits for another machine. */
export class Limits {
  readonly gate: Semaphore;
  readonly concurrency = new Concurrency();
  readonly #settings: LimitSettings;
  readonly #principals = new Buckets(NAMES_MAX);
  readonly #failures = new Buckets(NAMES_MAX);

  /** @param queues the queues for the database, without which no request can be answered */
  constructor(settings: LimitSettings, queues?: QueueGroup) {
    this.#settings = settings;
    this.gate = new Semaphore(settings.gate.runningMax, settings.gate, queues);
  }

  /** Principals whose requests are being counted. */
  get principals(): number {
    return this.#principals.size;
  }

  /** The limits of a principal: its own, and those of the settings where it has none. */
  of(own: KeyLimits | null): PrincipalLimits {
    const usual = this.#settings.principal;
    const rate =
      own?.perMinute == null ? usual : { perMinute: own.perMinute, burst: own.burst ?? 1 };
    return {
      perMinute: rate.perMinute,
      burst: rate.burst,
      concurrent: own?.concurrent ?? usual.concurrent,
    };
  }

  /** Counts one request of a principal; null where nothing limits it. */
  takeRequest(name: string, limits: PrincipalLimits, nowMs: number): Verdict | null {
    if (limits.perMinute === 0) return null;
    return this.#principals.take(name, limits, nowMs);
  }

  /** Seconds to wait for a network that failed to authenticate too often, else null. */
  failedTooOften(network: string, nowMs: number): number | null {
    const rate = this.#failureRate();
    if (rate === null) return null;
    const { isAllowed, resetSeconds } = this.#failures.look(network, rate, nowMs);
    return isAllowed ? null : resetSeconds;
  }

  /** Counts a failure, also one of many at once that were looked at before any was known. */
  countFailure(network: string, nowMs: number): void {
    const rate = this.#failureRate();
    if (rate !== null) this.#failures.charge(network, rate, nowMs);
  }

  /** What was counted here since the last call, for other instances. */
  drain(): { readonly principals: Counted[]; readonly failures: Map<string, number> } {
    const principals = [...this.#principals.drain()].map(([name, count]) => {
      return { name, count, perMinute: this.#principals.rateOf(name)?.perMinute ?? 0 };
    });
    return { principals, failures: this.#failures.drain() };
  }

  /** Hears how many other instances count the same. */
  meet(others: number): void {
    this.#principals.meet(others);
    this.#failures.meet(others);
  }

  /**
   * Counts what other instances have seen since a moment. A principal that never came here has its
   * bucket too, by the rate that they tell: only they have read its key, where its own rate stands.
   */
  principalsElsewhere({ name, count, perMinute }: Counted, sinceMs: number): void {
    const rate = this.#principals.rateOf(name) ?? { perMinute };
    if (rate.perMinute > 0) this.#principals.takenElsewhere(name, count, rate, sinceMs);
  }

  failuresElsewhere(network: string, count: number, sinceMs: number): void {
    const rate = this.#failureRate();
    if (rate !== null) this.#failures.takenElsewhere(network, count, rate, sinceMs);
  }

  /** Forgets what is full again. */
  sweep(nowMs: number): void {
    this.#principals.sweep(nowMs);
    this.#failures.sweep(nowMs);
  }

  #failureRate(): Rate | null {
    const { failuresPerMinute } = this.#settings;
    return failuresPerMinute === 0
      ? null
      : { perMinute: failuresPerMinute, burst: failuresPerMinute };
  }
}
