import { crc32 } from 'node:zlib';
import type { MarketSlug } from '../catalog/markets.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { Plan } from '../prices/plan/plan.ts';
import {
  isSameSnapshot,
  isShownBy,
  type Snapshot,
  type SnapshotPlan,
  type SnapshotReader,
} from '../prices/snapshot.ts';
import type { Coding, CodingPreference } from '../std/negotiation.ts';
import { type Budget, CacheEntry, OVERHEAD_BYTES } from './budget.ts';

/** Most bytes of an answer that is copied into memory of its own while it is written. */
export const HELD_BYTES = 16_777_216;

/** Largest share of the budget for one answer. */
const ANSWER_SHARE = 1 / 32;

/** Bytes of the objects around the bytes of an answer: headers, snapshot and key. */
const OBJECT_BYTES = 2_048;

/** Slices smaller than `below` are copied into buffers of about `upTo` bytes. */
interface Joining {
  readonly below: number;
  readonly upTo: number;
}

/** Writing one slice costs about as much as copying `below` bytes. */
const SMALL: Joining = { below: 8_192, upTo: 65_536 };

/**
 * Copies the whole answer: writing hundreds of slices takes half as long as sending their bytes.
 */
const ALL: Joining = { below: Number.POSITIVE_INFINITY, upTo: 1_048_576 };

/** Copies small slices together. Large slices stay as they are. */
export function joinedSlices(
  slices: readonly Buffer[],
  { below, upTo }: Joining = SMALL,
): readonly Buffer[] {
  const joined: Buffer[] = [];
  let small: Buffer[] = [];
  let bytes = 0;
  const flush = (): void => {
    if (small.length === 0) return;
    // A buffer of the exact size: a cached slice must not retain a larger buffer.
    const whole = Buffer.allocUnsafeSlow(bytes);
    let at = 0;
    for (const slice of small) at += slice.copy(whole, at);
    joined.push(whole);
    small = [];
    bytes = 0;
  };
  for (const slice of slices) {
    const isSmall = slice.length < below;
    if (!isSmall || bytes >= upTo) flush();
    if (isSmall) {
      small.push(slice);
      bytes += slice.length;
    } else joined.push(slice);
  }
  flush();
  return joined;
}

/** The metadata of a sent answer. */
export interface Sent {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  /** The ETag; null if clients must not cache the answer. */
  readonly tag: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly wanted: CodingPreference;
  /** The content coding of its bytes. */
  readonly coding: Coding | null;
}

/** A cached answer, valid for equal requests at the same snapshot. */
export class SentAnswer extends CacheEntry {
  readonly sent: Omit<Sent, 'plan'>;
  readonly slices: readonly Buffer[];
  /** Length of the answer in bytes. */
  readonly length: number;
  readonly bytes: number;
  /** The markets that its warnings may name; null if they name none. */
  readonly #readableMarkets: readonly MarketSlug[] | null;
  /** A part of the plan: its codes may take more memory than the answer. */
  readonly #plan: SnapshotPlan;
  /** The newest revision at which it is known to be current. */
  #newest: NewestRevision;
  readonly detach: () => void;

  constructor(
    { plan, ...sent }: Sent,
    at: NewestRevision,
    slices: readonly Buffer[],
    detach: () => void,
  ) {
    super();
    const { market, options, page, codes, readableMarkets } = plan;
    this.#plan = { market, options, page };
    this.#readableMarkets = codes && readableMarkets;
    this.#newest = at;
    this.sent = sent;
    this.slices = slices;
    this.detach = detach;
    this.length = slices.reduce((sum, { length }) => sum + length, 0);
    const headers = JSON.stringify(sent.headers).length;
    this.bytes = this.length + 2 * headers + OBJECT_BYTES + OVERHEAD_BYTES;
  }

  /** True if a client that may read these markets may receive it: its warnings may name markets. */
  isOpenTo(markets: () => readonly MarketSlug[]): boolean {
    return this.#readableMarkets === null || this.#readableMarkets.join() === markets().join();
  }

