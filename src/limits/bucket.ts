/** A rate limit: requests per minute on average, and requests at once. */
export interface Rate {
  /** 0 for no limit. */
  readonly perMinute: number;
  readonly burst: number;
}

/** The result of a rate check. Seconds are rounded up, so waiting for them is sufficient. */
export interface RateDecision {
  readonly isAllowed: boolean;
  /** Requests that are allowed now, after this one. */
  readonly remaining: number;
  /** Seconds until `remaining` grows by one; 0 if the bucket is full. */
  readonly resetSeconds: number;
}

const MINUTE_MS = 60_000;

/** Whole milliseconds of a monotonic clock. */
export const monotonicMs = (): number => Math.floor(performance.now());

function available(fullAt: number, { perMinute, burst }: Rate, nowMs: number) {
  const interval = MINUTE_MS / perMinute;
  const owed = Math.max(fullAt - nowMs, 0) / interval;
  const remaining = Math.max(Math.floor(burst - owed + 1e-9), 0);
  // `remaining` grows when `owed` falls to the next whole number below.
  const untilMore = (owed - Math.max(burst - remaining - 1, 0)) * interval;
  const resetSeconds = owed === 0 ? 0 : Math.max(Math.ceil(untilMore / 1000), 1);
  return { remaining, resetSeconds };
}

/**
 * Token buckets by name, as the generic cell rate algorithm (ITU-T I.371): one number each. Beyond
 * `namesMax` names the least recently used one is evicted. All times are those of `monotonicMs`.
 */
export class Buckets {
  /** When the bucket of a name is full again: its theoretical arrival time. */
  readonly #fullAt = new Map<string, number>();
  readonly #namesMax: number;

  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  get size(): number {
    return this.#fullAt.size;
  }

  /** Takes one token if the request is allowed. */
  take(name: string, rate: Rate, nowMs: number): RateDecision {
    const interval = MINUTE_MS / rate.perMinute;
    const start = Math.max(this.#fullAt.get(name) ?? 0, nowMs);
    const isAllowed = start + interval - nowMs <= rate.burst * interval + 1e-6;
    const fullAt = isAllowed ? start + interval : start;
    this.#set(name, fullAt);
    return { isAllowed, ...available(fullAt, rate, nowMs) };
  }

  /** Takes one token even if the bucket is empty, for a request that was allowed before. */
  charge(name: string, { perMinute }: Rate, nowMs: number): void {
    this.#set(name, Math.max(this.#fullAt.get(name) ?? 0, nowMs) + MINUTE_MS / perMinute);
  }

  /** The decision of `take`, without taking a token. */
  peek(name: string, rate: Rate, nowMs: number): RateDecision {
    const state = available(this.#fullAt.get(name) ?? 0, rate, nowMs);
    return { isAllowed: state.remaining >= 1, ...state };
  }

  #set(name: string, fullAt: number): void {
    // Moved to the end, so that the first name is the least recently used one.
    this.#fullAt.delete(name);
    this.#fullAt.set(name, fullAt);
    if (this.#fullAt.size <= this.#namesMax) return;
    const [oldest] = this.#fullAt.keys();
    if (oldest !== undefined) this.#fullAt.delete(oldest);
  }
}
