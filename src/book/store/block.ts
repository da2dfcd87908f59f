import type { Columns } from '../../conversion/columns.ts';
import type { Remembered } from './budget.ts';

const DAY_MICROS = 86_400_000_000;
/** Stands for a missing low or high among 32-bit integers. */
const MISSING = -2_147_483_648;
const INT32_MAX = 2_147_483_647;
/** Bytes of the objects around the numbers of a block. */
const OBJECT_BYTES = 512;

const fits = (values: Float64Array): boolean => {
  for (const value of values) {
    if (value > INT32_MAX || value <= MISSING) return false;
  }
  return true;
};

/** The one value of a column, or a copy of the column where it has several. */
function oneOrAll<T extends Uint8Array | Int32Array | Float64Array>(column: T): number | T {
  const [first = 0] = column;
  return column.every((each) => each === first) ? first : (column.slice() as T);
}

const at = (column: number | ArrayLike<number>, index: number): number =>
  typeof column === 'number' ? column : (column[index] as number);

/**
 * A run of points of one price, packed: most series need 16 bytes for a point, where columns of
 * doubles take 41. A block never changes; a correction makes a new one.
 */
export class Block {
  readonly length: number;
  readonly firstDay: number;
  readonly lastDay: number;
  /** Day, low, mid and high, one column after the other. */
  readonly #cells: Int32Array | Float64Array;
  readonly #scale: number | Uint8Array;
  /** Microseconds from the beginning of a point's day to its publication. */
  readonly #lag: number | Float64Array;
  readonly #corrections: number | Int32Array;
  readonly bytes: number;
  /** What is remembered of it, by what that is: `Fragment` and `DeflatedBlock`. */
  kept: Map<string, Remembered> | null = null;
  /** Whether no edition holds it any more, so that nothing of it needs to be remembered. */
  isOutdated = false;

  constructor({ length, day, low, mid, high, scale, publishedAt, corrections }: Columns) {
    const isSmall = fits(low) && fits(mid) && fits(high);
    const cells = isSmall ? new Int32Array(4 * length) : new Float64Array(4 * length);
    for (let index = 0; index < length; index += 1) {
      cells[index] = day[index] as number;
      cells[length + index] = packed(low[index] as number, isSmall);
      cells[2 * length + index] = mid[index] as number;
      cells[3 * length + index] = packed(high[index] as number, isSmall);
    }
    this.length = length;
    this.firstDay = day[0] as number;
    this.lastDay = day[length - 1] as number;
    this.#cells = cells;
    this.#scale = oneOrAll(scale.subarray(0, length));
    this.#lag = oneOrAll(publishedAt.map((micros, index) => micros - dayMicros(day[index])));
    this.#corrections = oneOrAll(corrections.subarray(0, length));
    this.bytes =
      OBJECT_BYTES +
      cells.byteLength +
      [this.#scale, this.#lag, this.#corrections].reduce<number>(
        (sum, column) => sum + (typeof column === 'number' ? 0 : column.byteLength),
        0,
      );
  }

  day(index: number): number {
    return this.#cells[index] as number;
  }

  /** The index of the first point on or after a day; the length where there is none. */
  indexFrom(day: number): number {
    if (day <= this.firstDay) return 0;
    if (day > this.lastDay) return this.length;
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#cells[middle] as number) < day) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Writes points of this block into columns. */
  unpackInto(columns: Columns, place: number, from: number, to: number): void {
    const cells = this.#cells;
    const { length } = this;
    const missing = cells instanceof Int32Array ? MISSING : Number.NaN;
    const value = (cell: number): number => {
      const found = cells[cell] as number;
      return found === missing ? Number.NaN : found;
    };
    for (let index = from; index < to; index += 1) {
      const target = place + index - from;
      const day = cells[index] as number;
      columns.day[target] = day;
      columns.low[target] = value(length + index);
      columns.mid[target] = cells[2 * length + index] as number;
      columns.high[target] = value(3 * length + index);
      columns.scale[target] = at(this.#scale, index);
      columns.publishedAt[target] = day * DAY_MICROS + at(this.#lag, index);
      columns.corrections[target] = at(this.#corrections, index);
    }
  }
}

const dayMicros = (day: number | undefined): number => (day as number) * DAY_MICROS;

const packed = (value: number, isSmall: boolean): number =>
  isSmall && Number.isNaN(value) ? MISSING : value;

/** Columns with room for some points. */
export const emptyColumns = (length: number): Columns => ({
  length,
  day: new Int32Array(length),
  low: new Float64Array(length),
  mid: new Float64Array(length),
  high: new Float64Array(length),
  scale: new Uint8Array(length),
  publishedAt: new Float64Array(length),
  corrections: new Int32Array(length),
});

/** All points of a block. */
export function columnsOfBlock(block: Block): Columns {
  const columns = emptyColumns(block.length);
  block.unpackInto(columns, 0, 0, block.length);
  return columns;
}
