import type { Mapping } from '../mapping/schema.ts';
import type { SourceRow } from '../parsing/rows.ts';
import {
  type LoadErrorCode,
  type ProblemPlace,
  problemOf,
  Refusal,
} from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  NO_VALUE,
  NOT_LOADED,
  priceIn,
  releaseDay,
  SUFFIXES,
  UNITS,
  type UsgsSeries,
} from './usgs-series.ts';

/** The header and release of a salient table. */
interface Heading {
  readonly line: number;
  readonly names: readonly string[];
  readonly release: number;
}

/**
 * A column of a salient table and its price: a known series, or a price that the user described.
 */
interface MappedColumn {
  /** Column index from 0. */
  readonly at: number;
  readonly series: UsgsSeries | null;
  /** Unit of measure of a column without a series. */
  readonly unit?: string;
  readonly isInCents?: boolean;
}

/** Placeholder in the mapping of a column without a series; the user replaces it. */
const OWN_CODE = 'CODE';
const OWN_UNIT = 'UNIT';

function columnOf({ at, series, unit, isInCents }: MappedColumn) {
  const inCents = series ? series.cents === true : isInCents === true;
  return {
    code: series?.code ?? OWN_CODE,
    mid: at + 1,
    published: {
      currency: inCents ? 'USc' : 'USD',
      unit: series ? UNITS[series.unit] : (unit ?? OWN_UNIT),
    },
  };
}

function priceOf({ code, attributes }: UsgsSeries) {
  const { specification, ...texts } = attributes;
  return { code, ...texts, specification: JSON.parse(specification ?? '[]') };
}

const without = <T extends { kind: string }>(record: T): Omit<T, 'kind'> => {
  const { kind: _, ...members } = record;
  return members;
};

/** Builds a mapping with which `load table` reads columns of a salient table like `load usgs`. */
function tableMapping(columns: readonly MappedColumn[], { line, release }: Heading): Mapping {
  const all = columns.flatMap(({ series }) => (series ? [series] : []));
  const needs = all.flatMap((each) => each.needs);
  const products = needs.flatMap((each) => (each.kind === 'product' ? [without(each)] : []));
  const values = needs.flatMap((each) => (each.kind === 'value' ? [without(each)] : []));
  const day = releaseDay(release);
  return {
    rows: { header: line },
    date: { column: 3, pattern: 'yyyy' },
    columns: columns.map(columnOf),
    numbers: { thousands: 'comma', missing: [...NO_VALUE, ''] },
    publishedAt: { constant: `${day}T00:00:00Z` },
    vintage: { constant: day },
    ...(all.length > 0 ? { prices: all.map(priceOf) } : {}),
    ...(products.length > 0 ? { products } : {}),
    ...(values.length > 0 ? { values } : {}),
  } as Mapping;
}

/** The column of a series; the index counts from 0. */
export interface SeriesColumn {
  readonly series: UsgsSeries;
  readonly at: number;
}

/** A price column, parsed by its name: `Price_LME_dt` has the word `lme` and the suffix `dt`. */
interface PriceColumn {
  readonly at: number;
  readonly name: string;
  /** Exchange or basis, in lower case. */
  readonly words: readonly string[];
  /** Currency and unit; null if the name does not end in exactly one known suffix. */
  readonly suffix: string | null;
}

const seriesText = ({ code, title, cents, unit }: UsgsSeries): string =>
  `${code} (${title}, US ${cents ? 'cents' : 'dollars'} per ${unit})`;

/** Splits a column name into its words and trailing suffixes. */
function partsOf(name: string, known: ReadonlySet<string>) {
  // Release 2024 adds "(both used)" to a heading with two suffixes.
  const text = name.toLowerCase().replace(/ \(both used\)$/, '');
  const words = text.split(/[\s_-]+/).filter((each) => each !== '' && each !== 'price');
  const suffixes: string[] = [];
  while (known.has(words.at(-1) ?? '')) suffixes.unshift(words.pop() as string);
  return { words, suffixes };
}

/** The indexes of a name among others. */
const placesOf = (name: string, names: readonly string[]): number[] =>
  names.flatMap((each, place) => (each === name ? [place] : []));

/**
 * The price columns of a table. If as many columns share a heading as it has suffixes, each gets
 * one suffix, from the left; `checkOrder` compares their values.
 */
function priceColumns(names: readonly string[], known: ReadonlySet<string>): PriceColumn[] {
  return names.flatMap((name, at) => {
    if (!/price/i.test(name)) return [];
    const { words, suffixes } = partsOf(name, known);
    const places = placesOf(name, names);
    const isOneEach = suffixes.length === places.length;
    if (isOneEach) return [{ at, name, words, suffix: suffixes[places.indexOf(at)] ?? null }];
    return [{ at, name, words, suffix: suffixes.length === 1 ? (suffixes[0] ?? null) : null }];
  });
}

/** True if a column has the suffix and every word of a series, and no other word. */
function matches({ column }: UsgsSeries, { words, suffix }: PriceColumn): boolean {
  if (suffix === null || !column?.suffixes.includes(suffix)) return false;
  const { needed = [], allowed = [] } = column;
  return (
    needed.every((each) => words.includes(each)) &&
    words.every((each) => needed.includes(each) || allowed.includes(each))
  );
}

