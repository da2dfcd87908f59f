import type { Mapping } from './table/schema.ts';
import { UNITS, type UsgsSeries } from './usgs-price.ts';
import { NO_VALUE, releaseDay } from './usgs-values.ts';

/** The header of a salient table, and the release that the table is of. */
export interface Heading {
  readonly line: number;
  readonly names: readonly string[];
  readonly release: number;
}

/** A column of a salient table and its price: a series, or one that the user has described. */
export interface MappedColumn {
  /** Place from 0. */
  readonly at: number;
  readonly series: UsgsSeries | null;
  /** Unit of measure of a column without a series. */
  readonly unit?: string;
  readonly isInCents?: boolean;
}

/** What the user replaces in the mapping of a column that is none of the series. */
export const OWN_CODE = 'CODE';
export const OWN_UNIT = 'UNIT';

function columnOf({ at, series, unit, isInCents }: MappedColumn) {
  const inCents = series?.isInCents ?? isInCents ?? false;
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

/** A mapping with which `load table` reads columns of a salient table as `load usgs` does. */
export function tableMapping(
  columns: readonly MappedColumn[],
  { line, release }: Heading,
): Mapping {
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
