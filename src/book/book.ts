import { MARKETS, type Market } from '../catalog/markets.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { Readers } from '../prices/answer/answer.ts';
import type { Plan } from '../prices/plan/plan.ts';
import { isShownBy } from '../prices/snapshot.ts';
import {
  type BuildContext,
  buildEdition,
  canRefresh,
  differenceOf,
  isFresh,
  refreshEdition,
} from './build.ts';
import type { Edition } from './edition.ts';

/*
 * The price book holds markets in memory, beside the database: a request reads its market from one
 * of both, with equal results.
 *
 * Each market has a slot with at most one edition: all of the market at one revision, read by COPY.
 *
 *   edition   a market at a revision; a `MarketReader`, as `sqlMarket` is      edition.ts
 *     price   its attributes, and its series as blocks                         edition.ts
 *     block   points of about one year, as packed numbers                      block.ts
 *
 * Each request brings the newest revision, found by a revision check that began after the request
 * arrived (`request.context.newest`). `open` returns an edition at this revision or a later one, so
 * that the answer contains every commit before the request. An older edition is refreshed first: it
 * is immutable, and the next one reads only the changes and shares the rest (`build.ts`). If there
 * is no edition, or the refresh takes too long, `open` returns null and the database is read. So it
 * is for a past revision.
 *
 * The bytes of all editions stay within one budget. The market whose last request was the longest
 * ago is evicted first. `src/http/reply/answer-cache.ts` keeps whole answers in front of both
 * readers.
 */

interface BookOptions {
  /** Budget of all editions. */
  readonly bytes: number;
  /** Reads from the database. */
  readonly readers: Readers;
  /** Called when a build or a refresh fails. */
  readonly onError: (error: Error) => void;
}

/** Work of the book since it started. */
export interface BookCounts {
  /** Requests that read an edition. */
  answers: number;
  /** Requests that the book left to the database. */
  misses: number;
  builds: number;
  refreshes: number;
  evictions: number;
  /** Rows that were read. */
  pricesRead: number;
  pointsRead: number;
  /** Vocabularies that were requested from the database. */
  vocabulariesRead: number;
}

/** A market in the book: its current edition, if any, and the build of the next. */
interface MarketSlot {
  readonly market: Market;
  edition: Edition | null;
  /** The build or refresh in progress. Concurrent requests share it. */
  work: Promise<void> | null;
  /** Resolves to true if the work is short enough for requests to wait for it. */
  isShort: Promise<boolean>;
  /** Numbers of the last request of this market and of the request before it. */
  lastRequest: number;
  requestBefore: number;
}

/** Most changed points of a refresh that requests wait for. */
const POINTS_AWAITED_MAX = 50_000;

const NOT_SHORT: Promise<boolean> = Promise.resolve(false);

export class PriceBook {
  readonly counts: BookCounts = {
    answers: 0,
    misses: 0,
    builds: 0,
    refreshes: 0,
    evictions: 0,
    pricesRead: 0,
    pointsRead: 0,
    vocabulariesRead: 0,
  };
  readonly #options: BookOptions;
  readonly #context: BuildContext;
  readonly #slots: ReadonlyMap<string, MarketSlot>;
  readonly #closing = new AbortController();
  /** The last build. Builds run one at a time, as each reads a whole market. */
  #builds: Promise<void> = Promise.resolve();
  #requests = 0;

  constructor(options: BookOptions) {
    const { reads, references, vocabularies } = options.readers;
    const { signal } = this.#closing;
    this.#options = options;
    this.#context = { reads, references, vocabularies, counts: this.counts, signal };
    const slotOf = (market: Market): MarketSlot => ({
      market,
      edition: null,
      work: null,
      isShort: NOT_SHORT,
      lastRequest: 0,
      requestBefore: 0,
    });
    this.#slots = new Map(MARKETS.map((market) => [market.slug, slotOf(market)]));
  }

  /**
   * Opens the market of a plan: the one way to read from the book.
   * @param newest the result of a revision check that began after the request arrived
   * @returns null if the database has to be read, as for a past revision
   */
  async open(plan: Plan, newest: NewestRevision): Promise<Edition | null> {
    if (!isShownBy(newest, plan)) return null;
    const slot = this.#slotOf(plan.market.slug);
    this.#requests += 1;
    slot.requestBefore = slot.lastRequest;
    slot.lastRequest = this.#requests;
    const edition = await this.#editionAt(slot, newest);
    // During the wait the edition may have become newer than the requested revision.
    if (edition === null || !isShownBy(edition.newest, plan)) {
      this.counts.misses += 1;
      return null;
    }
    this.counts.answers += 1;
    return edition;
  }

