import { NO_DAY } from '../conversion/calendar.ts';
import { type Columns, nativePoints, type PointColumns } from '../conversion/columns.ts';
import { type Conversion, convertedPoints, observe } from '../conversion/convert.ts';
import type { Rounding } from '../conversion/rounding.ts';
import { type CommonCells, encodeRows } from '../prices/write/csv.ts';
import { encodePoints } from '../prices/write/json.ts';
import { calendarDay } from '../std/days.ts';
import { type Block, type BlockRange, columnsOfBlock, columnsOfRanges } from './block.ts';
import { type Budget, CacheEntry, OVERHEAD_BYTES } from './budget.ts';
import {
  joinedCrc,
  joinedPieces,
  joinedShift,
  type Piece,
  prefixedPieces,
  STORED_HEAD,
  storedPiece,
} from './gzip.ts';
import type { Turns } from './turns.ts';

/** The currency, unit and rounding that the numbers of a series are written in. */
export interface NumberForm {
  /** Identifies the form, with the revision of its rates. */
  readonly key: string;
  readonly conversion: Conversion | null;
  readonly rounding: Rounding;
  /** The cells around the points in rows of CSV; null for JSON. */
  readonly cells: CommonCells | null;
}

/**
 * The points of a block as JSON, each after a comma, or as rows of CSV, with the offset of every
 * point.
 */
export class Fragment extends CacheEntry {
  readonly text: Buffer;
  /** The offset of each point, comma included, and the end of the last. */
  readonly starts: Uint32Array;
  /** Indexes of the points without a rate. */
  readonly withoutRate: readonly number[];
  readonly bytes: number;
  readonly cells: CommonCells | null;
  readonly #block: Block;
  readonly #key: string;
  /** The last slice: most requests ask for the same days. */
  #from = 0;
  #to = 0;
  #slice: Buffer;

  constructor(block: Block, { key, cells }: NumberForm, points: PointColumns) {
    super();
    this.starts = new Uint32Array(points.length + 1);
    const ends = this.starts.subarray(1);
    this.text = cells === null ? encodePoints(points, ends) : encodeRows(points, cells, ends);
    this.cells = cells;
    this.withoutRate = indexesWithoutRate(points);
    this.#to = points.length;
    this.#slice = this.text;
    this.bytes = this.text.length + this.starts.byteLength + OVERHEAD_BYTES;
    this.#block = block;
    this.#key = key;
  }

  detach(): void {
    this.#block.cache?.delete(this.#key);
  }

  /** The bytes of points, with the comma before the first. */
  slice(from: number, to: number): Buffer {
    if (from !== this.#from || to !== this.#to) {
      this.#from = from;
      this.#to = to;
      this.#slice = this.text.subarray(this.starts[from], this.starts[to]);
    }
    return this.#slice;
  }
}

function indexesWithoutRate({ fx, length }: PointColumns): readonly number[] {
  const indexes: number[] = [];
  if (fx === null) return indexes;
  for (let index = 0; index < length; index += 1) {
    if (fx.day[index] === NO_DAY) indexes.push(index);
  }
  return indexes;
}

/** Encodes points of a block as an uncached fragment. */
function encoded(block: Block, form: NumberForm, columns: Columns) {
  const { conversion, rounding } = form;
  const points = conversion
    ? convertedPoints(observe(columns, conversion), rounding)
    : nativePoints(columns);
  return new Fragment(block, form, points);
}

/** Cost of converting and encoding a point, in encoded points. */
const costOf = ({ conversion }: NumberForm): number => (conversion ? 3 : 1);

/** Fixed cost of a fragment, in encoded points. */
const FRAGMENT_POINTS = 10;

/** The cached fragment of a block in a form; undefined if its rows have other cells. */
function cachedFragment(block: Block, { key, cells }: NumberForm): Fragment | undefined {
  const known = block.cache?.get(key) as Fragment | undefined;
  return known?.cells === cells ? known : undefined;
}

/** The cached fragment of a block, or an uncached one. */
function fragmentFor(block: Block, form: NumberForm, turns: Turns): Fragment {
  const known = cachedFragment(block, form);
  if (known) return known;
  turns.spend(costOf(form) * (block.length + FRAGMENT_POINTS));
  return encoded(block, form, columnsOfBlock(block));
}

