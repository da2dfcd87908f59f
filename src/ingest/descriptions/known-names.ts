import type { Transaction } from 'kysely';
import { DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Database } from '../../db/schema.ts';

/** A price that references of payables may name. */
export interface ReferencedPrice {
  readonly code: string;
  readonly isPayable: boolean;
}

export type Trx = Transaction<Database>;

export interface ReferenceRow {
  readonly id: number;
  readonly name: string;
}
interface UnitRow extends ReferenceRow {
  readonly dimension: string;
}

/** Rows by match key of the name, and by id. */
type Lookup<T> = Map<string, T>;

/** Reference data that a price description may refer to. */
export interface ReferenceData {
  /** By slug. */
  readonly markets: Map<string, number>;
  /** By market. */
  readonly products: Map<number, Lookup<ReferenceRow>>;
  /** By kind. */
  readonly values: Map<string, Lookup<ReferenceRow>>;
  /** By ISO code. */
  readonly currencies: Map<string, ReferenceRow>;
  /** Also by symbol. */
  readonly units: Lookup<UnitRow>;
  /** Prices that references of payables may name, by code key. */
  readonly referenced: Map<string, ReferencedPrice>;
}

/** Dimension kinds by field: `cellFormat` → `cell-format`. */
export const KIND_OF: ReadonlyMap<string, string> = new Map([
  ...Object.values(DIMENSIONS).map((each) => [each.field, each.kind] as const),
  ['priceCategory', 'price-category'],
  ['frequency', 'frequency'],
]);

/** Adds a row to the lookup of its group, under those keys that are free. */
export function addTo<K, T>(
  groups: Map<K, Lookup<T>>,
  group: K,
  keys: readonly string[],
  row: T,
): void {
  const lookup: Lookup<T> = groups.get(group) ?? new Map();
  groups.set(group, lookup);
  for (const key of keys) if (!lookup.has(key)) lookup.set(key, row);
}

/** Reads the reference data, a few hundred rows. */
export async function readReference(trx: Trx): Promise<ReferenceData> {
  const markets = await trx.selectFrom('market').select(['id', 'slug']).execute();
  const products = await trx
    .selectFrom('product')
    .select(['id', 'uuid', 'market_id', 'name', 'match_key'])
    .orderBy('id')
    .execute();
  const values = await trx
    .selectFrom('dimension_value')
    .select(['id', 'uuid', 'kind', 'name', 'match_key'])
    .orderBy('id')
    .execute();
  const currencies = await trx.selectFrom('currency').select(['id', 'iso']).execute();
  const units = await trx
    .selectFrom('unit_of_measure')
    .select(['id', 'uuid', 'name', 'dimension', 'name_key', 'symbol_key'])
    .orderBy('id')
    .execute();
  const reference: ReferenceData = {
    markets: new Map(markets.map(({ slug, id }) => [slug, id])),
    products: new Map(),
    values: new Map(),
    currencies: new Map(currencies.map(({ id, iso }) => [iso, { id, name: iso }])),
    units: new Map(),
    referenced: new Map(),
  };
  for (const row of products) {
    addTo(reference.products, row.market_id, [row.match_key, row.uuid], row);
  }
  for (const row of values) addTo(reference.values, row.kind, [row.match_key, row.uuid], row);
  const byUnit = new Map([['', reference.units]]);
  // Names before symbols: a symbol must not hide the name of another unit.
  for (const row of units) addTo(byUnit, '', [row.name_key, row.uuid], row);
  for (const row of units) addTo(byUnit, '', [row.symbol_key], row);
  return reference;
}
