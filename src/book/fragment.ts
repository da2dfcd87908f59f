import { NO_DAY } from '../conversion/calendar.ts';
import { type Columns, nativePoints, type PointColumns } from '../conversion/columns.ts';
import { type Conversion, convertedPoints, observe } from '../conversion/convert.ts';
import type { Rounding } from '../conversion/rounding.ts';
import { type CommonCells, encodeRows } from '../prices/write/csv.ts';
import { encodePoints } from '../prices/write/json.ts';
import { type Block, columnsOfBlock } from './block.ts';
import { type Budget, CacheEntry, OVERHEAD_BYTES } from './budget.ts';
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

/** The fragment of a block, from the cache or added to it. */
export function fragmentOf(block: Block, form: NumberForm, budget: Budget, turns: Turns): Fragment {
  const known = cachedFragment(block, form);
  if (known) {
    budget.use(known);
    return known;
  }
  turns.spend(costOf(form) * (block.length + FRAGMENT_POINTS));
  const fragment = encoded(block, form, columnsOfBlock(block));
  addToCache(block, form.key, fragment, budget);
  return fragment;
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
