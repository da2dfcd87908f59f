import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { MARKETS } from '../../catalog/markets.ts';
import type { Attributes, ProductRecord, SourceRecord, ValueRecord } from '../load/records.ts';

export const UNITS = {
  tonne: 'Tonne',
  lb: 'Pound',
  kg: 'Kilogram',
  g: 'Gram',
  mtu: 'Metric ton unit',
};
type Unit = keyof typeof UNITS;

/** Currency and unit by the suffix of a column name. */
export const SUFFIXES: Readonly<Record<string, { unit: Unit; isInCents: boolean }>> = {
  dt: { unit: 'tonne', isInCents: false },
  dkg: { unit: 'kg', isInCents: false },
  dlb: { unit: 'lb', isInCents: false },
  dg: { unit: 'g', isInCents: false },
  ctslb: { unit: 'lb', isInCents: true },
};

/** A series as `usgs.yaml` describes it; the meaning of its members stands there. */
interface Entry {
  readonly code: string;
  readonly commodity: string;
  readonly column?: {
    readonly needed?: readonly string[];
    readonly allowed?: readonly string[];
    readonly suffixes: readonly string[];
  };
  readonly title: string;
  readonly unit: Unit;
  readonly cents?: boolean;
  readonly lastRelease?: number;
  readonly name: string;
  readonly shortName: string;
  readonly product: string;
  readonly newProduct?: { readonly alias: string; readonly chemicalCode: string };
  readonly basis: string;
  /** Category and dimensions. */
  readonly terms: Readonly<Record<string, string>>;
}

/** A series of the Mineral Commodity Summaries that becomes a price. */
export interface UsgsSeries extends Entry {
  readonly market: string;
  readonly attributes: Attributes;
  /** What its description needs and the reference data may lack. */
  readonly needs: readonly (Omit<ProductRecord, 'line'> | Omit<ValueRecord, 'line'>)[];
}

function specificationOf({ basis, cents }: Entry): string {
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

function seriesOf(entry: Entry): UsgsSeries {
  const { code, name, shortName, product, newProduct, unit, terms } = entry;
  const market = MARKETS.find(({ prefix }) => code.startsWith(`CP-${prefix}-`))?.slug ?? '';
  const { purity } = terms;
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
      currency: 'USD',
      unitOfMeasure: UNITS[unit],
      specification: specificationOf(entry),
      ...terms,
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
) as { notLoaded: readonly string[]; series: readonly Entry[] };

/** Words of price columns that are not loaded. */
export const NOT_LOADED: ReadonlySet<string> = new Set(notLoaded);

/** The series that are loaded, and the attributes with which their prices are created. */
export const USGS_SERIES: readonly UsgsSeries[] = series.map(seriesOf);

/** The records that describe a series, and what it needs, as if they stood in a line of a file. */
export const describedBy = ({ code, attributes, needs }: UsgsSeries, line: number) => [
  ...needs.map((each): SourceRecord => ({ ...each, line })),
  { kind: 'price', line, code, attributes, whenPresent: 'keep' } as const,
];
