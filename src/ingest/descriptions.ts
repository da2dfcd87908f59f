import type { Problems } from './problems.ts';
import { Refusal } from './problems.ts';
import type { PriceRecord, ProductRecord, ValueRecord } from './records.ts';

/** Prices, products and dimension values that one file may describe; they are held in memory. */
const DESCRIPTIONS_MAX = 20_000;

/** What a file says about prices, products and dimensions, beside the values. */
export class Descriptions {
  /** By the number of the price. */
  readonly prices = new Map<number, PriceRecord>();
  readonly others: (ProductRecord | ValueRecord)[] = [];
  private readonly problems: Problems;

  constructor(problems: Problems) {
    this.problems = problems;
  }

  get isEmpty(): boolean {
    return this.prices.size === 0 && this.others.length === 0;
  }

  /** Keeps the first description of a price; a later one must say the same. */
  addPrice(number: number, record: PriceRecord): void {
    const first = this.prices.get(number);
    if (!first) {
      this.makeRoom(record.line);
      this.prices.set(number, record);
      return;
    }
    const names = Object.keys({ ...first.attributes, ...record.attributes });
    for (const column of names) {
      const value = record.attributes[column] ?? null;
      if (value === (first.attributes[column] ?? null)) continue;
      const message = `${record.code} was described otherwise in line ${first.line}`;
      this.problems.reject('conflicting', message, { line: record.line, column, value });
      return;
    }
  }

  add(record: ProductRecord | ValueRecord): void {
    this.makeRoom(record.line);
    this.others.push(record);
  }

  private makeRoom(line: number): void {
    if (this.prices.size + this.others.length < DESCRIPTIONS_MAX) return;
    const message = `The file describes more than ${DESCRIPTIONS_MAX} prices: load it in parts`;
    throw new Refusal('too_many_prices', message, { line });
  }
}
