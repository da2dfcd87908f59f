import { MARKETS, type Market } from '../catalog/markets.ts';
import type { Newest } from '../db/newest.ts';
import type { Sources } from '../prices/answer.ts';
import type { Asker, Plan } from '../prices/plan/plan.ts';
import { isShownBy } from '../prices/state.ts';
import { type SentAnswer, SentAnswers, type StateAt } from './answer/answers.ts';
import { type BookCounts, type Opened, openedBook } from './answer/opened.ts';
import { Budget } from './store/budget.ts';
import {
  buildEdition,
  canRefresh,
  differenceOf,
  isFresh,
  type Press,
  refreshEdition,
} from './store/build.ts';
import { type Edition, replaceEdition, roomFor, type Shelf } from './store/edition.ts';
import type { TurnCounts } from './store/turns.ts';

/*
 * The price book: prices kept ready, so that an answer costs about what sending it costs.
 *
 * For each market it has a shelf, and on the shelf at most one edition: everything of the market
 * at one state of the data, read by COPY. An edition never changes. Once something was committed
 * a new one takes its place; it reads only what changed and shares the rest (`build.ts`).
 *
 *   edition      a market at one state                                      edition.ts
 *     price      its attributes, and a series cut into blocks               series.ts
 *       block    a year or so of points, as packed numbers                  block.ts
 *         fragment   the same points as JSON, native or converted           fragment.ts
 *       head     its record up to the points, as JSON                       heads.ts
 *     selection  what filters select, as the database said                  selection.ts
 *   answer       the bytes of a whole answer, for who asks the same         answers.ts
 *   long answer  the slices of one that is too long for that                body.ts
 *
 * A request brings a look at the database that began after it came (`request.context.newest`). The
 * book answers at the state of this look or a later one, never an earlier: commits from before
 * the request are in the answer. If the edition is older it is refreshed first, or left to the
 * database when that takes longer. An answer is a list of slices of fragments and heads, written
 * as they are (`walk.ts`, `body.ts`, `gzip.ts`). Fragments, heads and selections are made when they
 * are needed first; a whole answer is copied when the same request comes for the second time.
 *
 * Everything that is remembered counts towards one budget of bytes, and what was used longest ago
 * goes first (`budget.ts`). What is not in the book, does not fit or is of the past is read from
 * the database, as without the book: the answers are the same, byte for byte.
 */

interface BookOptions {
  /** Bytes that all may take that is remembered. */
  readonly bytes: number;
  /** What the database answers with. */
  readonly sources: Sources;
  /** Told what went wrong behind the answers. */
  readonly onError: (error: Error) => void;
}

/** Points that a request waits for while an edition is refreshed. */
const POINTS_AWAITED = 50_000;

/** What requests do not wait for. */
const NO: Promise<boolean> = Promise.resolve(false);

/** The price book: see above. */
export class PriceBook {
  readonly budget: Budget;
  readonly counts: BookCounts = {
    answers: 0,
    misses: 0,
    repeats: 0,
    builds: 0,
    refreshes: 0,
    pricesRead: 0,
    pointsRead: 0,
    filtersRead: 0,
  };
  readonly turns: TurnCounts = { turns: 0, longest: 0, points: 0 };
  readonly #options: BookOptions;
  readonly #press: Press;
  readonly #shelves: ReadonlyMap<string, Shelf>;
  readonly #closing = new AbortController();
  /** Builds, one after the other: they read much. */
  #builds: Promise<void> = Promise.resolve();
  #requests = 0;

