/** Decay of the counts per turn: half is left after about seven turns. */
const KEPT = 0.9;

/** Estimates the share of requests that other instances received, from their recent reports. */
export class Share {
  #here = 0;
  #elsewhere = 0;

  /** True once requests came here and other instances had time to report. */
  get isKnown(): boolean {
    return this.#here > 0;
  }

  /** Adds requests that other instances reported. */
  addElsewhere(count: number): void {
    this.#elsewhere += count;
  }

  /** Adds requests received here for which others had time to report, and ends a turn. */
  endTurn(here: number): void {
    this.#here = this.#here * KEPT + here;
    this.#elsewhere *= KEPT;
  }

  /** Upper estimate of the requests received elsewhere while `here` were received here. */
  elsewhere(here: number): number {
    if (this.#elsewhere < 1 || !this.isKnown) return 0;
    return Math.ceil((here * this.#elsewhere) / this.#here) + 1;
  }
}

/** How much someone may do: so many requests a minute on average, so many of them at once. */
export interface Rate {
  /** 0 for no limit. */
  readonly perMinute: number;
  readonly burst: number;
}

/** What a bucket says of one request. Seconds are whole and rounded up: waiting them is enough. */
export interface Verdict {
  readonly isAllowed: boolean;
  /** Requests that would be allowed right now, after this one. */
  readonly remaining: number;
  /** Seconds until one more is allowed than now; until the first one, when none is. */
  readonly resetSeconds: number;
}

const MINUTE_MS = 60_000;

/** The moment in whole milliseconds, by a clock that is never set back. */
export const momentMs = (): number => Math.floor(performance.now());

interface Entry {
  /** The theoretical arrival time: when the bucket is full again, in milliseconds. */
  fullAt: number;
  /** Requests counted since the last exchange with other instances. */
  taken: number;
  /** Those counted between that exchange and the one before. */
  takenBefore: number;
  readonly share: Share;
  /** That of the last request here; null where all came elsewhere. */
  rate: Rate | null;
}

const newEntry = (fullAt: number): Entry => ({
  fullAt,
  taken: 0,
  takenBefore: 0,
  share: new Share(),
  rate: null,
});

/** Stands in for a name of which nothing is known. */
const NOBODY: Readonly<Entry> = newEntry(0);

/**
 * Token buckets by name, as the generic cell rate algorithm (ITU-T I.371): one number each. A name
 * whose bucket is full again is forgotten, and beyond `namesMax` the one used longest ago. Moments
 * are those of `momentMs`.
 */
export class Buckets {
  readonly #entries = new Map<string, Entry>();
  readonly #namesMax: number;
  /** Of all names: what is likely for one of which nothing is known yet. */
  readonly #share = new Share();
  /** How many other instances there are. */
  #others = 0;

  constructor(namesMax: number) {
    this.#namesMax = namesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Hears how many other instances take from the same buckets. */
  meet(others: number): void {
    this.#others = others;
  }

  /** The rate of the last request of a name that is known here. */
  rateOf(name: string): Rate | null {
    return this.#entries.get(name)?.rate ?? null;
  }

  /** Takes one request, if it is allowed; a refused one takes nothing. */
  take(name: string, rate: Rate, nowMs: number): Verdict {
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
    return { isAllowed, ...this.#stateOf(entry, interval, burst, nowMs) };
  }

  /** Takes what was allowed when it began, whatever is left by now: the rest is owed. */
  charge(name: string, rate: Rate, nowMs: number): void {
    const entry = this.#entryOf(name, nowMs);
    entry.rate = rate;
    entry.fullAt = Math.max(entry.fullAt, nowMs) + MINUTE_MS / rate.perMinute;
    entry.taken += 1;
  }

  /** What `take` would say, without taking. */
  look(name: string, { perMinute, burst }: Rate, nowMs: number): Verdict {
    const interval = MINUTE_MS / perMinute;
    const entry = this.#entries.get(name) ?? NOBODY;
    const state = this.#stateOf(entry, interval, burst, nowMs);
    return { isAllowed: state.remaining >= 1, ...state };
  }

  /**
   * Counts what other instances have taken from the same bucket since a moment: as if it had been
   * taken then, so that what has dripped out since is owed no more.
   */
  takenElsewhere(
    name: string,
    count: number,
    { perMinute }: Pick<Rate, 'perMinute'>,
    sinceMs: number,
  ): void {
    const entry = this.#entryOf(name, sinceMs);
    entry.fullAt = Math.max(entry.fullAt, sinceMs) + (count * MINUTE_MS) / perMinute;
    entry.share.addElsewhere(count);
    this.#share.addElsewhere(count);
  }

  /** What was taken here since the last call, by name. */
  drain(): Map<string, number> {
    const taken = new Map<string, number>();
    let all = 0;
    for (const [name, entry] of this.#entries) {
      if (entry.taken > 0) taken.set(name, entry.taken);
      entry.share.endTurn(entry.takenBefore);
      all += entry.takenBefore;
      entry.takenBefore = entry.taken;
      entry.taken = 0;
    }
    this.#share.endTurn(all);
    return taken;
  }

  /** Forgets the buckets that are full again and have nothing to tell. */
  sweep(nowMs: number): void {
    for (const [name, entry] of this.#entries) {
      if (entry.fullAt <= nowMs && entry.taken === 0) this.#entries.delete(name);
    }
  }

  #entryOf(name: string, nowMs: number): Entry {
    const entry = this.#entries.get(name) ?? newEntry(nowMs);
    // Moved to the end: the first of the map is the one used longest ago.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    if (this.#entries.size > this.#namesMax) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    return entry;
  }

  /**
   * What others have taken by now and will tell: they tell once a second and are read once a
   * second, so that what they took in up to two turns is missing. Each of them keeps to the limit
   * and knows all that is owed here but what was taken here meanwhile, so that it took no more
   * than that leaves of the burst; doubled, as the turns counted here may be half of those. Until
   * they had the time to tell of anything, they are taken to be asked as often as this one.
   */
  #unheard({ share, taken, takenBefore }: Readonly<Entry>, left: number): number {
    const here = taken + takenBefore;
    const known = share.isKnown ? share : this.#share;
    const likely = known.isKnown ? known.elsewhere(here) : this.#others * here + 1;
    return Math.min(likely, this.#others * Math.max(Math.ceil(left + 2 * here), 0));
  }

  #stateOf(entry: Readonly<Entry>, interval: number, burst: number, nowMs: number) {
    const owed = Math.max(entry.fullAt - nowMs, 0) / interval;
    const remaining = Math.max(Math.floor(burst - owed + 1e-9), 0);
    const unheard = remaining === 0 ? this.#unheard(entry, burst - owed) : 0;
    // One more is allowed once what is owed has fallen to the next whole number below.
    const untilMore = (owed + unheard - Math.max(burst - remaining - 1, 0)) * interval;
    const resetSeconds = owed === 0 ? 0 : Math.max(Math.ceil(untilMore / 1000), 1);
    return { remaining, resetSeconds };
  }
}
