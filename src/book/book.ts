import { MARKETS, type Market } from '../catalog/markets.ts';
import type { Newest } from '../db/newest.ts';
import type { Sources } from '../prices/answer.ts';
import type { Plan } from '../prices/plan.ts';
import { isShownBy } from '../prices/state.ts';
import { Budget } from './budget.ts';
import {
  buildEdition,
  canRefresh,
  differenceOf,
  isFresh,
  type Press,
  refreshEdition,
} from './build.ts';
import { type Edition, replaceEdition } from './edition.ts';
import { type Opened, openedBook } from './opened.ts';
import { type BookCounts, type Place, roomFor } from './place.ts';
import type { TurnCounts } from './turns.ts';

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
 *     layout     the slices of a whole answer, for who asks the same        layout.ts
 *
 * A request brings a look at the database that began after it came (`request.newest`). The book
 * answers at the state of this look or a later one, never an earlier: what was committed before
 * the request is in the answer. If the edition is older it is refreshed first, or left to the
 * database when that takes longer. An answer is a list of slices of fragments and heads, written
 * as they are (`records.ts`, `body.ts`). Fragments, heads, selections and layouts are made when
 * they are needed first.
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
  readonly #places: ReadonlyMap<string, Place>;
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
    const place = (market: Market): Place => ({
      market,
      budget: this.budget,
      edition: null,
      work: null,
      isShort: NO,
      asked: 0,
      askedBefore: 0,
    });
    this.#places = new Map(MARKETS.map((market) => [market.slug, place(market)]));
  }

  /**
   * The book opened at the newest state, for one plan; null where the database has to answer, as
   * for a state of the past.
   * @param newest a look that began after the request came
   */
  async open(plan: Plan, newest: Newest | null): Promise<Opened | null> {
    if (newest === null || !isShownBy(newest, plan)) return null;
    const place = this.#placeOf(plan.market.slug);
    this.#requests += 1;
    place.askedBefore = place.asked;
    place.asked = this.#requests;
    const edition = await this.#editionAt(place, newest);
    // Meanwhile it may have become newer than what is asked for.
    if (edition === null || !isShownBy(edition.newest, plan)) {
      this.counts.misses += 1;
      return null;
    }
    this.counts.answers += 1;
    this.budget.use(edition);
    const { sources } = this.#options;
    const { budget, turns, counts } = this;
    return openedBook({ edition, budget, turns, counts }, sources, newest);
  }

  /** Brings every market into the book, as far as it fits, one after the other. */
  async fill(look: () => Promise<Newest>): Promise<void> {
    for (const place of this.#places.values()) {
      if (this.#closing.signal.aborted) return;
      if (place.edition === null) this.#begin(place, await look());
      await place.work;
    }
  }

  /** Brings the editions that there are to the newest state, before anybody asks. */
  async refresh(look: () => Promise<Newest>): Promise<void> {
    const newest = await look();
    for (const place of this.#places.values()) {
      if (place.edition === null || isFresh(place.edition, newest, place.market.slug)) continue;
      await place.work;
      this.#begin(place, newest);
      await place.work;
    }
  }

  /** Waits until no edition is being made. */
  async settled(): Promise<void> {
    for (const place of this.#places.values()) await place.work;
  }

  /** Ends all work; what it would have made is not needed any more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the book is closed'));
    await this.settled();
  }

  #placeOf(slug: string): Place {
    const place = this.#places.get(slug);
    if (!place) throw new Error(`no market ${slug}`);
    return place;
  }

  async #editionAt(place: Place, newest: Newest): Promise<Edition | null> {
    const { slug } = place.market;
    // The work under way may be for an older look; then once more, for this one.
    for (let round = 0; round < 3; round += 1) {
      const { edition } = place;
      if (edition !== null && isFresh(edition, newest, slug)) {
        if (newest.order > edition.newest.order) edition.newest = newest;
        return edition;
      }
      if (place.work === null) this.#begin(place, newest);
      const { work } = place;
      if (!(await place.isShort)) return null;
      await work;
    }
    return null;
  }

  /** Begins to make the edition of a look, unless work is under way. */
  #begin(place: Place, newest: Newest): void {
    if (place.work !== null || this.#closing.signal.aborted) return;
    const short = Promise.withResolvers<boolean>();
    place.isShort = short.promise;
    const work = this.#renew(place, newest, short.resolve)
      .catch((error: Error) => {
        if (!this.#closing.signal.aborted) this.#options.onError(error);
      })
      .finally(() => {
        short.resolve(false);
        place.work = null;
        place.isShort = NO;
      });
    place.work = work;
  }

  /** Makes the edition of a look; `tell` hears whether a request should wait for it. */
  async #renew(place: Place, newest: Newest, tell: (isShort: boolean) => void): Promise<void> {
    const { edition } = place;
    const { signal } = this.#closing;
    if (edition === null || !canRefresh(edition, newest)) {
      tell(false);
      replaceEdition(place, null);
      await this.#build(place, newest);
      return;
    }
    const difference = await differenceOf(this.#press, place, edition, newest, signal);
    tell(difference.points <= POINTS_AWAITED);
    const next = await refreshEdition(this.#press, place, edition, newest, difference, signal);
    // Evicted meanwhile, it stays away: others needed the room.
    if (place.edition === edition) replaceEdition(place, next);
  }

  #build(place: Place, newest: Newest): Promise<void> {
    const build = this.#builds.then(async () => {
      this.#closing.signal.throwIfAborted();
      const room = roomFor(place, this.#places.values());
      const edition = await buildEdition(this.#press, place, newest, room, this.#closing.signal);
      if (edition) replaceEdition(place, edition);
    });
    this.#builds = build.catch(() => {});
    return build;
  }
}
