import type { SourceRecord } from '../load/records.ts';
import { plainDecimal, writtenOut } from '../parsing/decimals.ts';
import type { Place, Problems } from '../rejects/problems.ts';
import type { UsgsSeries } from './usgs-series.ts';

/** Days on which a release came out, where it was not the last of January. */
const RELEASED: Readonly<Record<number, string>> = { 2026: '2026-02-06' };

/**
 * The day of a release, which its tables do not state: they name its year. The USGS brings the
 * summaries out on the last day of January, with few exceptions.
 */
export const releaseDay = (release: number): string => RELEASED[release] ?? `${release}-01-31`;

/** The year of a release by its name, `MCS2025`; null when a text is no such name. */
export const releaseOf = (text: string): number | null => {
  const year = /^MCS(\d{4})$/.exec(text.trim())?.[1];
  return year === undefined ? null : Number(year);
};

/** Withheld, not available, not applicable, net exporter: words of the USGS for "no value". */
export const NO_VALUE: ReadonlySet<string> = new Set(['W', 'NA', 'XX', 'E', '--', '—']);
const THOUSANDS = /^\d{1,3}(,\d{3})+(\.\d+)?$/;

/** Why a cell is no price, in words. */
function notPrice(text: string): string {
  if (text === '') return 'is empty; the USGS writes W or NA where it gives no price';
  if (/^[<>]|^less than/i.test(text)) return 'is a bound and no price';
  return 'is not a number';
}

/**
 * The price in a cell: a decimal, null where the USGS gives none, undefined when it is neither.
 * Thousands may be separated by commas, and an estimate may be marked by an `e` before it.
 */
export function priceIn(text: string): string | null | undefined {
  const plain = text.trim();
  if (NO_VALUE.has(plain)) return null;
  const number = plain.replace(/^e(?=\d)/, '');
  return plainDecimal(THOUSANDS.test(number) ? number.replaceAll(',', '') : number) ?? undefined;
}

/** Where a value stands. */
interface ValuePlace {
  readonly line: number;
  readonly column: string;
  readonly year: string;
  readonly release: number;
}

/** The point of a series in a year; nothing where there is no price, or after noting a problem. */
export function pointOf(
  series: UsgsSeries,
  text: string,
  { line, column, year, release }: ValuePlace,
  problems: Problems,
): SourceRecord[] {
  const place: Place = { line, column, value: text };
  const price = priceIn(text);
  if (price === null) return [];
  if (price === undefined) {
    problems.reject('invalid_number', `The value ${notPrice(text.trim())}`, place);
    return [];
  }
  if (!/^\d{4}$/.test(year) || Number(year) >= release) {
    const message = `The year is not one before the release, ${release}`;
    problems.reject('invalid_date', message, { line, column: 'Year', value: year });
    return [];
  }
  const mid = series.cents ? writtenOut(`${price}e-2`) : price;
  return [
    {
      kind: 'point',
      line,
      code: series.code,
      date: `${year}-12-31`,
      low: null,
      mid,
      high: null,
      publishedAt: `${releaseDay(release)}T00:00:00Z`,
    },
  ];
}
