import { MARKETS, type Market } from '../catalog/markets.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { Readers } from '../prices/answer/answer.ts';
import type { Plan } from '../prices/plan/plan.ts';
import { isShownBy } from '../prices/snapshot.ts';
import { Budget } from './budget.ts';
import {
  type BuildContext,
  buildEdition,
  canRefresh,
  differenceOf,
  isFresh,
  refreshEdition,
} from './build.ts';
import { type Edition, type MarketSlot, replaceEdition, roomFor } from './edition.ts';
import { type BookCounts, type OpenBook, openEdition } from './open.ts';
import type { TurnCounts } from './turns.ts';

/*
 * The price book holds the prices of markets in memory.
 *
 * Each market has a slot with at most one edition: all of the market at one revision, read by COPY.
 * An edition is immutable. After a commit a later edition replaces it, which reads only the changes
 * and shares the rest (`build.ts`).
 *
 *   edition        a market at one revision                                 edition.ts
 *     price        its attributes, and its series as blocks                 edition.ts
 *       block      points of about one year, as packed numbers              block.ts
 *         fragment the points of a block as JSON, native or converted       fragment.ts
 *       head       a record up to its points, as JSON                       head.ts
 *     selection    the prices that filters select, read from the database   edition.ts
 *
 * Each request brings the newest revision, found by a revision check that began after the request
 * arrived (`request.context.newest`). The book answers at this revision or a later one, so every
 * commit before the request is in the answer. An older edition is refreshed first; if the refresh
 * takes too long, the database answers. The bytes of an answer are slices of fragments and heads
 * (`body.ts`). Fragments, heads and selections are made on first use.
 * `src/http/reply/answer-cache.ts` keeps whole answers in front of the book.
 *
 * All entries share one budget of bytes with LRU eviction (`budget.ts`). The database answers what
 * the book does not hold, and requests for a past revision, with the same bytes.
 */

interface BookOptions {
  /** Budget of all entries. */
  readonly bytes: number;
  /** Reads from the database. */
  readonly readers: Readers;
  /** Called when a build or a refresh fails. */
  readonly onError: (error: Error) => void;
}

/** Most changed points of a refresh that requests wait for. */
const POINTS_AWAITED_MAX = 50_000;

const NOT_SHORT: Promise<boolean> = Promise.resolve(false);

export class PriceBook {
  readonly budget: Budget;
  readonly counts: BookCounts = {
    answers: 0,
    misses: 0,
    builds: 0,
    refreshes: 0,
    pricesRead: 0,
    pointsRead: 0,
    filtersRead: 0,
  };
  readonly turns: TurnCounts = { turns: 0, longest: 0, points: 0 };
  readonly #options: BookOptions;
  readonly #context: BuildContext;
  readonly #slots: ReadonlyMap<string, MarketSlot>;
  readonly #closing = new AbortController();
  /** The last build. Builds run one at a time, as each reads a whole market. */
  #builds: Promise<void> = Promise.resolve();
  #requests = 0;

  constructor(options: BookOptions) {
    const { readers, bytes } = options;
    this.#options = options;
    this.budget = new Budget(bytes);
    this.#context = {
      reads: readers.reads,
      references: readers.references,
      counts: this.counts,
      turns: this.turns,
    };
    const slotOf = (market: Market): MarketSlot => ({
      market,
      budget: this.budget,
      edition: null,
      work: null,
      isShort: NOT_SHORT,
      lastRequest: 0,
      requestBefore: 0,
    });
    this.#slots = new Map(MARKETS.map((market) => [market.slug, slotOf(market)]));
  }

  /**
   * Opens the book for a plan: the one way to read from it.
   * @param newest the result of a revision check that began after the request arrived
   * @returns null if the database has to answer, as for a past revision
   */
  async open(plan: Plan, newest: NewestRevision): Promise<OpenBook | null> {
    if (!isShownBy(newest, plan)) return null;
    const slot = this.#slotOf(plan.market.slug);
    this.#countRequest(slot);
    const edition = await this.#editionAt(slot, newest);
    // During the wait the edition may have become newer than the requested revision.
    if (edition === null || !isShownBy(edition.newest, plan)) {
      this.counts.misses += 1;
      return null;
    }
    this.counts.answers += 1;
    this.budget.use(edition);
    const { readers } = this.#options;
    const { budget, turns, counts } = this;
    return openEdition({ edition, budget, turns, counts }, readers, newest);
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

  #countRequest(slot: MarketSlot): void {
    this.#requests += 1;
    slot.requestBefore = slot.lastRequest;
    slot.lastRequest = this.#requests;
    if (slot.edition) this.budget.use(slot.edition);
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
    const { edition } = slot;
    const { signal } = this.#closing;
    if (edition === null || !canRefresh(edition, newest)) {
      decide(false);
      replaceEdition(slot, null);
      await this.#build(slot, newest);
      return;
    }
    const difference = await differenceOf(this.#context, slot, edition, newest, signal);
    decide(difference.points <= POINTS_AWAITED_MAX);
    const next = await refreshEdition(this.#context, slot, edition, newest, difference, signal);
    // An edition that was evicted during the refresh is not restored: others need its memory.
    if (slot.edition === edition) replaceEdition(slot, next);
  }

  #build(slot: MarketSlot, newest: NewestRevision): Promise<void> {
    const build = this.#builds.then(async () => {
      this.#closing.signal.throwIfAborted();
      const room = roomFor(slot, this.#slots.values());
      const edition = await buildEdition(this.#context, slot, newest, room, this.#closing.signal);
      if (edition) replaceEdition(slot, edition);
    });
    this.#builds = build.catch(() => {});
    return build;
  }
}