/** The fragment of a block, from the cache or added to it. */
export function fragmentOf(block: Block, form: NumberForm, budget: Budget, turns: Turns): Fragment {
  const fragment = fragmentFor(block, form, turns);
  if (fragment.budget === budget) budget.use(fragment);
  else addToCache(block, form.key, fragment, budget);
  return fragment;
}

/** Points of a block as JSON, each after a comma. Does not fill the cache. */
function textOf(block: Block, form: NumberForm, from: number, to: number, turns: Turns): Buffer {
  const known = cachedFragment(block, form);
  if (known) return known.slice(from, to);
  turns.spend(costOf(form) * (to - from));
  return encoded(block, form, columnsOfRanges([{ block, from, to }])).text;
}

/**
 * Caches an entry of a block in place of an older one, unless no edition holds the block any more.
 */
function addToCache(block: Block, key: string, entry: CacheEntry, budget: Budget): void {
  const older = block.cache?.get(key);
  if (older !== undefined) {
    budget.remove(older);
    block.cache?.delete(key);
  }
  if (block.isOutdated || !budget.add(entry)) return;
  // Making room for the entry may have evicted the edition itself.
  if (block.isOutdated) {
    budget.remove(entry);
    return;
  }
  block.cache ??= new Map();
  block.cache.set(key, entry);
}

/** Drops the cache of a block that no edition holds any more. */
export function outdate(block: Block, budget: Budget): void {
  block.isOutdated = true;
  for (const entry of block.cache?.values() ?? []) budget.remove(entry);
  block.cache = null;
}

/** Fewest points of a part of a block that another follows. A part ends with a calendar month. */
const PART_POINTS = 16;

/** Cost of compressing a point, in encoded points. */
const DEFLATE_COST = 12;

/** Numbers of a part in `DeflatedBlock.#sums`. */
const SUMS = 6;

const monthOf = (day: number): number => {
  const { year, month } = calendarDay(day);
  return 12 * year + month;
};

/** The index of the first point of each part, and the length of the block. */
function partsOf(block: Block): number[] {
  const starts = [0];
  let start = 0;
  for (let index = 1; index < block.length; index += 1) {
    if (index - start < PART_POINTS) continue;
    if (monthOf(block.day(index)) === monthOf(block.day(index - 1))) continue;
    starts.push(index);
    start = index;
  }
  return [...starts, block.length];
}

/** A compressed range of points, with or without the comma before the first. */
interface PointsPiece {
  readonly from: number;
  readonly to: number;
  readonly hasComma: boolean;
  readonly piece: Piece;
}

/** The points of a block as compressed JSON in parts. The comma before a part can be omitted. */
export class DeflatedBlock extends CacheEntry {
  bytes: number;
  /** The index of the first point of each part, and the number of points. */
  readonly firsts: readonly number[];
  readonly withoutRate: readonly number[];
  readonly cells: CommonCells | null;
  readonly #block: Block;
  readonly #key: string;
  readonly #deflated: Buffer;
  /** The offset of each part, comma included, and the end of the last. */
  readonly #starts: Uint32Array;
  /** For each part: CRC, shift and length with its comma, then the three without it. */
  readonly #sums: Int32Array;
  /** All parts, commas included. */
  readonly #all: Piece;
  readonly #ownBytes: number;
  #last: PointsPiece | null = null;

