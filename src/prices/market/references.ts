import { type Kysely, sql } from 'kysely';
import type { Unit } from '../../conversion/units.ts';
import type { VatRates } from '../../conversion/vat.ts';
import { readCalendars } from '../../db/reference/calendars.ts';
import { readVatRates, type VatRatesOf } from '../../db/reference/vat-rates.ts';
import { type DataRevision, numberIn, requireCommit } from '../../db/revisions.ts';
import type {
  Currency,
  Database,
  DimensionValue,
  Product,
  UnitOfMeasure,
} from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';
import { dayOf } from '../../std/days.ts';
import { decimalOf } from '../../std/decimal.ts';
import { PriceCalendars } from './price-calendars.ts';

/** The reference objects of records, by the ids in the columns of `price`. */
export interface References {
  readonly products: ReadonlyMap<number, object>;
  readonly values: ReadonlyMap<number, object>;
  readonly frequencies: ReadonlyMap<number, object>;
  readonly priceTypes: ReadonlyMap<string, object>;
  readonly units: ReadonlyMap<number, UnitReference>;
  readonly currencies: ReadonlyMap<number, CurrencyReference>;
  readonly calendars: PriceCalendars;
  /** The rates of VAT by country, by its ISO 3166 code. */
  readonly vat: ReadonlyMap<string, VatRates>;
}

/** A unit, for conversion and as records show it. */
export interface UnitReference {
  readonly unit: Unit;
  readonly member: { readonly id: string; readonly name: string; readonly symbol: string };
  /** Code of UNECE Recommendation 20, if the unit has one. */
  readonly rec20: string | null;
}

export interface CurrencyReference {
  readonly id: number;
  readonly member: {
    readonly id: string;
    readonly name: string;
    readonly iso: string;
    readonly symbol: string;
  };
}

const vatRatesOf = (country: string, rates: VatRatesOf): VatRates => ({
  country,
  rates: [...rates].map(([from, rate]) => {
    const { digits, scale } = decimalOf(rate);
    return { from: dayOf(from), scaled: Number(digits), scale };
  }),
});

const rowsAt = <Row>(table: string, revision: string) =>
  sql<Row>`select * from ${sql.raw(`${table}_at`)}(${numberIn(revision)})
    where ${requireCommit(revision)}`;

async function loadReferences(db: Kysely<Database>, revision: string): Promise<References> {
  const [products, values, units, currencies, calendars, vat] = await Promise.all([
    rowsAt<Product & { id: number }>('product', revision).execute(db),
    rowsAt<DimensionValue & { id: number }>('dimension_value', revision).execute(db),
    rowsAt<UnitOfMeasure & { id: number }>('unit_of_measure', revision).execute(db),
    rowsAt<Currency & { id: number }>('currency', revision).execute(db),
    readCalendars(db, revision),
    readVatRates(db, revision),
  ]);
  const nameOf = (each: DimensionValue) => ({ id: each.uuid, name: each.name });
  const ofKind = (kind: string) => values.rows.filter((each) => each.kind === kind);
  return {
    products: new Map(
      products.rows.map((each) => [
        each.id,
        {
          id: each.uuid,
          name: each.name,
          alias: each.alias,
          chemicalCode: each.chemical_code,
          isSustainable: each.is_sustainable,
        },
      ]),
    ),
    values: new Map(values.rows.map((each) => [each.id, nameOf(each)])),
    frequencies: new Map(
      ofKind('frequency').map((each) => [each.id, { ...nameOf(each), shortName: each.short_name }]),
    ),
    priceTypes: new Map(ofKind('price-type').map((each) => [each.slug, nameOf(each)])),
    units: new Map(
      units.rows.map((each) => [
        each.id,
        {
          unit: each,
          member: { id: each.uuid, name: each.name, symbol: each.symbol },
          rec20: each.rec20,
        },
      ]),
    ),
    currencies: new Map(
      currencies.rows.map((each) => [
        each.id,
        {
          id: each.id,
          member: { id: each.uuid, name: each.name, iso: each.iso, symbol: each.symbol },
        },
      ]),
    ),
    calendars: new PriceCalendars(calendars),
    vat: new Map([...vat].map(([country, rates]) => [country, vatRatesOf(country, rates)])),
  };
}

/** Reads the reference data at a data revision, which never changes. */
export type ReferenceReader = (
  db: Kysely<Database>,
  data: Pick<DataRevision, 'epoch' | 'reference'>,
) => Promise<References>;

/** A reader with an LRU cache. @param entries most cached revisions */
export const referenceReader = (entries: number): ReferenceReader =>
  cachedByRevision(
    entries,
    (_db, { epoch, reference }) => `${epoch}.${reference}`,
    (db, { reference }) => loadReferences(db, reference),
  );
