import type { RateRecord } from '../load/records.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import { DayReader, Fault, shownText, type TableRow } from './fields.ts';
import type { Columns } from './layout.ts';
import type { Mapping } from './schema.ts';

/**
 * The currencies over the columns of a table, which name themselves: they come and go over the
 * years. Columns without a heading at the end of the table are none.
 * @throws Refusal for a heading that is no currency, or is there twice
 */
function currenciesOf({ header }: Columns, first: number): string[] {
  const line = header?.line ?? null;
  const names = (header?.fields ?? []).slice(first).map((field) => shownText(field).trim());
  const currencies = names.slice(0, names.findLastIndex((name) => name !== '') + 1);
  for (const [index, value] of currencies.entries()) {
    if (!/^[A-Z]{3}$/.test(value)) {
      const message = 'The header names something that is no currency code';
      throw new Refusal('unknown_column', message, { line, value });
    }
    if (currencies.indexOf(value) < index) {
      throw new Refusal('duplicate', 'The header names a currency twice', { line, value });
    }
  }
  if (currencies.length > 0) return currencies;
  throw new Refusal('missing_column', 'The header names no currency', { line });
}

/** Makes rates of the rows of a table with a currency over each column. */
export class RateReader {
  private readonly first: number;
  private readonly dateAt: number;
  private readonly currencies: readonly string[];
  private readonly days: DayReader;
  private readonly missing: ReadonlySet<string>;
  private readonly columns: Columns;
  private readonly problems: Problems;

  constructor(mapping: Mapping, columns: Columns, is1904: boolean, problems: Problems) {
    this.first = (mapping.rates?.first ?? 1) - 1;
    this.dateAt = columns.indexOf(mapping.date?.column ?? 1);
    this.currencies = currenciesOf(columns, this.first);
    this.days = new DayReader(mapping.date ?? {}, is1904);
    this.missing = new Set(mapping.numbers?.missing ?? ['']);
    this.columns = columns;
    this.problems = problems;
  }

  /** Adds the rates of a row. */
  take({ line, fields }: TableRow, records: RateRecord[]): void {
    const { first, currencies, missing, problems } = this;
    const rates = fields.slice(first).map((field) => shownText(field).trim());
    if (rates.slice(currencies.length).some((rate) => rate !== '')) {
      const message = `The row has ${rates.length} rates, the header ${currencies.length}`;
      problems.reject('wrong_column_count', message, { line });
      return;
    }
    const date = this.days.read(fields[this.dateAt]);
    if (date instanceof Fault) {
      const column = this.columns.naming(this.dateAt, line);
      problems.rejected += currencies.filter((_, index) => !missing.has(rates[index] ?? '')).length;
      problems.add(date.code, date.message, {
        line,
        column,
        value: shownText(fields[this.dateAt]),
      });
      return;
    }
    for (let index = 0; index < currencies.length; index += 1) {
      const rate = rates[index] ?? '';
      if (missing.has(rate)) continue;
      records.push({ kind: 'rate', line, currency: currencies[index] ?? '', date, rate });
    }
  }
}
