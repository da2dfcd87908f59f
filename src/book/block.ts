import { type Columns, columnSlice } from '../conversion/columns.ts';
import type { Extent } from '../prices/series/ranges.ts';
import { calendarDay, type Days } from '../std/days.ts';

const DAY_MICROS = 86_400_000_000;
/** Encodes a missing low or high as a 32-bit integer. */
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

/** The value of a constant column, or a copy of any other column. */
function oneOrAll<T extends Uint8Array | Int32Array | Float64Array>(column: T): number | T {
  const [first = 0] = column;
  return column.every((each) => each === first) ? first : (column.slice() as T);
}

const at = (column: number | ArrayLike<number>, index: number): number =>
  typeof column === 'number' ? column : (column[index] as number);

/**
 * Consecutive points of one price, packed: most series need 16 bytes a point, columns of doubles
 * need 41. A block is immutable; a correction creates another block.
 */
export class Block {
  readonly length: number;
  readonly firstDay: number;
  readonly lastDay: number;
  /** The columns day, low, mid and high, concatenated. */
  readonly #cells: Int32Array | Float64Array;
  readonly #scale: number | Uint8Array;
  /** Microseconds from the start of a point's day to its publication. */
  readonly #lag: number | Float64Array;
  readonly #corrections: number | Int32Array;
  readonly bytes: number;

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

  /** The index of the first point on or after a day; the length if there is none. */
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

  /** Writes points of this block into columns, from the index `target` on. */
  unpackInto(columns: Columns, target: number, from: number, to: number): void {
    const cells = this.#cells;
    const { length } = this;
    const missing = cells instanceof Int32Array ? MISSING : Number.NaN;
    const value = (cell: number): number => {
      const found = cells[cell] as number;
      return found === missing ? Number.NaN : found;
    };
    for (let index = from; index < to; index += 1) {
      const out = target + index - from;
      const day = cells[index] as number;
      columns.day[out] = day;
      columns.low[out] = value(length + index);
      columns.mid[out] = cells[2 * length + index] as number;
      columns.high[out] = value(3 * length + index);
      columns.scale[out] = at(this.#scale, index);
      columns.publishedAt[out] = day * DAY_MICROS + at(this.#lag, index);
      columns.corrections[out] = at(this.#corrections, index);
    }
  }
}

const dayMicros = (day: number | undefined): number => (day as number) * DAY_MICROS;

const packed = (value: number, isSmall: boolean): number =>
  isSmall && Number.isNaN(value) ? MISSING : value;

/** Columns of a length, filled with zeros. */
const emptyColumns = (length: number): Columns => ({
  length,
  day: new Int32Array(length),
  low: new Float64Array(length),
  mid: new Float64Array(length),
  high: new Float64Array(length),
  scale: new Uint8Array(length),
  publishedAt: new Float64Array(length),
  corrections: new Int32Array(length),
});

/** A series without points. */
export const NO_POINTS: Columns = emptyColumns(0);

/** Fewest points of a block that another follows. A block ends with a calendar year. */
const BLOCK_POINTS = 200;

const yearOf = (day: number): number => calendarDay(day).year;

/** Cuts a series into blocks. */
export function blocksOf(columns: Columns): Block[] {
  const { length, day } = columns;
  const blocks: Block[] = [];
  let start = 0;
  let year = length > 0 ? yearOf(day[0] as number) : 0;
  for (let index = 1; index < length; index += 1) {
    const next = yearOf(day[index] as number);
    if (next !== year && index - start >= BLOCK_POINTS) {
      blocks.push(new Block(columnSlice(columns, start, index)));
      start = index;
    }
    year = next;
  }
  if (length > start) blocks.push(new Block(columnSlice(columns, start, length)));
  return blocks;
}

/** Points of a block, from one index up to another. */
interface BlockRange {
  readonly block: Block;
  readonly from: number;
  readonly to: number;
}

/** The points of a series within some days, by block. */
function rangesIn(blocks: readonly Block[], { first, last }: Days): BlockRange[] {
  const ranges: BlockRange[] = [];
  for (const block of blocks) {
    if (block.lastDay < first) continue;
    if (block.firstDay > last) break;
    const from = block.indexFrom(first);
    const to = block.lastDay <= last ? block.length : block.indexFrom(last + 1);
    if (to > from) ranges.push({ block, from, to });
  }
  return ranges;
}

const pointsIn = (ranges: readonly BlockRange[]): number =>
  ranges.reduce((sum, { from, to }) => sum + to - from, 0);

/** The points of a series within some days; null for none. */
export function extentIn(blocks: readonly Block[], days: Days): Extent | null {
  const ranges = rangesIn(blocks, days);
  const [begin, end] = [ranges[0], ranges.at(-1)];
  if (begin === undefined || end === undefined) return null;
  return {
    first: begin.block.day(begin.from),
    last: end.block.day(end.to - 1),
    points: pointsIn(ranges),
  };
}

/**
 * The points of a series within some days as columns.
 * @param last the number of last points; null for all
 */
export function columnsIn(
  blocks: readonly Block[],
  days: Days,
  last: number | null = null,
): Columns {
  const ranges = rangesIn(blocks, days);
  const points = pointsIn(ranges);
  let skipped = last === null ? 0 : Math.max(0, points - last);
  const columns = emptyColumns(points - skipped);
  let target = 0;
  for (const { block, from, to } of ranges) {
    const start = Math.min(from + skipped, to);
    block.unpackInto(columns, target, start, to);
    skipped -= start - from;
    target += to - start;
  }
  return columns;
}

/** Concatenates columns. */
function joined(parts: readonly Columns[]): Columns {
  const all = emptyColumns(parts.reduce((sum, { length }) => sum + length, 0));
  let target = 0;
  for (const part of parts) {
    for (const name of NAMES) all[name].set(part[name].subarray(0, part.length), target);
    target += part.length;
  }
  return all;
}

const NAMES = ['day', 'low', 'mid', 'high', 'scale', 'publishedAt', 'corrections'] as const;

/** A series with the points of some days replaced. It shares the blocks of other years. */
export function withReplaced(blocks: readonly Block[], days: Days, points: Columns): Block[] {
  const firstYear = yearOf(days.first);
  const lastYear = yearOf(days.last);
  let start = 0;
  while (start < blocks.length && yearOf((blocks[start] as Block).lastDay) < firstYear) start += 1;
  // A short last block also takes the points of the next year.
  if (start > 0 && (blocks[start - 1] as Block).length < BLOCK_POINTS) start -= 1;
  let end = start;
  while (end < blocks.length && yearOf((blocks[end] as Block).firstDay) <= lastYear) end += 1;
  const touched = blocks.slice(start, end);
  const before = columnsIn(touched, { first: -Infinity, last: days.first - 1 });
  const after = columnsIn(touched, { first: days.last + 1, last: Infinity });
  const middle = blocksOf(joined([before, points, after]));
  return [...blocks.slice(0, start), ...middle, ...blocks.slice(end)];
}