  /** Builds the editions of all markets that fit, one at a time. */
  async fill(checkRevision: () => Promise<NewestRevision>): Promise<void> {
    for (const slot of this.#slots.values()) {
      if (this.#closing.signal.aborted) return;
      if (slot.edition === null) this.#begin(slot, await checkRevision());
      await slot.work;
    }
  }

  /** Refreshes the existing editions before a request needs them. */
  async refresh(checkRevision: () => Promise<NewestRevision>): Promise<void> {
    const newest = await checkRevision();
    for (const slot of this.#slots.values()) {
      if (slot.edition === null || isFresh(slot.edition, newest, slot.market.slug)) continue;
      await slot.work;
      this.#begin(slot, newest);
      await slot.work;
    }
  }

  /** Waits for all builds and refreshes in progress. */
  async settled(): Promise<void> {
    for (const slot of this.#slots.values()) await slot.work;
  }

  /** Aborts all work in progress. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the book is closed'));
    await this.settled();
  }

  /** The memory of all editions, in bytes. */
  get state() {
    const { bytes: limit } = this.#options;
    return { bytes: this.#bytesOf(() => true), limit, evictions: this.counts.evictions };
  }

  #slotOf(slug: string): MarketSlot {
    const slot = this.#slots.get(slug);
    if (!slot) throw new Error(`no market ${slug}`);
    return slot;
  }

  async #editionAt(slot: MarketSlot, newest: NewestRevision): Promise<Edition | null> {
    const { slug } = slot.market;
    // The work in progress may be for an older revision; then it is repeated for this one.
    for (let round = 0; round < 3; round += 1) {
      const { edition } = slot;
      if (edition !== null && isFresh(edition, newest, slug)) {
        if (newest.order > edition.newest.order) edition.newest = newest;
        return edition;
      }
      if (slot.work === null) this.#begin(slot, newest);
      const { work } = slot;
      if (!(await slot.isShort)) return null;
      await work;
    }
    return null;
  }

  /** Starts the build or refresh of an edition, unless one is in progress. */
  #begin(slot: MarketSlot, newest: NewestRevision): void {
    if (slot.work !== null || this.#closing.signal.aborted) return;
    const short = Promise.withResolvers<boolean>();
    slot.isShort = short.promise;
    const work = this.#renew(slot, newest, short.resolve)
      .catch((error: Error) => {
        if (!this.#closing.signal.aborted) this.#options.onError(error);
      })
      .finally(() => {
        short.resolve(false);
        slot.work = null;
        slot.isShort = NOT_SHORT;
      });
    slot.work = work;
  }

  /** Builds or refreshes an edition. Calls `decide` once it is known whether requests wait. */
  async #renew(
    slot: MarketSlot,
    newest: NewestRevision,
    decide: (isShort: boolean) => void,
  ): Promise<void> {
    const { edition, market } = slot;
    if (edition === null || !canRefresh(edition, newest)) {
      decide(false);
      slot.edition = null;
      await this.#build(slot, newest);
      return;
    }
    const difference = await differenceOf(this.#context, market, edition, newest);
    decide(difference.points <= POINTS_AWAITED_MAX);
    const next = await refreshEdition(this.#context, market, edition, newest, difference);
    // An edition that was evicted during the refresh is not restored: others need its memory.
    if (slot.edition === edition) this.#put(slot, next);
  }

  #build(slot: MarketSlot, newest: NewestRevision): Promise<void> {
    const build = this.#builds.then(async () => {
      this.#closing.signal.throwIfAborted();
      const room = this.#roomFor(slot);
      const edition = await buildEdition(this.#context, slot.market, newest, room);
      if (edition) this.#put(slot, edition);
    });
    this.#builds = build.catch(() => {});
    return build;
  }

  /**
   * Bytes that a new edition may take. It may evict only markets without a request since the
   * request before last of this market; otherwise two markets would evict each other forever.
   */
  #roomFor(slot: MarketSlot): number {
    const isKept = (other: MarketSlot) => other !== slot && other.lastRequest >= slot.requestBefore;
    return this.#options.bytes - this.#bytesOf(isKept);
  }

  #bytesOf(isCounted: (slot: MarketSlot) => boolean): number {
    const counted = [...this.#slots.values()].filter(isCounted);
    return counted.reduce((sum, { edition }) => sum + (edition?.bytes ?? 0), 0);
  }

  /** Puts an edition into its slot, and evicts others until the budget holds. */
  #put(slot: MarketSlot, edition: Edition): void {
    slot.edition = edition;
    const others = [...this.#slots.values()]
      .filter((other) => other !== slot && other.edition !== null)
      .sort((one, other) => one.lastRequest - other.lastRequest);
    // An edition that alone exceeds the budget cannot stay.
    for (const each of edition.bytes > this.#options.bytes ? [slot] : others) {
      if (this.state.bytes <= this.#options.bytes) return;
      each.edition = null;
      this.counts.evictions += 1;
    }
  }
}
