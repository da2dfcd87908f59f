/** Decay of the counts per exchange period: the half-life is about seven periods. */
const DECAY = 0.9;

/** Estimates how many requests other instances received, from their recent reports. */
export class PeerShare {
  #own = 0;
  #peers = 0;

  /** True once this instance had requests and the others had time to report. */
  get isKnown(): boolean {
    return this.#own > 0;
  }

  /** Adds requests that other instances reported. */
  addPeerRequests(count: number): void {
    this.#peers += count;
  }

  /** Ends a period. @param own requests received here in the period that others have reported */
  endPeriod(own: number): void {
    this.#own = this.#own * DECAY + own;
    this.#peers *= DECAY;
  }

  /** Upper estimate of the requests that others received while this instance received `own`. */
  peerRequests(own: number): number {
    if (this.#peers < 1 || !this.isKnown) return 0;
    return Math.ceil((own * this.#peers) / this.#own) + 1;
  }
}

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

interface BucketEntry {
  /** Theoretical arrival time: when the bucket is full again, in `monotonicMs`. */
  fullAt: number;
  /** Requests counted since the last exchange with other instances. */
  taken: number;
  /** Requests counted in the exchange period before. */
  takenBefore: number;
  readonly share: PeerShare;
  /** Rate of the last request here; null if only other instances had requests. */
  rate: Rate | null;
}

const newEntry = (fullAt: number): BucketEntry => ({
  fullAt,
  taken: 0,
  takenBefore: 0,
  share: new PeerShare(),
  rate: null,
});

/** The state of an unknown name. */
const FULL_BUCKET: Readonly<BucketEntry> = newEntry(0);

/**
 * Token buckets by name, as the generic cell rate algorithm (ITU-T I.371): one number each. A name
 * whose bucket is full again is evicted; beyond `namesMax`, so is the least recently used one. All
 * times are those of `monotonicMs`.
 */
export class Buckets {
  readonly #entries = new Map<string, BucketEntry>();
  readonly #namesMax: number;
  /** Share over all names, used for a name without a known share. */
  readonly #share = new PeerShare();
  /** Number of other instances. */
  #peers = 0;

  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Sets the number of other instances that share the buckets. */
  setPeers(count: number): void {
    this.#peers = count;
  }

  /** Rate of the last request of a name; null if this instance had none. */
  rateOf(name: string): Rate | null {
    return this.#entries.get(name)?.rate ?? null;
  }

  /** Takes one token if the request is allowed. */
  take(name: string, rate: Rate, nowMs: number): RateDecision {
    const { perMinute, burst } = rate;
    const interval = MINUTE_MS / perMinute;
    const entry = this.#entryOf(name, nowMs);
    entry.rate = rate;
    const start = Math.max(entry.fullAt, nowMs);
    const isAllowed = start + interval - nowMs <= burst * interval + 1e-6;
    if (isAllowed) {
      entry.fullAt = start + interval;
      entry.taken += 1;
    }
    return { isAllowed, ...this.#available(entry, interval, burst, nowMs) };
  }

  /** Takes one token even if the bucket is empty, for a request that was allowed before. */
  charge(name: string, rate: Rate, nowMs: number): void {
    const entry = this.#entryOf(name, nowMs);
    entry.rate = rate;
    entry.fullAt = Math.max(entry.fullAt, nowMs) + MINUTE_MS / rate.perMinute;
    entry.taken += 1;
  }

  /** The decision of `take`, without taking a token. */
  peek(name: string, { perMinute, burst }: Rate, nowMs: number): RateDecision {
    const interval = MINUTE_MS / perMinute;
    const entry = this.#entries.get(name) ?? FULL_BUCKET;
    const state = this.#available(entry, interval, burst, nowMs);
    return { isAllowed: state.remaining >= 1, ...state };
  }

  /**
   * Adds requests that other instances allowed since `sinceMs`. They count as taken at that time,
   * so the tokens refilled since then stay available.
   */
  addPeerCount(
    name: string,
    count: number,
    { perMinute }: Pick<Rate, 'perMinute'>,
    sinceMs: number,
  ): void {
    const entry = this.#entryOf(name, sinceMs);
    entry.fullAt = Math.max(entry.fullAt, sinceMs) + (count * MINUTE_MS) / perMinute;
    entry.share.addPeerRequests(count);
    this.#share.addPeerRequests(count);
  }

  /** Requests counted here since the last call, by name. */
  drain(): Map<string, number> {
    const taken = new Map<string, number>();
    let all = 0;
    for (const [name, entry] of this.#entries) {
      if (entry.taken > 0) taken.set(name, entry.taken);
      entry.share.endPeriod(entry.takenBefore);
      all += entry.takenBefore;
      entry.takenBefore = entry.taken;
      entry.taken = 0;
    }
    this.#share.endPeriod(all);
    return taken;
  }

  /** Evicts buckets that are full and have no counts to report. */
  sweep(nowMs: number): void {
    for (const [name, entry] of this.#entries) {
      if (entry.fullAt <= nowMs && entry.taken === 0) this.#entries.delete(name);
    }
  }

  #entryOf(name: string, nowMs: number): BucketEntry {
    const entry = this.#entries.get(name) ?? newEntry(nowMs);
    // Moved to the end, so that the first entry is the least recently used one.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    if (this.#entries.size > this.#namesMax) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    return entry;
  }

  /**
   * Upper estimate of the requests that peers allowed and have not reported yet. Peers write once a
   * second and are read once a second, so up to two periods are missing. A peer enforces the same
   * limit without the requests counted here meanwhile, which bounds its own requests. They count
   * twice, because the missing periods of the peer may be twice as long. Until a peer could
   * report, it is assumed to have as many requests as this instance.
   * @param left tokens left by the counts known here
   */
  #unreported({ share, taken, takenBefore }: Readonly<BucketEntry>, left: number): number {
    const own = taken + takenBefore;
    const known = share.isKnown ? share : this.#share;
    const likely = known.isKnown ? known.peerRequests(own) : this.#peers * own + 1;
    return Math.min(likely, this.#peers * Math.max(Math.ceil(left + 2 * own), 0));
  }

  #available(entry: Readonly<BucketEntry>, interval: number, burst: number, nowMs: number) {
    const owed = Math.max(entry.fullAt - nowMs, 0) / interval;
    const remaining = Math.max(Math.floor(burst - owed + 1e-9), 0);
    const unreported = remaining === 0 ? this.#unreported(entry, burst - owed) : 0;
    // `remaining` grows when `owed` falls to the next whole number below.
    const untilMore = (owed + unreported - Math.max(burst - remaining - 1, 0)) * interval;
    const resetSeconds = owed === 0 ? 0 : Math.max(Math.ceil(untilMore / 1000), 1);
    return { remaining, resetSeconds };
  }
}