/** The price columns of one table, and the series that each may hold. */
class SalientColumns {
  readonly tableSeries: readonly UsgsSeries[];
  readonly heading: Heading;
  readonly known: ReadonlySet<string>;
  readonly all: readonly PriceColumn[];
  /** The series with exactly one matching column. */
  readonly certain: readonly SeriesColumn[];

  constructor(tableSeries: readonly UsgsSeries[], heading: Heading) {
    this.tableSeries = tableSeries;
    this.heading = heading;
    const own = tableSeries.flatMap((each) => each.column?.suffixes ?? []);
    this.known = new Set([...Object.keys(SUFFIXES), ...own]);
    this.all = priceColumns(heading.names, this.known);
    this.certain = tableSeries.flatMap((series) => {
      const [column, second] = this.columnsFor(series);
      return column && !second ? [{ series, at: column.at }] : [];
    });
  }

  columnsFor(series: UsgsSeries): PriceColumn[] {
    return this.all.filter((each) => matches(series, each));
  }

  /** The series that an unknown column may hold: those without a column. */
  candidates({ suffix }: PriceColumn): UsgsSeries[] {
    return this.tableSeries.filter(
      (series) =>
        this.columnsFor(series).length === 0 &&
        (suffix === null || series.column?.suffixes.includes(suffix) === true),
    );
  }

  mapping(when: string, column: MappedColumn) {
    return { when, mapping: tableMapping([...this.certain, column], this.heading) };
  }

  /** Mappings that load a column as one of the candidates, or as a price of the user. */
  remedies({ at, suffix }: PriceColumn, candidates: readonly UsgsSeries[]) {
    if (candidates.length > 0) {
      return candidates.map((series) =>
        this.mapping(`it holds ${seriesText(series)}`, { series, at }),
      );
    }
    const quotation = suffix === null ? undefined : SUFFIXES[suffix];
    const when =
      `${OWN_CODE} is replaced by the code of a price that you have described` +
      (quotation ? '' : `, and ${OWN_UNIT} by its unit`);
    const unit = quotation && { unit: UNITS[quotation.unit], isInCents: quotation.isInCents };
    return [this.mapping(when, { series: null, at, ...unit })];
  }
}

type ColumnFault = readonly [code: LoadErrorCode, message: string, place: ProblemPlace];

/** Validates a price column; null if it is known. */
function faultOf(columns: SalientColumns, column: PriceColumn): ColumnFault | null {
  const place = { line: columns.heading.line, column: column.name };
  const series = columns.tableSeries.find((each) => matches(each, column));
  if (series) {
    const all = columns.columnsFor(series);
    if (all.length === 1) return null;
    const places = all.map(({ name, at }) => `${name} (column ${at + 1})`).join(' and ');
    const message = `${places} may each hold ${seriesText(series)}`;
    const remedies = columns.remedies(column, [series]);
    return ['ambiguous_column', message, { ...place, remedies }];
  }
  if (column.words.some((each) => NOT_LOADED.has(each))) return null;
  const remedies = columns.remedies(column, columns.candidates(column));
  if (column.suffix !== null) {
    return ['unknown_column', 'No price of this name is known', { ...place, remedies }];
  }
  const message = `The name must end in one of the suffixes ${[...columns.known].join(', ')}`;
  return ['unit_mismatch', message, { ...place, remedies }];
}

/**
 * Finds the column of each series by the parts of its name: the word `price`, an exchange or basis,
 * and a suffix for currency and unit.
 * @throws Refusal for an unknown price column, for two columns that may hold the same series, and
 *   for a series without a column
 */
export function columnsOf(
  tableSeries: readonly UsgsSeries[],
  heading: Heading,
  problems: Problems,
): readonly SeriesColumn[] {
  const columns = new SalientColumns(tableSeries, heading);
  const faults = columns.all.map((each) => faultOf(columns, each)).filter((each) => each !== null);
  for (const fault of faults.slice(1)) problems.refuse(problemOf(...fault));
  if (faults[0]) throw new Refusal(...faults[0]);
  const lacking = tableSeries.find((each) => columns.columnsFor(each).length === 0);
  if (lacking === undefined) return columns.certain;
  const message = `The table of ${lacking.commodity} has no column for ${seriesText(lacking)}`;
  throw new Refusal('missing_column', message, { line: heading.line });
}

/** Kilograms of each unit; a metric ton unit is 10 kg contained. */
const KILOGRAMS = { tonne: 1_000, lb: 0.45359237, kg: 1, g: 0.001, mtu: 10 };

/** Dollars per kilogram, for comparison of orders of magnitude only. */
const perKilogram = ({ unit, cents }: UsgsSeries, price: string): number =>
  Number(price) / KILOGRAMS[unit] / (cents ? 100 : 1);

/**
 * Compares columns that share a heading: similar prices show that the columns are in the order of
 * the suffixes.
 * @throws Refusal if prices differ by more than a factor of 2
 */
export function checkOrder(
  columns: readonly SeriesColumn[],
  { names }: Heading,
  { line, fields }: SourceRow,
): void {
  const prices = columns.flatMap(({ series, at }) => {
    const name = names[at] ?? '';
    const price = placesOf(name, names).length > 1 ? priceIn(fields[at] ?? '') : null;
    return price ? [{ name, value: perKilogram(series, price) }] : [];
  });
  for (const { name, value } of prices) {
    const other = prices.find((each) => each.name === name && each.value > 2 * value);
    if (other === undefined) continue;
    const message = 'The columns of this name are not in the order of its units';
    throw new Refusal('unit_mismatch', message, { line, column: name });
  }
}
