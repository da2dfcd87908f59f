import { sql } from 'kysely';
import { MARKETS, type Market } from '../../../src/catalog/markets.ts';
import type { TestDatabase } from './database.ts';

/** The amount of data: daily points of each price, ending on 2026-06-30. */
export interface Bulk {
  readonly prices: number;
  readonly points: number;
  /** Random values, which compress badly. */
  readonly isNoise?: boolean;
}

/** The market that bulk data is made in. */
export const BULK_MARKET: Market = MARKETS[0];

const references = (market: string) => sql`
  with
  c as (insert into currency (uuid, iso, name, symbol)
    values (gen_random_uuid(), 'USD', 'US Dollar', '$')),
  u as (insert into unit_of_measure
    (uuid, slug, name, symbol, name_key, symbol_key, dimension, factor)
    values (gen_random_uuid(), 'tonne', 'tonne', 't', 'tonne', 't', 'mass', 1000)),
  v as (insert into dimension_value (uuid, kind, slug, name, short_name, match_key)
    values (gen_random_uuid(), 'price-type', 'price', 'Price', null, 'price'),
      (gen_random_uuid(), 'price-category', 'spot', 'Spot', null, 'spot'),
      (gen_random_uuid(), 'frequency', 'daily', 'Daily', 'D', 'daily'))
  insert into product
    (uuid, market_id, slug, name, alias, chemical_code, is_sustainable, match_key)
    select gen_random_uuid(), id, 'bulk', 'Bulk', 'B', 'B', false, 'bulk'
      from market where slug = ${market}`;

const prices = (count: number) => sql`
  insert into price (market_id, code, code_key, price_type, currency_id, unit_id, unit_dimension,
      product_id, name, price_category_id, frequency_id)
    select product.market_id, code, lower(code), 'price', (select id from currency),
      (select id from unit_of_measure), 'mass', product.id, 'Bulk ' || n,
      (select id from dimension_value where kind = 'price-category'),
      (select id from dimension_value where kind = 'frequency')
    from product, generate_series(1, ${count}::int) as n,
      lateral (select 'BULK-' || lpad(n::text, 5, '0')) as made (code)`;

const series = (points: number) => sql`
  insert into series (price_id, date, low, mid, high, published_at)
    select price.id, day, trim_scale(mid - 0.5), trim_scale(mid), trim_scale(mid + 0.5),
      day + time '16:00' at time zone 'UTC'
    from price, generate_series(0, ${points}::int - 1) as n,
      lateral (select date '2026-06-30' - n, 1000.5 + n * 0.25) as made (day, mid)`;

const noise = (points: number) => sql`
  insert into series (price_id, date, low, mid, high, published_at)
    select price.id, date '2026-06-30' - n, trim_scale(mid - below), trim_scale(mid),
      trim_scale(mid + above), date '2026-06-30' - n + random() * interval '1 day'
    from price, generate_series(0, ${points}::int - 1) as n,
      lateral (select trunc((random() * 1e6)::numeric, 8) + 1e6 * (n % 7) as mid,
        trunc((random() * 1e5)::numeric, 8) as below,
        trunc((random() * 1e5)::numeric, 8) as above) as made`;

/** Fills an empty database of a test with prices of one market and their series. */
export async function fill(
  database: TestDatabase,
  { prices: count, points, isNoise }: Bulk,
): Promise<void> {
  await database.db.transaction().execute(async (trx) => {
    await sql`select open_revision('bulk data of a test')`.execute(trx);
    await references(BULK_MARKET.slug).execute(trx);
    await prices(count).execute(trx);
    await (isNoise ? noise : series)(points).execute(trx);
  });
}