  /** True if it is also the answer at the newest revision. */
  async isCurrent(newest: NewestRevision, snapshotOf: SnapshotReader): Promise<boolean> {
    if (this.#newest.order >= newest.order) return true;
    if (!isShownBy(newest, this.#plan)) return false;
    if (!isSameSnapshot(this.sent.snapshot, await snapshotOf(this.#plan, newest))) return false;
    this.#newest = newest;
    return true;
  }
}

/** Most checksums of requests that were made once: caching every answer would cost too much. */
const ONCE_MAX = 1_000;

/** The cached answers of a market, by the text of the request. Caches only repeated requests. */
export class SentAnswers {
  readonly #budget: Budget;
  readonly #sent = new Map<string, SentAnswer>();
  /** Checksums of requests that were made once. */
  readonly #once = new Set<number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  get(request: string): SentAnswer | undefined {
    return this.#sent.get(request);
  }

  /** True if the same request was made recently. Records the request. */
  isRepeated(request: string): boolean {
    const sum = crc32(request);
    if (this.#once.delete(sum)) return true;
    this.#once.add(sum);
    if (this.#once.size > ONCE_MAX) this.#once.delete(this.#once.values().next().value as number);
    return false;
  }

  /** Most bytes of a cached answer. */
  get bytesMax(): number {
    return Math.min(HELD_BYTES, ANSWER_SHARE * this.#budget.state.limit);
  }

  /** Caches the answer to a request and replaces an older one. */
  add(request: string, sent: Sent, at: NewestRevision, parts: readonly Buffer[]): void {
    const older = this.#sent.get(request);
    if (older) this.#budget.remove(older);
    const detach = (): void => {
      if (this.#sent.get(request) === answer) this.#sent.delete(request);
    };
    const answer = new SentAnswer(sent, at, joinedSlices(parts, ALL), detach);
    if (this.#budget.add(answer)) this.#sent.set(request, answer);
    else this.#sent.delete(request);
  }
}

/** Slices without their first bytes. */
function* skipped(bytes: number, slices: Iterable<Buffer>) {
  let left = bytes;
  for (const slice of slices) {
    if (left < slice.length) yield slice.subarray(left);
    left = Math.max(0, left - slice.length);
  }
}

/** Bytes of a buffer object beside its content. */
const SLICE_BYTES = 128;

/**
 * The slices of a long answer: slices of fragments and heads, with the small ones copied together.
 * It is evicted before the entries whose memory it shares.
 */
export class LongAnswer extends CacheEntry {
  override readonly isEvictedFirst = true;
  /** Null after eviction. */
  slices: readonly Buffer[] | null;
  /** Length of the answer in bytes. */
  readonly length: number;
  readonly bytes: number;
  readonly #cache: Map<string, LongAnswer>;
  readonly #key: string;

  constructor(cache: Map<string, LongAnswer>, key: string, parts: readonly Buffer[]) {
    super();
    const slices = joinedSlices(parts);
    const shared = new Set(parts);
    const own = slices.filter((slice) => !shared.has(slice));
    this.slices = slices;
    this.length = parts.reduce((sum, { length }) => sum + length, 0);
    const around = OVERHEAD_BYTES + 2 * key.length + SLICE_BYTES * slices.length;
    this.bytes = own.reduce((sum, { length }) => sum + length, around);
    this.#cache = cache;
    this.#key = key;
  }

  /**
   * Its slices. After eviction the rest comes from `again`, so that a slow client does not retain
   * evicted memory.
   * @param again encodes all slices of the answer again
   */
  *slicesOr(again: () => Iterable<Buffer>): Generator<Buffer> {
    let bytes = 0;
    for (let index = 0; this.slices !== null; index += 1) {
      const slice = this.slices[index];
      if (slice === undefined) return;
      bytes += slice.length;
      yield slice;
    }
    yield* skipped(bytes, again());
  }

  detach(): void {
    this.slices = null;
    this.#cache.delete(this.#key);
  }
}
