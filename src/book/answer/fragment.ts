import { type Columns, NO_DAY, nativePoints, type PointColumns } from '../../conversion/columns.ts';
import { convertedPoints } from '../../conversion/convert.ts';
import { type Conversion, observe } from '../../conversion/observations.ts';
import type { Rounding } from '../../conversion/rounding.ts';
import { encodePoints } from '../../prices/write/json.ts';
import { type Block, columnsOfBlock } from '../store/block.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from '../store/budget.ts';
import { columnsOfStretches } from '../store/series.ts';
import type { Turns } from '../store/turns.ts';

/** What the numbers of a series are shown in. */
export interface SeriesTerms {
  /** Tells these terms from all others, of any revision. */
  readonly key: string;
  readonly conversion: Conversion | null;
  readonly rounding: Rounding;
}

/** The points of a block as JSON, each after a comma, with the place of every point. */
export class Fragment extends Remembered {
  readonly text: Buffer;
  /** Where each point begins, comma included, and where the last one ends. */
  readonly starts: Uint32Array;
  /** Indexes of the points that have no rate. */
  readonly withoutRate: readonly number[];
  readonly bytes: number;
  readonly #block: Block;
  readonly #key: string;
  /** The slice that was asked for last: many ask for the same days. */
  #from = 0;
  #to = 0;
  #slice: Buffer;

  constructor(block: Block, key: string, points: PointColumns) {
    super();
    this.starts = new Uint32Array(points.length + 1);
    this.text = encodePoints(points, this.starts.subarray(1));
    this.withoutRate = indexesWithoutRate(points);
    this.#to = points.length;
    this.#slice = this.text;
    this.bytes = this.text.length + this.starts.byteLength + OVERHEAD_BYTES;
    this.#block = block;
    this.#key = key;
  }

  forget(): void {
    this.#block.kept?.delete(this.#key);
  }

  /** The bytes of some points, with the comma before the first. */
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

/** A fragment of some points of a block, made now. */
function madeOf(block: Block, { key, conversion, rounding }: SeriesTerms, columns: Columns) {
  const points = conversion
    ? convertedPoints(observe(columns, conversion), rounding)
    : nativePoints(columns);
  return new Fragment(block, key, points);
}

/** What converting and encoding a point costs, in points that are encoded. */
const costOf = ({ conversion }: SeriesTerms): number => (conversion ? 3 : 1);

/** What a fragment costs however short it is, in points that are encoded. */
const FRAGMENT_POINTS = 10;

/** The fragment of a block for the moment: what is remembered of it stays as it is. */
export function fragmentFor(block: Block, terms: SeriesTerms, turns: Turns): Fragment {
  const known = block.kept?.get(terms.key) as Fragment | undefined;
  if (known) return known;
  turns.spend(costOf(terms) * (block.length + FRAGMENT_POINTS));
  return madeOf(block, terms, columnsOfBlock(block));
}

/** The fragment of a block: the one that is remembered, or one that is made now and remembered. */
export function fragmentOf(
  block: Block,
  terms: SeriesTerms,
  budget: Budget,
  turns: Turns,
): Fragment {
  const fragment = fragmentFor(block, terms, turns);
  if (fragment.in === budget) budget.use(fragment);
  else remember(block, terms.key, fragment, budget);
  return fragment;
}

/** Some points of a block as JSON, each after a comma; nothing is remembered. */
export function textOf(
  block: Block,
  terms: SeriesTerms,
  from: number,
  to: number,
  turns: Turns,
): Buffer {
  const known = block.kept?.get(terms.key) as Fragment | undefined;
  if (known) return known.slice(from, to);
  turns.spend(costOf(terms) * (to - from));
  return madeOf(block, terms, columnsOfStretches([{ block, from, to }])).text;
}

/** Remembers something of a block, unless the block is history already. */
export function remember(block: Block, key: string, made: Remembered, budget: Budget): void {
  if (block.isOutdated || !budget.add(made)) return;
  // What had to go to make room for it may have been the edition itself.
  if (block.isOutdated) {
    budget.remove(made);
    return;
  }
  block.kept ??= new Map();
  block.kept.set(key, made);
}

/** Forgets all that is remembered of a block, as no edition holds it any more. */
export function outdate(block: Block, budget: Budget): void {
  block.isOutdated = true;
  for (const made of block.kept?.values() ?? []) budget.remove(made);
  block.kept = null;
}
