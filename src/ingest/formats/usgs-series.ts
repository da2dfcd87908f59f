import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Observes } from '../../catalog/analytics.ts';
import { MARKETS } from '../../catalog/markets.ts';
import { plainDecimal, writtenOut } from '../parsing/decimals.ts';
import type { ProblemPlace } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type {
  Attributes,
  ProductRecord,
  SourceRecord,
  ValueRecord,
} from '../records/source-record.ts';

export const UNITS = {
  tonne: 'Tonne',
  lb: 'Pound',
  kg: 'Kilogram',
  g: 'Gram',
  mtu: 'Metric ton unit',
};
type UsgsUnit = keyof typeof UNITS;

/** Currency and unit by the suffix of a column name. */
export const SUFFIXES: Readonly<Record<string, { unit: UsgsUnit; isInCents: boolean }>> = {
  dt: { unit: 'tonne', isInCents: false },
  dkg: { unit: 'kg', isInCents: false },
  dlb: { unit: 'lb', isInCents: false },
  dg: { unit: 'g', isInCents: false },
  ctslb: { unit: 'lb', isInCents: true },
};

/** An entry of `usgs.yaml`, where its members are documented. */
interface SeriesEntry {
  readonly code: string;
  readonly commodity: string;
  readonly column?: {
    readonly needed?: readonly string[];
    readonly allowed?: readonly string[];
    readonly suffixes: readonly string[];
  };
  readonly title: string;
  readonly unit: UsgsUnit;
  readonly cents?: boolean;
  readonly lastRelease?: number;
  readonly observes?: Observes;
  readonly name: string;
  readonly shortName: string;
  readonly product: string;
  readonly newProduct?: { readonly alias: string; readonly chemicalCode: string };
  readonly basis: string;
  /** Category and dimensions. */
  readonly dimensions: Readonly<Record<string, string>>;
}

/** A loaded series of the Mineral Commodity Summaries. */
export interface UsgsSeries extends SeriesEntry {
  readonly market: string;
  readonly attributes: Attributes;
  /** Products and dimension values that the description needs and the database may lack. */
  readonly needs: readonly (Omit<ProductRecord, 'line'> | Omit<ValueRecord, 'line'>)[];
}

function specificationOf({ basis, cents }: SeriesEntry): string {
  const values = cents ? 'US cents given in dollars' : 'values as published';
  const entries = {
    basis,
    estimates: 'the newest year of a release is an estimate of the USGS',
    source: 'U.S. Geological Survey, Mineral Commodity Summaries',
    licence: 'public domain',
    changes: `${values}, dated on the last day of the year`,
  };
  return JSON.stringify(
    Object.entries(entries).map(([name, value], index) => ({ name, value, order: index + 1 })),
  );
}

function seriesOf(entry: SeriesEntry): UsgsSeries {
  const { code, name, shortName, product, newProduct, unit, dimensions } = entry;
  const market = MARKETS.find(({ prefix }) => code.startsWith(`CP-${prefix}-`))?.slug ?? '';
  const { purity } = dimensions;
  return {
    ...entry,
    market,
    attributes: {
      market,
      name,
      shortName,
      product,
      priceType: 'Price',
      frequency: 'Annual',
      observes: entry.observes ?? 'year-mean',
      currency: 'USD',
      unitOfMeasure: UNITS[unit],
      specification: specificationOf(entry),
      ...dimensions,
    },
    needs: [
      ...(newProduct
        ? [{ kind: 'product', market, name: product, ...newProduct, isSustainable: false } as const]
        : []),
      ...(purity ? [{ kind: 'value', dimension: 'purity', name: purity } as const] : []),
    ],
  };
}

const { notLoaded, series } = parse(
  readFileSync(new URL('usgs.yaml', import.meta.url), 'utf8'),
) as { notLoaded: readonly string[]; series: readonly SeriesEntry[] };

/** Words of price columns that are not loaded. */
export const NOT_LOADED: ReadonlySet<string> = new Set(notLoaded);

/** The loaded series, and the attributes with which their prices are created. */
export const USGS_SERIES: readonly UsgsSeries[] = series.map(seriesOf);

/** The records that describe a series, with a line of the file as their place. */
export const describedBy = ({ code, attributes, needs }: UsgsSeries, line: number) => [
  ...needs.map((each): SourceRecord => ({ ...each, line })),
  { kind: 'price', line, code, attributes, whenPresent: 'keep' } as const,
];

/** Release days other than 31 January. */
const RELEASED: Readonly<Record<number, string>> = { 2026: '2026-02-06' };

/**
 * The day of a release. Tables state only its year; the USGS publishes the summaries on 31 January,
 * with few exceptions.
 */
export const releaseDay = (release: number): string => RELEASED[release] ?? `${release}-01-31`;

/** Parses the year of a release name, `MCS2025`; null if invalid. */
export const releaseOf = (text: string): number | null => {
  const year = /^MCS(\d{4})$/.exec(text.trim())?.[1];
  return year === undefined ? null : Number(year);
};

/** USGS codes for "no value": withheld, not available, not applicable, net exporter. */
export const NO_VALUE: ReadonlySet<string> = new Set(['W', 'NA', 'XX', 'E', '--', '—']);
const THOUSANDS = /^\d{1,3}(,\d{3})+(\.\d+)?$/;

/** States why a cell is not a price. */
function notPrice(text: string): string {
  if (text === '') return 'is empty; the USGS writes W or NA where it gives no price';
  if (/^[<>]|^less than/i.test(text)) return 'is a bound, not a price';
  return 'is not a number';
}

/**
 * Parses the price in a cell. Thousands may be separated by commas, and an estimate may be marked
 * by a leading `e`.
 * @returns null if the USGS gives no price, undefined for an invalid text
 */
export function priceIn(text: string): string | null | undefined {
  const plain = text.trim();
  if (NO_VALUE.has(plain)) return null;
  const number = plain.replace(/^e(?=\d)/, '');
  return plainDecimal(THOUSANDS.test(number) ? number.replaceAll(',', '') : number) ?? undefined;
}

/** The place of a value, with its year and release. */
interface ValuePlace {
  readonly line: number;
  readonly column: string;
  readonly year: string;
  readonly release: number;
}

/** The point of a series in a year; empty without a price, or after reporting a problem. */
export function pointOf(
  series: UsgsSeries,
  text: string,
  { line, column, year, release }: ValuePlace,
  problems: Problems,
): SourceRecord[] {
  const place: ProblemPlace = { line, column, value: text };
  const price = priceIn(text);
  if (price === null) return [];
  if (price === undefined) {
    problems.reject('invalid_number', `The value ${notPrice(text.trim())}`, place);
    return [];
  }
  if (!/^\d{4}$/.test(year) || Number(year) >= release) {
    const message = `The year must be before the release, ${release}`;
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
