import type { Columns } from '../../conversion/columns.ts';
import type { DateRange } from '../plan/plan.ts';

/**
 * The series of one price as columns of equal length, in date order. The scaled integers are exact
 * in a double because a point has at most 15 significant digits, the microseconds because the
 * years are 1800 to 2199.
 */
export type SeriesColumns = Columns;

/**
 * The seam between where points are kept and everything that works on them. Reads the series of a
 * few prices within a range, exactly as they were at a revision; a price without points in the
 * range is absent from the map.
 */
export type SeriesSource = (
  priceIds: readonly number[],
  range: DateRange,
  revision: string,
  signal: AbortSignal,
) => Promise<ReadonlyMap<number, SeriesColumns>>;

/** Columns that grow by doubling while rows arrive. */
export class ColumnsBuilder {
  #length = 0;
  #day: Int32Array = new Int32Array(64);
  #low: Float64Array = new Float64Array(64);
  #mid: Float64Array = new Float64Array(64);
  #high: Float64Array = new Float64Array(64);
  #scale: Uint8Array = new Uint8Array(64);
  #publishedAt: Float64Array = new Float64Array(64);
  #corrections: Int32Array = new Int32Array(64);

  /** Adds a point; the order of the arguments is that of `SeriesColumns`. */
  add(
    day: number,
    low: number,
    mid: number,
    high: number,
    scale: number,
    publishedAt: number,
    corrections: number,
  ): void {
    const at = this.#length;
    if (at === this.#day.length) this.#grow();
    this.#day[at] = day;
    this.#low[at] = low;
    this.#mid[at] = mid;
    this.#high[at] = high;
    this.#scale[at] = scale;
    this.#publishedAt[at] = publishedAt;
    this.#corrections[at] = corrections;
    this.#length = at + 1;
  }

  /** The points so far, in memory of just their size; the next one begins another series. */
  finish(): SeriesColumns {
    const length = this.#length;
    this.#length = 0;
    return {
      length,
      day: this.#day.slice(0, length),
      low: this.#low.slice(0, length),
      mid: this.#mid.slice(0, length),
      high: this.#high.slice(0, length),
      scale: this.#scale.slice(0, length),
      publishedAt: this.#publishedAt.slice(0, length),
      corrections: this.#corrections.slice(0, length),
    };
  }

  #grow(): void {
    const size = this.#day.length * 2;
    const ints = (old: Int32Array) => grown(new Int32Array(size), old);
    const doubles = (old: Float64Array) => grown(new Float64Array(size), old);
    this.#day = ints(this.#day);
    this.#low = doubles(this.#low);
    this.#mid = doubles(this.#mid);
    this.#high = doubles(this.#high);
    this.#scale = grown(new Uint8Array(size), this.#scale);
    this.#publishedAt = doubles(this.#publishedAt);
    this.#corrections = ints(this.#corrections);
  }
}

const grown = <T extends { set(from: T): void }>(bigger: T, old: T): T => {
  bigger.set(old);
  return bigger;
};
