import type { Columns } from '../../conversion/columns.ts';
import type { Plan } from '../plan/plan.ts';
import type { Extent, PriceStretch, SeriesRange } from '../series/ranges.ts';
import type { SelectedPrice } from './query.ts';
import type { References } from './references.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * Reads one market at one revision. `sqlMarket` reads from the database and `Edition` from memory,
 * with equal results.
 */
export interface MarketReader {
  readonly references: () => Promise<References>;
  /**
   * The prices that the filters of a plan select, in the order of their codes. If no warning
   * depends on the other prices, it may return only those of the page and one more.
   */
  readonly select: (plan: Plan) => Promise<readonly SelectedPrice[]>;
  /** The values and codes that a request can name. */
  readonly vocabulary: () => Promise<Vocabulary>;
  /**
   * The points of prices, by price id. A price without points on the days is absent. Scaled
   * integers are exact in a double, because a point has at most 15 significant digits.
   * Microseconds are exact, because years are 1800 to 2199.
   */
  readonly series: (
    priceIds: readonly number[],
    wanted: SeriesRange,
  ) => Promise<ReadonlyMap<number, Columns>>;
  /** The points within each stretch of days; null for none. */
  readonly extents: (stretches: readonly PriceStretch[]) => Promise<readonly (Extent | null)[]>;
  /** Most prices of one call of `series`, whose points are in memory until they are written. */
  readonly pricesPerRead: number;
}
