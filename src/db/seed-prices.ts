import type { Insertable, Transaction } from 'kysely';
import { UNITS } from '../../seeds/reference/units.ts';
import { VALUES } from '../../seeds/reference/values.ts';
import type { SampleMarket, SamplePrice } from '../../seeds/sample.ts';
import { columnName, DIMENSIONS, type Kind } from '../catalog/dimensions.ts';
import { matchKey } from '../catalog/match-key.ts';
import { openRevision } from './connection.ts';
import type { Database, PriceDimensions, PriceRow } from './schema.ts';

type Trx = Transaction<Database>;

/** Ids of the rows that prices refer to, by a text that names each: its slug, or its name. */
type Ids = ReadonlyMap<string, number>;

/** The row of the seeds, also under another name; else the one that was added with its name. */
function idIn(ids: Ids, slug: string, name = slug): number {
  const id = ids.get(slug) ?? ids.get(name);
  if (id === undefined) throw new Error(`the database has no ${name}`);
  return id;
}

/** The slug of a value, which stays when somebody edits its name. */
function valueId(ids: Ids, kind: Kind, name: string): number {
  const values: Readonly<Record<string, string>> = VALUES[kind];
  const slug = Object.keys(values).find((each) => values[each] === name);
  return idIn(ids, `${kind}/${slug}`, `${kind} ${matchKey(name)}`);
}

async function referenceIds(trx: Trx): Promise<Ids> {
  const markets = await trx.selectFrom('market').select(['id', 'slug']).execute();
  const slugs = new Map(markets.map(({ id, slug }) => [id, slug]));
  const products = await trx
    .selectFrom('product')
    .select(['id', 'market_id', 'slug', 'match_key'])
    .execute();
  const values = await trx
    .selectFrom('dimension_value')
    .select(['id', 'kind', 'slug', 'match_key'])
    .execute();
  const currencies = await trx.selectFrom('currency').select(['id', 'iso']).execute();
  const units = await trx
    .selectFrom('unit_of_measure')
    .select(['id', 'slug', 'name_key'])
    .execute();
  return new Map([
    ...markets.map(({ id, slug }) => [`market ${slug}`, id] as const),
    ...products.map((row) => [`${slugs.get(row.market_id)} ${row.match_key}`, row.id] as const),
    ...products.map((row) => [`${slugs.get(row.market_id)}/${row.slug}`, row.id] as const),
    ...values.map(({ id, kind, match_key }) => [`${kind} ${match_key}`, id] as const),
    ...values.map(({ id, kind, slug }) => [`${kind}/${slug}`, id] as const),
    ...currencies.map(({ id, iso }) => [`currency ${iso}`, id] as const),
    ...units.map(({ id, name_key }) => [`unit ${name_key}`, id] as const),
    ...units.map(({ id, slug }) => [`unit/${slug}`, id] as const),
  ]);
}

function dimensionsOf(ids: Ids, price: SamplePrice): PriceDimensions {
  const columns = Object.values(DIMENSIONS).map(({ field, kind }) => {
    const name = price.dimensions[field] ?? null;
    return [columnName(field), name === null ? null : valueId(ids, kind, name)];
  });
  return {
    ...Object.fromEntries(columns),
    price_category_id: valueId(ids, 'price-category', price.category),
    frequency_id: valueId(ids, 'frequency', price.frequency),
  };
}

function rowOf(ids: Ids, market: SampleMarket, price: SamplePrice): Insertable<PriceRow> {
  const unit = UNITS[price.unit];
  const product = market.products.find(({ slug }) => slug === price.product);
  return {
    market_id: idIn(ids, `market ${market.slug}`),
    code: price.code,
    code_key: matchKey(price.code),
    price_type: price.type,
    currency_id: price.currency === null ? null : idIn(ids, `currency ${price.currency}`),
    unit_id: idIn(ids, `unit/${price.unit}`, `unit ${matchKey(unit.name)}`),
    unit_dimension: unit.dimension,
    product_id: idIn(
      ids,
      `${market.slug}/${price.product}`,
      `${market.slug} ${matchKey(product?.name ?? price.product)}`,
    ),
    name: price.name,
    short_name: price.shortName,
    specification: JSON.stringify(price.specification),
    assessment_launched_at: price.launched,
    ...dimensionsOf(ids, price),
  };
}

/**
 * Adds the sample prices that the database never had, and returns how many. A price that is there
 * in any form, or was there and was removed, stays as its owners left it.
 */
export async function writePrices(trx: Trx, markets: readonly SampleMarket[]): Promise<number> {
  const present = await trx
    .selectFrom('price')
    .select('code_key')
    .union(trx.selectFrom('price_history').select('code_key'))
    .execute();
  const known = new Set(present.map((row) => row.code_key));
  const ids = await referenceIds(trx);
  const rows = markets.flatMap((market) =>
    market.prices
      .filter(({ code }) => !known.has(matchKey(code)))
      .map((price) => rowOf(ids, market, price)),
  );
  if (rows.length === 0) return 0;
  await openRevision(trx, 'seeds: sample data');
  await trx.insertInto('price').values(rows).execute();
  return rows.length;
}