  constructor(block: Block, key: string, fragment: Fragment) {
    super();
    this.#block = block;
    this.#key = key;
    this.firsts = partsOf(block);
    this.withoutRate = fragment.withoutRate;
    this.cells = fragment.cells;
    const count = this.firsts.length - 1;
    this.#starts = new Uint32Array(count + 1);
    this.#sums = new Int32Array(SUMS * count);
    const pieces: Buffer[] = [];
    for (let part = 0; part < count; part += 1) {
      const [from, to] = [this.firsts[part] as number, this.firsts[part + 1] as number];
      const { whole, bare } = prefixedPieces(fragment.slice(from, to), 1);
      const [bytes] = whole.slices as readonly [Buffer];
      pieces.push(bytes);
      this.#starts[part + 1] = (this.#starts[part] as number) + bytes.length;
      const sums = [whole, bare].flatMap(({ crc, shift, length }) => [crc, shift, length]);
      this.#sums.set(sums, SUMS * part);
    }
    this.#deflated = Buffer.allocUnsafeSlow(this.#starts[count] as number);
    Buffer.concat(pieces).copy(this.#deflated);
    this.#all = this.#join(0, count, true);
    const numbers = this.#starts.byteLength + this.#sums.byteLength + 8 * this.firsts.length;
    this.#ownBytes = 3 * OVERHEAD_BYTES + this.#deflated.length + numbers;
    this.bytes = this.#ownBytes;
  }

  detach(): void {
    this.#block.cache?.delete(this.#key);
  }

  /** The first part that starts at a point or after it; the number of parts if there is none. */
  partFrom(point: number): number {
    let part = 0;
    while (part < this.firsts.length - 1 && (this.firsts[part] as number) < point) part += 1;
    return part;
  }

  /** The last piece, if it has the same points; null otherwise. */
  lastPiece(from: number, to: number, hasComma: boolean): Piece | null {
    const last = this.#last;
    if (last?.from !== from || last.to !== to || last.hasComma !== hasComma) return null;
    return last.piece;
  }

  /**
   * Caches the last piece: most requests ask for the same days.
   * @param bytes bytes of the piece that the block does not share
   */
  setLastPiece(from: number, to: number, hasComma: boolean, piece: Piece, bytes: number): void {
    this.#last = { from, to, hasComma, piece };
    const all = this.#ownBytes + bytes;
    if (this.budget === null) this.bytes = all;
    else this.budget.resize(this, all);
  }

  /** Parts as one piece. @param hasComma false omits the comma before the first part */
  piece(from: number, to: number, hasComma: boolean): Piece {
    const isAll = from === 0 && to === this.firsts.length - 1;
    return isAll && hasComma ? this.#all : this.#join(from, to, hasComma);
  }

  #join(from: number, to: number, hasComma: boolean): Piece {
    const sums = this.#sums;
    let at = SUMS * from + (hasComma ? 0 : 3);
    let crc = sums[at] as number;
    let shift = sums[at + 1] as number;
    let length = sums[at + 2] as number;
    for (let part = from + 1; part < to; part += 1) {
      at = SUMS * part;
      crc = joinedCrc(crc, sums[at] as number, sums[at + 1] as number);
      shift = joinedShift(shift, sums[at + 1] as number);
      length += sums[at + 2] as number;
    }
    const start = (this.#starts[from] as number) + (hasComma ? 0 : STORED_HEAD + 1);
    return { slices: [this.#deflated.subarray(start, this.#starts[to])], crc, shift, length };
  }
}

/** The compressed points of a block, from the cache or added to it. */
export function deflatedBlock(
  block: Block,
  form: NumberForm,
  budget: Budget,
  turns: Turns,
): DeflatedBlock {
  const key = `${form.key} deflated`;
  const known = block.cache?.get(key) as DeflatedBlock | undefined;
  if (known?.cells === form.cells) {
    budget.use(known);
    return known;
  }
  const deflated = new DeflatedBlock(block, key, fragmentFor(block, form, turns));
  turns.spend(DEFLATE_COST * block.length);
  addToCache(block, key, deflated, budget);
  return deflated;
}

/** A range of points, compressed: whole parts from the cache, the rest as stored text. */
export function pointsPiece(
  turns: Turns,
  form: NumberForm,
  { block, from, to }: BlockRange,
  deflated: DeflatedBlock,
  hasComma: boolean,
): Piece {
  const known = deflated.lastPiece(from, to, hasComma);
  if (known) return known;
  const first = deflated.partFrom(from);
  // `last` is the first part that ends after `to`.
  let last = first;
  while ((deflated.firsts[last + 1] ?? Number.POSITIVE_INFINITY) <= to) last += 1;
  const start = Math.min(deflated.firsts[first] as number, to);
  const end = Math.max(deflated.firsts[last] as number, start);
  const pieces: Piece[] = [];
  let bytes = 0;
  const addText = (begin: number, stop: number): void => {
    const text = textOf(block, form, begin, stop, turns);
    const piece = storedPiece(hasComma || pieces.length > 0 ? text : text.subarray(1));
    bytes += piece.length;
    pieces.push(piece);
  };
  if (start > from) addText(from, start);
  if (last > first) pieces.push(deflated.piece(first, last, hasComma || pieces.length > 0));
  if (to > end) addText(end, to);
  const piece = joinedPieces(pieces);
  deflated.setLastPiece(from, to, hasComma, piece, bytes);
  return piece;
}
