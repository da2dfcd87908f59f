import { type Insertable, type Kysely, sql, type Transaction } from 'kysely';
import { FX_SOURCES } from '../../../seeds/rates.ts';
import { FREQUENCY_SHORT_NAMES } from '../../../seeds/reference/categories.ts';
import { CURRENCIES } from '../../../seeds/reference/currencies.ts';
import { SEARCH_ALIASES } from '../../../seeds/reference/search-aliases.ts';
import { UNITS } from '../../../seeds/reference/units.ts';
import { VALUES } from '../../../seeds/reference/values.ts';
import { VAT_RATES } from '../../../seeds/reference/vat-rates.ts';
import type { SampleMarket } from '../../../seeds/sample.ts';
import type { ValueKind } from '../../catalog/dimensions.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { openRevision } from '../connection.ts';
import { idOf } from '../ids.ts';
import { vatChanges, vatCountriesEver, writeVatRates } from '../reference/vat-rates.ts';
import type {
  Currency,
  Database,
  DimensionValue,
  Product,
  SearchAlias,
  UnitOfMeasure,
} from '../schema.ts';

type Trx = Transaction<Database>;

/**
 * The columns by which a row is known, in the order of preference. A stored row with any of these
 * keys counts as present, because its owner may have edited the others.
 */
const KEYS = {
  market: [['slug']],
  currency: [['iso']],
  unit_of_measure: [['slug'], ['name_key']],
  dimension_value: [
    ['kind', 'slug'],
    ['kind', 'match_key'],
  ],
  product: [
    ['market_id', 'slug'],
    ['market_id', 'match_key'],
  ],
  search_alias: [['words', 'alias']],
} as const;
type ReferenceTable = keyof typeof KEYS;

/** The keys of a row, each as one text. */
const keysOf = (table: ReferenceTable, row: object): string[] =>
  KEYS[table].map((columns) =>
    JSON.stringify([table, ...columns.map((each) => [each, (row as Row)[each]])]),
  );
type Row = Readonly<Record<string, unknown>>;

/** Ids of stored rows, by each of their keys. */
export class ReferenceIds {
  readonly #ids: ReadonlyMap<string, number>;

  private constructor(ids: ReadonlyMap<string, number>) {
    this.#ids = ids;
  }

  static async read(db: Kysely<Database>): Promise<ReferenceIds> {
    const ids = new Map<string, number>();
    for (const table of Object.keys(KEYS) as ReferenceTable[]) {
      const { rows } = await sql<Row & { id: number }>`
        select * from ${sql.table(table)}`.execute(db);
      for (const row of rows) for (const key of keysOf(table, row)) ids.set(key, row.id);
    }
    return new ReferenceIds(ids);
  }

  /** The id of a row with one of these keys; undefined if there is none. */
  find(table: ReferenceTable, row: object): number | undefined {
    const key = keysOf(table, row).find((each) => this.#ids.has(each));
    return key === undefined ? undefined : this.#ids.get(key);
  }

  /** The same. @throws Error if there is none */
  get(table: ReferenceTable, row: object): number {
    const id = this.find(table, row);
    if (id === undefined) throw new Error(`the database lacks the ${table} ${JSON.stringify(row)}`);
    return id;
  }
}

const currencies = (): Insertable<Currency>[] =>
  Object.entries(CURRENCIES).map(([iso, { name, symbol }]) => ({
    uuid: idOf('currency', iso.toLowerCase()),
    iso,
    name,
    symbol,
  }));

const units = (): Insertable<UnitOfMeasure>[] =>
  Object.entries(UNITS).map(([slug, unit]) => ({
    uuid: idOf('unit', slug),
    slug,
    ...unit,
    name_key: matchKey(unit.name),
    symbol_key: matchKey(unit.symbol),
  }));

const shortNames: Readonly<Record<string, string>> = FREQUENCY_SHORT_NAMES;

function dimensionValues(): Insertable<DimensionValue>[] {
  const kinds = Object.entries(VALUES) as [ValueKind, Readonly<Record<string, string>>][];
  return kinds.flatMap(([kind, names]) =>
    Object.entries(names).map(([slug, name]) => ({
      uuid: idOf(kind, slug),
      kind,
      slug,
      name,
      short_name: kind === 'frequency' ? (shortNames[slug] ?? null) : null,
      match_key: matchKey(name),
    })),
  );
}

const products = (markets: readonly SampleMarket[], ids: ReferenceIds): Insertable<Product>[] =>
  markets.flatMap((market) =>
    market.products.map((product) => ({
      uuid: idOf('product', market.slug, product.slug),
      market_id: ids.get('market', { slug: market.slug }),
      slug: product.slug,
      name: product.name,
      alias: product.alias,
      chemical_code: product.chemicalCode,
      is_sustainable: product.isSustainable,
      match_key: matchKey(product.name),
    })),
  );

const searchAliases = (): Insertable<SearchAlias>[] =>
  Object.entries(SEARCH_ALIASES).flatMap(([words, aliases]) =>
    aliases.map((alias) => ({ words, alias })),
  );

/** Inserts the sources of rates, which have no revision, unlike their rates. */
async function writeSources(trx: Trx): Promise<void> {
  const rows = await trx.selectFrom('currency').select(['id', 'iso']).execute();
  const ids = new Map(rows.map(({ id, iso }) => [iso, id]));
  await trx
    .insertInto('fx_source')
    .values(
      FX_SOURCES.map(({ slug, name, base, isSample }) => ({
        slug,
        name,
        base_currency_id: ids.get(base) ?? 0,
        is_sample: isSample,
      })),
    )
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .execute();
}

/** Inserts the rates of VAT of countries that never had any, and returns their number. */
async function writeMissingVatRates(trx: Trx): Promise<number> {
  const known = await vatCountriesEver(trx);
  const missing = Object.entries(VAT_RATES).filter(([country]) => !known.has(country));
  const rates = missing.map(([country, all]) => {
    const texts = Object.entries(all).map(([from, rate]) => [from, String(rate)] as const);
    return [country, new Map(texts)] as const;
  });
  const { changes } = vatChanges(new Map(rates), new Map());
  if (changes.length === 0) return 0;
  await openRevision(trx, 'seeds: reference data');
  await writeVatRates(trx, changes, null);
  return changes.length;
}

/**
 * Inserts missing reference rows in one revision, or none if all are present. Does not change
 * present rows, whose names may have been edited.
 */
export async function writeReference(
  trx: Trx,
  markets: readonly SampleMarket[],
): Promise<{ inserted: number }> {
  const ids = await ReferenceIds.read(trx);
  const wanted = {
    currency: currencies(),
    unit_of_measure: units(),
    dimension_value: dimensionValues(),
    product: products(markets, ids),
    search_alias: searchAliases(),
  };
  let inserted = 0;
  for (const [name, rows] of Object.entries(wanted)) {
    const table = name as keyof typeof wanted;
    const missing = rows.filter((row) => ids.find(table, row) === undefined);
    if (missing.length === 0) continue;
    await openRevision(trx, 'seeds: reference data');
    await trx.insertInto(table).values(missing).execute();
    inserted += missing.length;
  }
  inserted += await writeMissingVatRates(trx);
  await writeSources(trx);
  return { inserted };
}
