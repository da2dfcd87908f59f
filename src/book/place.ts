import type { Shelf } from './edition.ts';

/** What the book did so far. */
export interface BookCounts {
  /** Requests that were answered from the book, and that were left to the database. */
  answers: number;
  misses: number;
  /** Answers that were put together as the same had been before. */
  repeats: number;
  builds: number;
  refreshes: number;
  /** Rows of prices and of points that were read. */
  pricesRead: number;
  pointsRead: number;
  /** Filters that the database was asked for. */
  filtersRead: number;
}

/** A market's shelf, and the work that is under way on it. */
export interface Place extends Shelf {
  /** The work that ends with another edition; requests share it. */
  work: Promise<void> | null;
  /** Whether requests may wait for it. */
  isShort: Promise<boolean>;
  /** When the market was asked for last and before that, by the count of all requests. */
  asked: number;
  askedBefore: number;
}

/** The part of the budget that editions may take; the rest is for what is made of them. */
const EDITIONS_SHARE = 0.6;

/**
 * Bytes that an edition may take. It may drive out only what nobody has asked for since this
 * market was asked for the time before last, or two markets would drive each other out for ever.
 */
export function roomFor(place: Place, all: Iterable<Place>): number {
  let room = EDITIONS_SHARE * place.budget.state.limit;
  for (const other of all) {
    if (other === place || other.edition === null) continue;
    if (other.asked >= place.askedBefore) room -= other.edition.bytes;
  }
  return room;
}
