import { matchKey } from '../../catalog/match-key.ts';
import { ownCopy } from '../parsing/texts.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import type { PriceRecord, ProductRecord, ValueRecord } from './records.ts';

/** Whether a text can be the code of a price; the table of prices has the same rule. */
export const isCode = (text: string): boolean => /^[!-~]{1,64}$/.test(text);

/** Different prices, or spellings of codes, that one file may name. */
const SUBJECTS_MAX = 100_000;

/**
 * The prices or currencies that a file names, numbered in the order of their first mention, so
 * that a staged row carries a small number.
 */
export class Subjects {
  /** As first written. */
  readonly names: string[] = [];
  /** By what they are compared with. */
  readonly keys: string[] = [];
  private readonly bySpelling = new Map<string, number>();
  private readonly byKey = new Map<string, number>();

  /**
   * The number of a price or currency, whose name was checked: at most 64 characters, so that what
   * is held of a file with any number of unknown names stays small.
   * @throws Refusal for one name too many
   */
  numberOf(name: string, line: number): number {
    const known = this.bySpelling.get(name);
    if (known !== undefined) return known;
    if (this.bySpelling.size >= SUBJECTS_MAX) {
      const message = `The file names more than ${SUBJECTS_MAX} different codes: load it in parts`;
      throw new Refusal('too_many_prices', message, { line });
    }
    const kept = ownCopy(name);
    const key = matchKey(kept);
    const number = this.byKey.get(key) ?? this.names.length;
    if (number === this.names.length) {
      this.names.push(kept);
      this.keys.push(key);
      this.byKey.set(key, number);
    }
    this.bySpelling.set(kept, number);
    return number;
  }
}

/** Prices, products and dimension values that one file may describe; they are held in memory. */
const DESCRIPTIONS_MAX = 20_000;
/** Characters of all of them together, as JSON. */
const CHARACTERS_MAX = 67_108_864;

/** What a file says about prices, products and dimensions, beside the values. */
export class Descriptions {
  /** By the number of the price. */
  readonly prices = new Map<number, PriceRecord>();
  readonly others: (ProductRecord | ValueRecord)[] = [];
  private held = 0;
  private readonly problems: Problems;

  constructor(problems: Problems) {
    this.problems = problems;
  }

  get count(): number {
    return this.prices.size + this.others.length;
  }

  /**
   * Keeps the first description of a price. A later one must say the same: whether it does, after
   * noting the problem when it does not.
   */
  addPrice(number: number, record: PriceRecord): boolean {
    const first = this.prices.get(number);
    if (!first) {
      this.prices.set(number, this.keep(record));
      return true;
    }
    const names = Object.keys({ ...first.attributes, ...record.attributes });
    for (const column of names) {
      const value = record.attributes[column] ?? null;
      if (value === (first.attributes[column] ?? null)) continue;
      const message = `${record.code} was described otherwise in line ${first.line}`;
      const { file, line } = record;
      this.problems.add('conflicting', message, { file, line, column, value });
      return false;
    }
    return true;
  }

  add(record: ProductRecord | ValueRecord): void {
    this.others.push(this.keep(record));
  }

  /** A copy of a record, so that the block of the file it was cut from is not kept with it. */
  private keep<T extends PriceRecord | ProductRecord | ValueRecord>(record: T): T {
    const copy = JSON.stringify(record);
    this.held += copy.length;
    const isFull = this.count >= DESCRIPTIONS_MAX;
    if (!isFull && this.held <= CHARACTERS_MAX) return JSON.parse(copy);
    const limit = isFull ? `${DESCRIPTIONS_MAX} prices` : `${CHARACTERS_MAX} characters of prices`;
    const message = `The file describes more than ${limit}: load it in parts`;
    throw new Refusal('too_many_prices', message, { file: record.file, line: record.line });
  }
}
