import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { MarketSlug } from '../../catalog/markets.ts';
import type { NewestRevision } from '../../db/newest-revision.ts';
import type { Plan, RequestOrigin } from '../../prices/plan/plan.ts';
import {
  isSameSnapshot,
  isShownBy,
  type Snapshot,
  type SnapshotPlan,
  type SnapshotReader,
} from '../../prices/snapshot.ts';
import { type Body, BodyStream } from '../../std/body-stream.ts';
import type { Coding } from '../../std/negotiation.ts';
import type { Payload } from './send.ts';

/** Most bytes of a kept answer. */
const ANSWER_BYTES_MAX = 33_554_432;

/** Largest share of the cache for one answer. */
const ANSWER_SHARE = 1 / 4;

/** Most bytes of answers that are being collected: slow readers hold them until their end. */
const COLLECTED_BYTES_MAX = 67_108_864;

/** Most requests that were made once: keeping every answer would cost too much. */
const ONCE_MAX = 4_000;

/** The plan and snapshot of an answer, and its headers. */
export interface AnswerOrigin {
  /** Null for an answer about several markets, which is current until the next commit. */
  readonly market: MarketOrigin | null;
  /** The markets that its warnings or refusals may name; null if they may name none. */
  readonly readableMarkets: readonly MarketSlug[] | null;
  /** The newest revision at which it is known to be current. */
  readonly newest: NewestRevision;
  /** The ETag; null if clients must not cache the answer. */
  readonly tag: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The plan of an answer about one market, and the snapshot at which it was made. */
interface MarketOrigin {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Kept answers; null if they are disabled. */
    answers: AnswerCache | null;
  }
}

/**
 * Whole answers as they were sent, in front of both readers of prices. Keeps the answer to the
 * second of two equal requests. Evicts the least recently used.
 */
export class AnswerCache {
  readonly #answers: LRUCache<string, KeptAnswer>;
  readonly #once = new LRUCache<string, true>({ max: ONCE_MAX });
  #collecting = 0;
  #repeats = 0;
  #evictions = 0;

  /** @param bytesMax most bytes of all kept answers */
  constructor(bytesMax: number) {
    const atLeastOne = (bytes: number): number => Math.max(1, Math.floor(bytes));
    this.#answers = new LRUCache({
      maxSize: atLeastOne(bytesMax),
      maxEntrySize: atLeastOne(Math.min(ANSWER_BYTES_MAX, ANSWER_SHARE * bytesMax)),
      sizeCalculation: ({ bytes }) => bytes,
      dispose: (_answer, _key, reason) => {
        if (reason === 'evict') this.#evictions += 1;
      },
    });
  }

  get state() {
    return {
      bytes: this.#answers.calculatedSize,
      limit: this.#answers.maxSize,
      /** Bytes of answers that are being collected. */
      collecting: this.#collecting,
      /** Requests that a kept answer served. */
      repeats: this.#repeats,
      evictions: this.#evictions,
    };
  }

  /**
   * The kept answer to a request; null if none is current.
   * @param key see `requestKey`
   * @param checkRevision runs a revision check that begins after the request arrived
   */
  async find(
    key: string,
    { readableMarkets }: Pick<RequestOrigin, 'readableMarkets'>,
    checkRevision: () => Promise<NewestRevision>,
    snapshotOf: SnapshotReader,
  ): Promise<KeptAnswer | null> {
    const kept = this.#answers.get(key);
    if (kept === undefined || !kept.isOpenTo(readableMarkets)) return null;
    if (!(await kept.isCurrent(await checkRevision(), snapshotOf))) return null;
    this.#repeats += 1;
    return kept;
  }

  /**
   * Keeps the answer to a repeated request, once all of its bytes were sent.
   * @param payload the coded bytes
   * @returns the payload to send instead, with the same bytes
   */
  keep(key: string, origin: AnswerOrigin, payload: Payload): Payload {
    if (isPastWithCodes(origin) || !this.#isRepeated(key)) return payload;
    const { bytes, coding } = payload;
    const add = (slices: readonly Buffer[]): void => {
      this.#answers.set(key, new KeptAnswer(origin, coding, slices));
    };
    if (!(bytes instanceof BodyStream)) {
      add([ownCopy([bytes])]);
      return payload;
    }
    const { batches, bytes: length } = bytes.body;
    if (length !== null && length > this.#answers.maxEntrySize) return payload;
    const body = { batches: this.#collected(batches, add), bytes: length };
    return { bytes: new BodyStream(body), coding };
  }

  /** True if the same request was made recently. Records the request. */
  #isRepeated(key: string): boolean {
    const isRepeated = this.#once.delete(key);
    if (!isRepeated) this.#once.set(key, true);
    return isRepeated;
  }

  /** Passes batches on and collects copies, unless they take too much memory. */
  async *#collected(batches: Body['batches'], done: (slices: readonly Buffer[]) => void) {
    let copies = new Copies();
    let isCollected = true;
    try {
      for await (const batch of batches) {
        const bytes = batch.reduce((sum, { length }) => sum + length, 0);
        isCollected &&=
          copies.bytes + bytes <= this.#answers.maxEntrySize &&
          this.#collecting + bytes <= COLLECTED_BYTES_MAX;
        if (isCollected) {
          this.#collecting += bytes;
          copies.add(batch, bytes);
        } else {
          this.#collecting -= copies.bytes;
          copies = new Copies();
        }
        yield batch;
      }
      if (isCollected) done(copies.finish());
    } finally {
      this.#collecting -= copies.bytes;
    }
  }
}