  constructor(options: BookOptions) {
    const { sources, bytes } = options;
    this.#options = options;
    this.budget = new Budget(bytes);
    this.#press = {
      reads: sources.reads,
      references: sources.references,
      counts: this.counts,
      turns: this.turns,
    };
    const shelf = (market: Market): Shelf => ({
      market,
      budget: this.budget,
      edition: null,
      work: null,
      isShort: NO,
      answers: new SentAnswers(this.budget),
      asked: 0,
      askedBefore: 0,
    });
    this.#shelves = new Map(MARKETS.map((market) => [market.slug, shelf(market)]));
  }

  /**
   * The book opened at the newest state, for one plan; null where the database has to answer, as
   * for a state of the past.
   * @param newest a look that began after the request came
   */
  async open(plan: Plan, newest: Newest): Promise<Opened | null> {
    if (!isShownBy(newest, plan)) return null;
    const shelf = this.#shelfOf(plan.market.slug);
    this.#note(shelf);
    const edition = await this.#editionAt(shelf, newest);
    // Meanwhile it may have become newer than what is asked for.
    if (edition === null || !isShownBy(edition.newest, plan)) {
      this.counts.misses += 1;
      return null;
    }
    this.counts.answers += 1;
    this.budget.use(edition);
    const { sources } = this.#options;
    const { budget, turns, counts } = this;
    const { answers } = shelf;
    return openedBook({ edition, answers, budget, turns, counts }, sources, newest);
  }

  /**
   * The answer to the same request as it was sent before; null where there is none that holds at
   * the newest revision.
   * @param request its text, see `requestText`
   * @param look finds the newest revision, after the request came
   */
  async again(
    slug: string,
    request: string,
    { openMarkets }: Asker,
    look: () => Promise<Newest>,
  ): Promise<SentAnswer | null> {
    const shelf = this.#shelfOf(slug);
    const answer = shelf.answers.get(request);
    if (answer === undefined || !answer.isOpenTo(openMarkets)) return null;
    const { sources } = this.#options;
    const state: StateAt = (plan, newest) => sources.state(() => sources.db, plan, newest);
    if (!(await answer.isCurrent(await look(), state))) return null;
    this.#note(shelf);
    this.counts.answers += 1;
    this.counts.repeats += 1;
    this.budget.use(answer);
    return answer;
  }

  /** Brings every market into the book, as far as it fits, one after the other. */
  async fill(look: () => Promise<Newest>): Promise<void> {
    for (const shelf of this.#shelves.values()) {
      if (this.#closing.signal.aborted) return;
      if (shelf.edition === null) this.#begin(shelf, await look());
      await shelf.work;
    }
  }

  /** Brings the editions that there are to the newest state, before anybody asks. */
  async refresh(look: () => Promise<Newest>): Promise<void> {
    const newest = await look();
    for (const shelf of this.#shelves.values()) {
      if (shelf.edition === null || isFresh(shelf.edition, newest, shelf.market.slug)) continue;
      await shelf.work;
      this.#begin(shelf, newest);
      await shelf.work;
    }
  }

  /** Waits until no edition is being made. */
  async settled(): Promise<void> {
    for (const shelf of this.#shelves.values()) await shelf.work;
  }

  /** Ends all work; what it would have made is not needed any more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the book is closed'));
    await this.settled();
  }

  /** Notes that a market was asked for. */
  #note(shelf: Shelf): void {
    this.#requests += 1;
    shelf.askedBefore = shelf.asked;
    shelf.asked = this.#requests;
    if (shelf.edition) this.budget.use(shelf.edition);
  }

  #shelfOf(slug: string): Shelf {
    const shelf = this.#shelves.get(slug);
    if (!shelf) throw new Error(`no market ${slug}`);
    return shelf;
  }

  async #editionAt(shelf: Shelf, newest: Newest): Promise<Edition | null> {
    const { slug } = shelf.market;
    // The work under way may be for an older look; then once more, for this one.
    for (let round = 0; round < 3; round += 1) {
      const { edition } = shelf;
      if (edition !== null && isFresh(edition, newest, slug)) {
        if (newest.order > edition.newest.order) edition.newest = newest;
        return edition;
      }
      if (shelf.work === null) this.#begin(shelf, newest);
      const { work } = shelf;
      if (!(await shelf.isShort)) return null;
      await work;
    }
    return null;
  }

  /** Begins to make the edition of a look, unless work is under way. */
  #begin(shelf: Shelf, newest: Newest): void {
    if (shelf.work !== null || this.#closing.signal.aborted) return;
    const short = Promise.withResolvers<boolean>();
    shelf.isShort = short.promise;
    const work = this.#renew(shelf, newest, short.resolve)
      .catch((error: Error) => {
        if (!this.#closing.signal.aborted) this.#options.onError(error);
      })
      .finally(() => {
        short.resolve(false);
        shelf.work = null;
        shelf.isShort = NO;
      });
    shelf.work = work;
  }

  /** Makes the edition of a look; `tell` hears whether a request should wait for it. */
  async #renew(shelf: Shelf, newest: Newest, tell: (isShort: boolean) => void): Promise<void> {
    const { edition } = shelf;
    const { signal } = this.#closing;
    if (edition === null || !canRefresh(edition, newest)) {
      tell(false);
      replaceEdition(shelf, null);
      await this.#build(shelf, newest);
      return;
    }
    const difference = await differenceOf(this.#press, shelf, edition, newest, signal);
    tell(difference.points <= POINTS_AWAITED);
    const next = await refreshEdition(this.#press, shelf, edition, newest, difference, signal);
    // Evicted meanwhile, it stays away: others needed the room.
    if (shelf.edition === edition) replaceEdition(shelf, next);
  }

  #build(shelf: Shelf, newest: Newest): Promise<void> {
    const build = this.#builds.then(async () => {
      this.#closing.signal.throwIfAborted();
      const room = roomFor(shelf, this.#shelves.values());
      const edition = await buildEdition(this.#press, shelf, newest, room, this.#closing.signal);
      if (edition) replaceEdition(shelf, edition);
    });
    this.#builds = build.catch(() => {});
    return build;
  }
}
