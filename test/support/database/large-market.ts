import { sql } from 'kysely';
import { type MARKETS, type Market, marketOf } from '../../../src/catalog/markets.ts';
import type { TestDatabase } from './database.ts';

/** The size of a market. */
export interface Size {
  readonly prices: number;
  /** Products, and values of each dimension of the market. */
  readonly values: number;
  readonly points: number;
  /** Days with exchange rates. */
  readonly rateDays: number;
}

const SLUG: (typeof MARKETS)[number]['slug'] = 'lithium';

/** The market that is large. */
export const LARGE = marketOf(SLUG) as Market;

const DIMENSIONS = ['purity', 'incoterm', 'country', 'region', 'trade-type', 'grade'];

const references = ({ values, rateDays }: Size) => sql`
  with
  e as (insert into currency (uuid, iso, name, symbol)
    values (gen_random_uuid(), 'EUR', 'Euro', '€') returning id),
  c as (insert into currency (uuid, iso, name, symbol)
    values (gen_random_uuid(), 'USD', 'US Dollar', '$'),
      (gen_random_uuid(), 'CNY', 'Yuan', '¥') returning id),
  s as (insert into fx_source (slug, name, base_currency_id) select 'ECB', 'ECB', id from e),
  f as (insert into fx_rate (source, currency_id, date, rate)
    select 'ECB', c.id, date '2026-06-30' - n, trim_scale(1.1034 + n % 997 * 0.0001)
      from c, generate_series(0, ${rateDays}::int - 1) as n),
  u as (insert into unit_of_measure
    (uuid, slug, name, symbol, name_key, symbol_key, dimension, factor)
    values (gen_random_uuid(), 'tonne', 'tonne', 't', 'tonne', 't', 'mass', 1000),
      (gen_random_uuid(), 'pound', 'pound', 'lb', 'pound', 'lb', 'mass', 0.45359237)),
  v as (insert into dimension_value (uuid, kind, slug, name, short_name, match_key)
    values (gen_random_uuid(), 'price-type', 'price', 'Price', null, 'price'),
      (gen_random_uuid(), 'price-category', 'spot', 'Spot', null, 'spot'),
      (gen_random_uuid(), 'frequency', 'daily', 'Daily', 'D', 'daily')),
  d as (insert into dimension_value (uuid, kind, slug, name, short_name, match_key)
    select gen_random_uuid(), kind, 'v-' || n, made.name, null, lower(made.name)
      from unnest(${DIMENSIONS}::text[]) as kind, generate_series(1, ${values}::int) as n,
        lateral (select md5(kind || n) || ' metre of sulphate ' || n as name) as made)
  insert into product (uuid, market_id, slug, name, alias, chemical_code, is_sustainable, match_key)
    select gen_random_uuid(), market.id, 'p-' || n, made.name, 'P', 'P', false, lower(made.name)
      from market, generate_series(1, ${values}::int) as n,
        lateral (select md5('product' || n) || ' aluminium ' || n as name) as made
      where slug = ${SLUG}`;

const prices = ({ prices: count, values }: Size) => {
  const alias = (kind: string) => sql.ref(`of-${kind}`);
  const joins = DIMENSIONS.map(
    (kind) => sql`join dimension_value as ${alias(kind)}
      on ${alias(kind)}.kind = ${kind} and ${alias(kind)}.slug = 'v-' || value`,
  );
  return sql`
    insert into price (market_id, code, code_key, price_type, currency_id, unit_id, unit_dimension,
        product_id, name, price_category_id, frequency_id, specification,
        purity_id, incoterm_id, country_id, region_id, trade_type_id, grade_id)
      select market.id, code, lower(code), 'price', usd.id, tonne.id, 'mass', product.id,
        'Large ' || n, category.id, frequency.id,
        '[{"name": "VAT", "value": "included, 13 %", "order": 1}]'::jsonb,
        ${sql.join(DIMENSIONS.map((kind) => sql`${alias(kind)}.id`))}
      from (select n, 'CP-LI-' || lpad(n::text, 5, '0') as code, n % ${values}::int + 1 as value
          from generate_series(1, ${count}::int) as n) as made
        join market on market.slug = ${SLUG}
        join currency as usd on usd.iso = 'USD'
        join unit_of_measure as tonne on tonne.slug = 'tonne'
        join dimension_value as category on category.kind = 'price-category'
        join dimension_value as frequency on frequency.kind = 'frequency'
        join product on product.slug = 'p-' || value
        ${sql.join(joins, sql` `)}`;
};

const series = ({ points }: Size) => sql`
  insert into series (price_id, date, low, mid, high, published_at)
    select price.id, date '2026-06-30' - n, 999.5, 1000, 1000.5,
      (date '2026-06-30' - n) + time '16:00' at time zone 'UTC'
    from price, generate_series(0, ${points}::int - 1) as n`;

/** Renames each price, so that the feed has a state before and after. */
const renamed = sql`update price set name = name || ', renamed'`;

/** Fills an empty database of a test with one large market, in two revisions. */
export async function fillLarge({ db }: TestDatabase, size: Size): Promise<void> {
  const analyzed = sql`analyze`;
  const filled = [references(size), analyzed, prices(size), analyzed, series(size)];
  for (const statements of [filled, [renamed]]) {
    await db.transaction().execute(async (trx) => {
      await sql`select open_revision('a large market of a test')`.execute(trx);
      for (const each of statements) await each.execute(trx);
    });
  }
  await sql`vacuum analyze`.execute(db);
}