/** Size to which slices are joined: writing hundreds of slices takes half as long as sending. */
const JOINED_BYTES = 1_048_576;

/** Collects copies of slices, joined. */
class Copies {
  bytes = 0;
  readonly #joined: Buffer[] = [];
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  add(slices: readonly Buffer[], bytes: number): void {
    this.bytes += bytes;
    this.#pending.push(...slices);
    this.#pendingBytes += bytes;
    if (this.#pendingBytes >= JOINED_BYTES) this.finish();
  }

  /** All bytes so far. */
  finish(): readonly Buffer[] {
    if (this.#pendingBytes > 0) this.#joined.push(ownCopy(this.#pending));
    this.#pending = [];
    this.#pendingBytes = 0;
    return this.#joined;
  }
}

/** Copies slices into memory of the exact size: a kept answer must not retain a larger buffer. */
function ownCopy(slices: readonly Buffer[]): Buffer {
  const copy = Buffer.allocUnsafeSlow(slices.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const slice of slices) at += slice.copy(copy, at);
  return copy;
}

/** True if later commits change the warnings of an answer: they name prices that were added. */
const isPastWithCodes = ({ market, newest }: AnswerOrigin): boolean =>
  market !== null && market.plan.codes !== null && !isShownBy(newest, market.plan);

/** Bytes of the objects around the bytes of an answer: headers, snapshot and key. */
const OBJECT_BYTES = 2_304;

/** The bytes of a whole answer, valid for equal requests at the same snapshot. */
export class KeptAnswer {
  readonly origin: Pick<AnswerOrigin, 'tag' | 'headers'>;
  /** The content coding of its bytes. */
  readonly coding: Coding | null;
  readonly slices: readonly Buffer[];
  /** Length of the answer in bytes. */
  readonly length: number;
  /** An estimate of its memory. */
  readonly bytes: number;
  /** A part of the plan: its codes may take more memory than the answer. */
  readonly #market: { readonly plan: SnapshotPlan; readonly snapshot: Snapshot } | null;
  readonly #readableMarkets: readonly MarketSlug[] | null;
  #newest: NewestRevision;

  constructor(
    { market, readableMarkets, newest, ...origin }: AnswerOrigin,
    coding: Coding | null,
    slices: readonly Buffer[],
  ) {
    this.#market = market && { plan: snapshotPlanOf(market.plan), snapshot: market.snapshot };
    this.#readableMarkets = readableMarkets;
    this.#newest = newest;
    this.origin = origin;
    this.coding = coding;
    this.slices = slices;
    this.length = slices.reduce((sum, { length }) => sum + length, 0);
    this.bytes = this.length + 2 * JSON.stringify(origin.headers).length + OBJECT_BYTES;
  }

  /** True if a client that may read these markets may receive it: its warnings may name markets. */
  isOpenTo(markets: () => readonly MarketSlug[]): boolean {
    return this.#readableMarkets === null || this.#readableMarkets.join() === markets().join();
  }

  /** True if it is also the answer at the newest revision. */
  async isCurrent(newest: NewestRevision, snapshotOf: SnapshotReader): Promise<boolean> {
    if (this.#newest.order >= newest.order) return true;
    if (this.#market === null) return false;
    const { plan, snapshot } = this.#market;
    // See `isPastWithCodes`.
    if (this.#readableMarkets !== null && !isShownBy(newest, plan)) return false;
    if (!isSameSnapshot(snapshot, await snapshotOf(plan, newest))) return false;
    this.#newest = newest;
    return true;
  }
}

const snapshotPlanOf = ({ market, options, page }: SnapshotPlan): SnapshotPlan => ({
  market,
  options,
  page,
});

/** Maximum length of a key; longer keys are hashed. */
const KEY_MAX = 512;

/**
 * A text that is equal for equal requests. Apart from them, an answer depends only on the
 * snapshot and, if the request names codes, on the markets that the principal may read.
 * @param body the bytes of the body, one character each
 */
export function requestKey({ method, url, headers }: FastifyRequest, body: string): string {
  const { accept = '', 'accept-encoding': coding = '' } = headers;
  const text = `${method === 'POST' ? 'POST' : 'GET'}\n${url}\n${accept}\n${coding}\n${body}`;
  return text.length <= KEY_MAX ? text : hash('sha256', text, 'base64');
}
