import { descriptionOf, type Terms } from '../prices/contents.ts';
import { recordHead } from '../prices/json.ts';
import type { PlannedPrice } from '../prices/outcomes.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from './budget.ts';
import { type Piece, prefixedPieces } from './deflate.ts';
import type { BookPrice } from './edition.ts';
import type { Turns } from './turns.ts';

/** What ends a record, so that the next one may begin. */
export const BETWEEN = ']},';

/** A record up to its points, after what ends the record before it. */
class RecordHead extends Remembered {
  readonly text: Buffer;
  readonly bytes: number;
  readonly #heads: Map<string, Remembered>;
  readonly #key: string;

  constructor(heads: Map<string, Remembered>, key: string, text: string) {
    super();
    const written = Buffer.from(`${BETWEEN}${text}`);
    this.text = Buffer.allocUnsafeSlow(written.length);
    written.copy(this.text);
    this.bytes = written.length + 2 * key.length + OVERHEAD_BYTES;
    this.#heads = heads;
    this.#key = key;
  }

  forget(): void {
    this.#heads.delete(this.#key);
  }
}

/** All that the text of a head depends on, beside the price and the reference data. */
function keyOf({ plan, targets }: Terms, { outcome }: PlannedPrice, isPartial: boolean): string {
  if (outcome === null) return '';
  const { status, reason, conversion } = outcome;
  const to = [targets.currency?.id, targets.unit?.unit.id, plan.options.decimals];
  return [...to, status, reason, conversion?.pair?.source, isPartial].join();
}

/** What is remembered under a key of a record, or made now and remembered. */
function rememberedIn<T extends Remembered>(
  heads: Map<string, Remembered>,
  key: string,
  budget: Budget,
  make: () => T,
): T {
  const known = heads.get(key) as T | undefined;
  if (known) {
    budget.use(known);
    return known;
  }
  const made = make();
  if (budget.add(made)) heads.set(key, made);
  return made;
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

/** The head of a record without a summary. */
export function headOf(
  { of, terms, planned, withoutRate }: HeadWanted,
  budget: Budget,
  turns: Turns,
): Buffer {
  const { heads, price } = of;
  const key = keyOf(terms, planned, withoutRate > 0);
  const make = () => {
    turns.spend(HEAD_POINTS);
    const description = descriptionOf(terms, { ...planned, price }, null, withoutRate);
    return new RecordHead(heads, key, recordHead(terms, description));
  };
  return rememberedIn(heads, key, budget, make).text;
}

/** What compressing a head costs, in points that are encoded. */
export const HEAD_COST = 200;

/** The same, compressed. */
export function deflatedHeadOf(wanted: HeadWanted, budget: Budget, turns: Turns): DeflatedHead {
  const { of, terms, planned, withoutRate } = wanted;
  const key = `${keyOf(terms, planned, withoutRate > 0)} deflated`;
  const make = () => {
    turns.spend(HEAD_COST);
    return new DeflatedHead(of.heads, key, headOf(wanted, budget, turns));
  };
  return rememberedIn(of.heads, key, budget, make);
}

/** The head of a record, compressed. */
class DeflatedHead extends Remembered {
  readonly whole: Piece;
  /** Without what ends the record before it. */
  readonly bare: Piece;
  readonly bytes: number;
  readonly #heads: Map<string, Remembered>;
  readonly #key: string;

  constructor(heads: Map<string, Remembered>, key: string, text: Buffer) {
    super();
    const { whole, bare } = prefixedPieces(text, BETWEEN.length);
    this.whole = whole;
    this.bare = bare;
    this.bytes = (whole.slices[0]?.length ?? 0) + 2 * key.length + 2 * OVERHEAD_BYTES;
    this.#heads = heads;
    this.#key = key;
  }

  forget(): void {
    this.#heads.delete(this.#key);
  }
}
