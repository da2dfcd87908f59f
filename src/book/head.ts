import type { RenderContext } from '../prices/answer/answer.ts';
import type { PlannedPrice } from '../prices/answer/conversions.ts';
import type { SelectedPrice } from '../prices/market/query.ts';
import { type CommonCells, commonCells } from '../prices/write/csv.ts';
import { recordStart } from '../prices/write/json.ts';
import { descriptionOf } from '../prices/write/points.ts';
import { type Budget, CacheEntry, OVERHEAD_BYTES } from './budget.ts';
import type { Turns } from './turns.ts';

/** The end of a record and the separator of the next. */
export const BETWEEN = ']},';

/** A record up to its points, prefixed with `BETWEEN`. */
export class RecordHead extends CacheEntry {
  readonly text: Buffer;
  readonly bytes: number;
  readonly #detach: () => void;

  /** @param heads the cache of the price, if the head is cached there by `key` */
  constructor(text: string, heads?: Map<string, CacheEntry>, key = '') {
    super();
    const written = Buffer.from(`${BETWEEN}${text}`);
    this.text = Buffer.allocUnsafeSlow(written.length);
    written.copy(this.text);
    this.bytes = written.length + 2 * key.length + OVERHEAD_BYTES;
    this.#detach = () => heads?.delete(key);
  }

  /** The text without its prefix. */
  get bare(): Buffer {
    return this.text.subarray(BETWEEN.length);
  }

  detach(): void {
    this.#detach();
  }
}

/** Identifies a head among those of one price at one revision of the reference data. */
function keyOf(
  { plan, targets }: RenderContext,
  { outcome }: PlannedPrice,
  isPartial: boolean,
): string {
  if (outcome === null) return '';
  const { status, reason, conversion } = outcome;
  const to = [targets.currency?.id, targets.unit?.unit.id, plan.options.decimals];
  return [...to, status, reason, conversion?.pair?.source, isPartial].join();
}

interface HeadInput {
  /** The cached heads of the price. */
  readonly heads: Map<string, CacheEntry>;
  readonly price: SelectedPrice;
  readonly context: RenderContext;
  readonly planned: PlannedPrice;
  /** Number of points without a rate. */
  readonly withoutRate: number;
}

/** Cost of encoding a head, in encoded points. */
const HEAD_POINTS = 50;

/** The head of a record without a summary, from the cache or added to it. */
export function readDataRevision(input: HeadInput, budget: Budget, turns: Turns): RecordHead {
  const { heads, price, context, planned, withoutRate } = input;
  const key = keyOf(context, planned, withoutRate > 0);
  const known = heads.get(key) as RecordHead | undefined;
  if (known) {
    budget.use(known);
    return known;
  }
  turns.spend(HEAD_POINTS);
  const description = descriptionOf(context, { ...planned, price }, null, withoutRate);
  const head = new RecordHead(recordStart(context, description), heads, key);
  if (budget.add(head)) heads.set(key, head);
  return head;
}

/** The cells that all rows of a price share, without a conversion and a summary. */
class RowCells extends CacheEntry {
  readonly cells: CommonCells;
  readonly bytes: number;
  readonly #heads: Map<string, CacheEntry>;

  constructor(cells: CommonCells, heads: Map<string, CacheEntry>) {
    super();
    this.cells = cells;
    const buffers: readonly Buffer[] = Object.values(cells);
    this.bytes = buffers.reduce((sum, { length }) => sum + length, 8 * OVERHEAD_BYTES);
    this.#heads = heads;
  }

  detach(): void {
    this.#heads.delete(CELLS);
  }
}

/** The key of the cells among the heads of a price; no head has it. */
const CELLS = 'csv';

/** The cells of the rows of a price, from the cache or added to it. */
export function cellsOf(
  { heads, price, context, planned }: Omit<HeadInput, 'withoutRate'>,
  budget: Budget,
  turns: Turns,
): CommonCells {
  const known = heads.get(CELLS) as RowCells | undefined;
  if (known) {
    budget.use(known);
    return known.cells;
  }
  turns.spend(HEAD_POINTS);
  const description = descriptionOf(context, { ...planned, price }, null, 0);
  const entry = new RowCells(commonCells(context, description), heads);
  if (budget.add(entry)) heads.set(CELLS, entry);
  return entry.cells;
}
