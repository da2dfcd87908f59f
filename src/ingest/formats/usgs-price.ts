import { MARKETS } from '../../catalog/markets.ts';
import type { Attributes, ProductRecord, ValueRecord } from '../records.ts';

type NewProduct = Omit<ProductRecord, 'line'>;
type NewValue = Omit<ValueRecord, 'line'>;

/** A series of the Mineral Commodity Summaries that becomes a price. */
export interface UsgsSeries {
  readonly code: string;
  readonly market: string;
  /** How the column "Commodity" of its salient table names the commodity. */
  readonly commodity: string;
  /** Its column in the salient tables; null where no table holds it. */
  readonly column: ColumnParts | null;
  /** Its name in a table with a row for each series and year. */
  readonly title: string;
  /** Unit in such a table. */
  readonly unit: Unit;
  /** Whether it is published in US cents. */
  readonly isInCents: boolean;
  /** The last release that continues it; later ones give something else under its name. */
  readonly lastRelease: number | null;
  readonly attributes: Attributes;
  /** What its description needs and the reference data may lack. */
  readonly needs: readonly (NewProduct | NewValue)[];
}

export const UNITS = {
  tonne: 'Tonne',
  lb: 'Pound',
  kg: 'Kilogram',
  g: 'Gram',
  mtu: 'Metric ton unit',
};
type Unit = keyof typeof UNITS;

/** Kilograms of the unit; a metric ton unit is 10 kg contained. */
export const KILOGRAMS: Readonly<Record<Unit, number>> = {
  tonne: 1_000,
  lb: 0.45359237,
  kg: 1,
  g: 0.001,
  mtu: 10,
};

/** Currency and unit by the suffix of a column name. */
export const SUFFIXES: Readonly<Record<string, Pick<UsgsSeries, 'unit' | 'isInCents'>>> = {
  dt: { unit: 'tonne', isInCents: false },
  dkg: { unit: 'kg', isInCents: false },
  dlb: { unit: 'lb', isInCents: false },
  dg: { unit: 'g', isInCents: false },
  ctslb: { unit: 'lb', isInCents: true },
};

/** The parts of a column name beside the word `price`, in lower case. */
interface ColumnParts {
  /** Exchange or basis that tells the series from the others of its commodity. */
  readonly needed: readonly string[];
  /** Words that describe the same series. */
  readonly allowed: readonly string[];
  /** Suffixes for its currency and unit; some releases misspell them. */
  readonly suffixes: readonly string[];
}

/** Parts of a column name as a series declares them. */
export interface DeclaredParts {
  readonly needed?: readonly string[];
  readonly allowed?: readonly string[];
  /** Suffixes beside the one of its currency and unit, or in place of it. */
  readonly misspelt?: readonly string[];
}

const suffixesOf = ({ unit, isInCents }: Pick<UsgsSeries, 'unit' | 'isInCents'>): string[] =>
  Object.keys(SUFFIXES).filter(
    (each) => SUFFIXES[each]?.unit === unit && SUFFIXES[each]?.isInCents === isInCents,
  );

/** How a series is described here; the market is that of its code. */
export interface Terms {
  readonly title: string;
  readonly unit: Unit;
  readonly isInCents?: boolean;
  readonly name: string;
  readonly shortName: string;
  readonly product: string;
  /** Alias and formula of a product that is not among the reference data. */
  readonly newProduct?: readonly [alias: string, chemicalCode: string];
  readonly basis: string;
  readonly lastRelease?: number;
  /** Category and dimensions. */
  readonly terms: Readonly<Record<string, string>>;
}

export const AVERAGE = 'average of the calendar year';

function specificationOf(basis: string, isInCents: boolean): string {
  const values = isInCents ? 'US cents given in dollars' : 'values as published';
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

const marketOfCode = (code: string): string =>
  MARKETS.find(({ prefix }) => code.startsWith(`CP-${prefix}-`))?.slug ?? '';

/**
 * A series of the salient tables.
 * @param commodity the text of the column "Commodity"
 * @param parts of the name of its column; null where no table holds it
 */
export function series(
  code: string,
  commodity: string,
  parts: DeclaredParts | null,
  described: Terms,
): UsgsSeries {
  const { title, unit, isInCents = false, name, shortName, product, newProduct } = described;
  const { basis, terms, lastRelease = null } = described;
  const market = marketOfCode(code);
  const [alias, chemicalCode] = newProduct ?? ['', ''];
  const added: NewProduct = {
    kind: 'product',
    market,
    name: product,
    alias,
    chemicalCode,
    isSustainable: false,
  };
  const { purity } = terms;
  const value: NewValue | null = purity
    ? { kind: 'value', dimension: 'purity', name: purity }
    : null;
  return {
    code,
    market,
    commodity,
    column: parts && {
      needed: parts.needed ?? [],
      allowed: parts.allowed ?? [],
      suffixes: [...suffixesOf({ unit, isInCents }), ...(parts.misspelt ?? [])],
    },
    title,
    unit,
    isInCents,
    lastRelease,
    attributes: {
      market,
      name,
      shortName,
      product,
      priceType: 'Price',
      frequency: 'Annual',
      currency: 'USD',
      unitOfMeasure: UNITS[unit],
      specification: specificationOf(basis, isInCents),
      ...terms,
    },
    needs: [...(newProduct ? [added] : []), ...(value ? [value] : [])],
  };
}
