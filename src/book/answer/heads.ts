import type { PlannedPrice } from '../../prices/conversion/outcomes.ts';
import { descriptionOf, type Terms } from '../../prices/write/contents.ts';
import { recordHead } from '../../prices/write/json.ts';
import { type Piece, prefixedPieces } from '../gzip/deflate.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from '../store/budget.ts';
import type { BookPrice } from '../store/edition.ts';
import type { Turns } from '../store/turns.ts';

/** What ends a record, so that the next one may begin. */
export const BETWEEN = ']},';

/** What compressing a head costs, in points that are encoded. */
const DEFLATE_POINTS = 200;

/** A record up to its points, after what ends the record before it. */
export class RecordHead extends Remembered {
  readonly text: Buffer;
  bytes: number;
  readonly #forget: () => void;
  #pieces: { readonly whole: Piece; readonly bare: Piece } | null = null;

  /** @param key its key among those of the price, where it is cached */
  constructor(text: string, heads?: Map<string, RecordHead>, key = '') {
    super();
    const written = Buffer.from(`${BETWEEN}${text}`);
    this.text = Buffer.allocUnsafeSlow(written.length);
    written.copy(this.text);
    this.bytes = written.length + 2 * key.length + OVERHEAD_BYTES;
    this.#forget = () => heads?.delete(key);
  }

  /** The text without what ends the record before it. */
  get bare(): Buffer {
    return this.text.subarray(BETWEEN.length);
  }

  /** The same, compressed. */
  pieces(turns: Turns): { readonly whole: Piece; readonly bare: Piece } {
    if (this.#pieces !== null) return this.#pieces;
    turns.spend(DEFLATE_POINTS);
    const pieces = prefixedPieces(this.text, BETWEEN.length);
    this.#pieces = pieces;
    const bytes = this.bytes + (pieces.whole.slices[0]?.length ?? 0) + OVERHEAD_BYTES;
    if (this.in === null) this.bytes = bytes;
    else this.in.resize(this, bytes);
    return pieces;
  }

  forget(): void {
    this.#forget();
  }
}

/** All that the text of a head depends on, beside the price and the reference data. */
function keyOf({ plan, targets }: Terms, { outcome }: PlannedPrice, isPartial: boolean): string {
  if (outcome === null) return '';
  const { status, reason, conversion } = outcome;
  const to = [targets.currency?.id, targets.unit?.unit.id, plan.options.decimals];
  return [...to, status, reason, conversion?.pair?.source, isPartial].join();
}

/** Which head of a record is meant, and what it is made from. */
interface HeadWanted {
  readonly of: BookPrice;
  readonly terms: Terms;
  readonly planned: PlannedPrice;
  readonly withoutRate: number;
}

/** What making a head costs, in points that are encoded. */
const HEAD_POINTS = 50;

/** The head of a record without a summary: cached, or made now and cached. */
export function headOf(
  { of: { heads, price }, terms, planned, withoutRate }: HeadWanted,
  budget: Budget,
  turns: Turns,
): RecordHead {
  const key = keyOf(terms, planned, withoutRate > 0);
  const known = heads.get(key);
  if (known) {
    budget.use(known);
    return known;
  }
  turns.spend(HEAD_POINTS);
  const description = descriptionOf(terms, { ...planned, price }, null, withoutRate);
  const made = new RecordHead(recordHead(terms, description), heads, key);
  if (budget.add(made)) heads.set(key, made);
  return made;
}
