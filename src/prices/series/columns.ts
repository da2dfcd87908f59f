import type { Columns } from '../../conversion/columns.ts';
import type { DateRange } from '../plan/plan.ts';

/**
 * Reads the series of prices within a range at a revision, by price id. The one interface to
 * points: the database and the price book implement it. A price without points in the range is
 * absent from the map. Scaled integers are exact in a double, because a point has at most 15
 * significant digits; microseconds are, because years are 1800 to 2199.
 */
export type SeriesSource = (
  priceIds: readonly number[],
  range: DateRange,
  revision: string,
  signal: AbortSignal,
) => Promise<ReadonlyMap<number, Columns>>;

/** Builds columns that double their capacity while rows arrive. */
export class ColumnsBuilder {
  #length = 0;
  #day: Int32Array = new Int32Array(64);
  #low: Float64Array = new Float64Array(64);
  #mid: Float64Array = new Float64Array(64);
  #high: Float64Array = new Float64Array(64);
  #scale: Uint8Array = new Uint8Array(64);
  #publishedAt: Float64Array = new Float64Array(64);
  #corrections: Int32Array = new Int32Array(64);

  /** Adds a point; the arguments are in the order of `Columns`. */
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

  /** Returns the points in memory of the exact size. The next point starts another series. */
  finish(): Columns {
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
