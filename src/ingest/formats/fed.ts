import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { didYouMean } from '../../catalog/nearest.ts';
import { isDay } from '../parsing/dates.ts';
import { csvRows, type SourceRow } from '../parsing/rows.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { SourceRecord } from '../records/source-record.ts';

/** The currency of an H.10 column, and the days on which the country used it. */
interface CountryCurrency {
  readonly iso: string;
  readonly first?: string;
  readonly last?: string;
}

/** Columns of the H.10 by country. */
export const H10_COUNTRIES: Readonly<Record<string, CountryCurrency>> = parse(
  readFileSync(new URL('fed.yaml', import.meta.url), 'utf8'),
);

interface CountryColumn extends CountryCurrency {
  readonly country: string;
}

/**
 * Until this day a pound always cost more than a dollar; a lower rate reveals an inverted table.
 */
const POUND_ABOVE_DOLLAR_UNTIL = '2025-12-31';

const isDate = (name: string | undefined): boolean => /^(Date|Data)$/.test(name?.trim() ?? '');

/**
 * Parses the countries of the header. @throws Refusal for another table than that of daily rates
 */
function columnsOf({ line, fields }: SourceRow): CountryColumn[] {
  const [date, ...countries] = fields.map((each) => each.trim());
  if (isDate(date) && countries[0] === 'Country') {
    const message =
      'The table has one row for each country and month: monthly averages are not daily rates';
    throw new Refusal('period_averages', message, { line, value: fields.join() });
  }
  if (!isDate(date) || countries.length === 0) {
    const message = 'The first line of the H.10 is "Date" and a column for each country';
    throw new Refusal('invalid_layout', message, { line, value: fields.join() });
  }
  return countries.map((country, index) => {
    const currency = H10_COUNTRIES[country];
    if (!currency || countries.indexOf(country) < index) {
      const what = currency ? 'The country appears twice' : 'The H.10 has no such country';
      const message = `${what}${currency ? '' : didYouMean(country, Object.keys(H10_COUNTRIES))}`;
      throw new Refusal('unknown_column', message, { line, column: country, value: country });
    }
    return { country, ...currency };
  });
}

/**
 * @throws Refusal for a table in dollars for one pound, which would be read as pounds for one
 *   dollar
 */
function checkDirection({ iso }: CountryColumn, date: string, rate: string, line: number): void {
  if (iso !== 'GBP' || date > POUND_ABOVE_DOLLAR_UNTIL || !(Number(rate) >= 1)) return;
  const message = 'The table states dollars per pound; every column must state units per dollar';
  throw new Refusal('unit_mismatch', message, { line, column: 'United Kingdom', value: rate });
}

/** States why a column has no valid rate on a day; null if it may have one. */
function reasonForNone({ country, iso, first, last }: CountryColumn, date: string): string | null {
  if (first !== undefined && date < first) return `${country} has had the ${iso} since ${first}`;
  if (last !== undefined && date > last) return `${country} had the ${iso} until ${last}`;
  return null;
}

function ratesOf(
  { line, fields }: SourceRow,
  columns: readonly CountryColumn[],
  problems: Problems,
): SourceRecord[] {
  const [date = '', ...rates] = fields.map((each) => each.trim());
  return columns.flatMap((column, index) => {
    const rate = rates[index] ?? '';
    if (rate === '' || rate === 'ND') return [];
    checkDirection(column, date, rate, line);
    const why = reasonForNone(column, date);
    if (why === null) return [{ kind: 'rate', line, currency: column.iso, date, rate } as const];
    problems.reject('out_of_range', why, { line, column: column.country, value: rate });
    return [];
  });
}

/** True if a day is a Saturday or Sunday; there are no rates on weekends. */
const isWeekend = (day: string): boolean => [0, 6].includes(new Date(day).getUTCDay());

/** Parses the day of a row; null after reporting a problem. */
function dayIn({ line, fields }: SourceRow, rateCount: number, problems: Problems): string | null {
  const day = fields[0]?.trim() ?? '';
  if (isDay(day) && !isWeekend(day)) return day;
  const why = isDay(day) ? 'on a weekend, which has no rates' : 'not a day such as 2017-12-01';
  problems.rejected += rateCount;
  problems.add('invalid_date', `The date is ${why}`, { line, column: 'Date', value: day });
  return null;
}

/**
 * Reads the daily rates of the Federal Reserve (H.10): a row for each business day, a column for
 * each country, all in units of its currency for one US dollar. The vintage is the newest day.
 * Monthly averages are refused: they are dated on the first of the month and would be
 * indistinguishable from rates of that day.
 */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[]> {
  let columns: CountryColumn[] | null = null;
  let newest = '';
  let hasOtherDays = false;
  for await (const rows of csvRows(file.bytes(), problems)) {
    const records: SourceRecord[] = [];
    for (const row of rows) {
      if (columns === null) {
        columns = columnsOf(row);
        continue;
      }
      if (row.fields.length !== columns.length + 1) {
        const message = `The row has ${row.fields.length} fields, the header ${columns.length + 1}`;
        problems.reject('wrong_column_count', message, { line: row.line });
        continue;
      }
      const rates = ratesOf(row, columns, problems);
      const day = dayIn(row, rates.length, problems);
      if (day === null) continue;
      if (!day.endsWith('-01')) hasOtherDays = true;
      if (rates.length > 0 && day > newest) newest = day;
      records.push(...rates);
    }
    yield records;
  }
  if (newest === '') return;
  if (!hasOtherDays) {
    const message = 'Every date is the first of a month: monthly averages are not daily rates';
    throw new Refusal('period_averages', message);
  }
  yield [{ kind: 'vintage', date: newest }];
}

export const fed: FileFormat = {
  lineage: ['fed'],
  needsVintage: true,
  source: {
    slug: 'FED',
    name: 'Federal Reserve foreign exchange rates (H.10)',
    base: 'USD',
  },
  read,
};
