import type { Days } from '../../std/days.ts';

/** The points of a series that an answer needs. */
export interface SeriesRange {
  readonly days: Days;
  /**
   * Number of last points on these days, if nothing else of the answer depends on the others; null
   * for all. A reader may return more.
   */
  readonly last: number | null;
}

/** Days of one price. */
export interface PriceDays extends Days {
  readonly priceId: number;
}

/** Days of one price, open or not, whose points are looked for. */
export interface PriceStretch extends PriceDays {
  /** False if only the first and last day are needed: to count points, all of them are read. */
  readonly isCounted: boolean;
}

/** The first and last day of some points, and their number; 0 if it was not requested. */
export interface Extent extends Days {
  readonly points: number;
}

/** The range from the first to the last of some days; from ∞ to -∞ for none. */
export const spanOf = (all: readonly Days[]): Days =>
  all.reduce(
    (span, { first, last }) => ({
      first: Math.min(span.first, first),
      last: Math.max(span.last, last),
    }),
    { first: Infinity, last: -Infinity },
  );

/** The points of two disjoint groups. */
export const joinedPoints = (one: Extent | undefined, other: Extent): Extent =>
  one === undefined ? other : { ...spanOf([one, other]), points: one.points + other.points };
