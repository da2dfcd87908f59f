import type { Columns } from '../../conversion/columns.ts';

/** Initial capacity of a series of unknown length, in points. */
const CAPACITY = 64;

/** Builds the columns of one series. */
export class ColumnsBuilder {
  #length = 0;
  #day: Int32Array;
  #low: Float64Array;
  #mid: Float64Array;
  #high: Float64Array;
  #scale: Uint8Array;
  #publishedAt: Float64Array;
  #corrections: Int32Array;

  /** @param capacity the expected number of points */
  constructor(capacity = CAPACITY) {
    this.#day = new Int32Array(capacity);
    this.#low = new Float64Array(capacity);
    this.#mid = new Float64Array(capacity);
    this.#high = new Float64Array(capacity);
    this.#scale = new Uint8Array(capacity);
    this.#publishedAt = new Float64Array(capacity);
    this.#corrections = new Int32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

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

  /** The points in the order of their arrival, in memory of the exact size. Call it once. */
  finish(): Columns {
    const length = this.#length;
    const exact = <T extends Int32Array | Float64Array | Uint8Array>(column: T): T =>
      column.length === length ? column : (column.slice(0, length) as T);
    return {
      length,
      day: exact(this.#day),
      low: exact(this.#low),
      mid: exact(this.#mid),
      high: exact(this.#high),
      scale: exact(this.#scale),
      publishedAt: exact(this.#publishedAt),
      corrections: exact(this.#corrections),
    };
  }

  #grow(): void {
    const size = Math.max(CAPACITY, this.#day.length * 2);
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

function isAscending(days: Int32Array): boolean {
  for (let index = 1; index < days.length; index += 1) {
    if ((days[index] as number) <= (days[index - 1] as number)) return false;
  }
  return true;
}

/** Columns in the order of their days. @throws Error if two points have the same day */
function sorted({ length, ...columns }: Columns): Columns {
  const { day } = columns;
  const order = Uint32Array.from({ length }, (_, index) => index);
  order.sort((one, other) => (day[one] as number) - (day[other] as number));
  const inOrder = <T extends Int32Array | Float64Array | Uint8Array>(column: T): T =>
    column.map((_, index) => column[order[index] as number] as number) as T;
  const days = inOrder(day);
  if (!isAscending(days)) throw new Error('the database sent two points of one price and day');
  return {
    length,
    day: days,
    low: inOrder(columns.low),
    mid: inOrder(columns.mid),
    high: inOrder(columns.high),
    scale: inOrder(columns.scale),
    publishedAt: inOrder(columns.publishedAt),
    corrections: inOrder(columns.corrections),
  };
}

/**
 * Collects the points of several prices, which may arrive in any order. A series whose points
 * arrive in the order of their days, as from an index, is not sorted again.
 */
export class SeriesCollector {
  readonly #builders = new Map<number, ColumnsBuilder>();
  #priceId = Number.NaN;
  #builder = new ColumnsBuilder(0);

  /** The builder of a price. */
  of(priceId: number): ColumnsBuilder {
    if (priceId === this.#priceId) return this.#builder;
    let builder = this.#builders.get(priceId);
    if (builder === undefined) {
      // Most prices of a request have as many points as the one before.
      builder = new ColumnsBuilder(this.#builder.length || CAPACITY);
      this.#builders.set(priceId, builder);
    }
    this.#priceId = priceId;
    this.#builder = builder;
    return builder;
  }

  /**
   * The id of each price and its columns, in the order of their days. Iterate over it once.
   * @throws Error if two points of a price have the same day
   */
  *series(): Generator<readonly [number, Columns]> {
    for (const [priceId, builder] of this.#builders) {
      const columns = builder.finish();
      yield [priceId, isAscending(columns.day) ? columns : sorted(columns)];
    }
  }
}

/** The columns of a price without points. */
export const NO_POINTS: Columns = new ColumnsBuilder(0).finish();
