import type pg from 'pg';
import { inTransaction } from '../database/minimal-data.ts';

/** A price to add to a seeded database; other columns get any valid value. */
export interface NewPrice {
  readonly code: string;
  /** ISO 4217 code; null makes a payable, in percent. */
  readonly currency: string | null;
  /** Slug of the unit. */
  readonly unit: string;
  readonly market?: string;
  readonly specification?: readonly { name: string; value: string; order: number }[];
}

/** A point as texts: date, low, mid, high; null where there is no low or high. */
export type NewPoint = readonly [
  date: string,
  low: string | null,
  mid: string,
  high: string | null,
];

const PRICE = `
  insert into price (market_id, code, code_key, price_type, currency_id, unit_id, unit_dimension,
      product_id, name, specification, price_category_id, frequency_id)
    select m.id, $1::text, lower($1), case when $2::text is null then 'payable' else 'price' end,
      (select id from currency where iso = $2), u.id, u.dimension,
      (select min(id) from product where market_id = m.id), 'Price ' || $1, $5::jsonb,
      (select min(id) from dimension_value where kind = 'price-category'),
      (select min(id) from dimension_value where kind = 'frequency')
    from market m, unit_of_measure u where m.slug = $4 and u.slug = $3`;

const POINTS = `
  insert into series (price_id, date, low, mid, high, published_at)
    select (select id from price where code = $1), date, trim_scale(low), trim_scale(mid),
      trim_scale(high), date + time '16:00' at time zone 'UTC'
    from unnest($2::date[], $3::numeric[], $4::numeric[], $5::numeric[])
      as p (date, low, mid, high)
    on conflict (price_id, date) do update set low = excluded.low, mid = excluded.mid,
      high = excluded.high, corrections = series.corrections + 1`;

const RATES = `
  insert into fx_rate (source, currency_id, date, rate)
    select $1, (select id from currency where iso = $2), date, trim_scale(rate)
    from unnest($3::date[], $4::numeric[]) as r (date, rate)
    on conflict (source, currency_id, date) do update set rate = excluded.rate`;

/** Runs work as one commit and returns its revision number. */
export const commit = (
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<unknown>,
): Promise<number> =>
  inTransaction(pool, async (client) => {
    const { rows } = await client.query("select open_revision('test') as number");
    await work(client);
    return Number(rows[0].number);
  });

/** Adds a price to a market, nickel by default. */
export const addPrice = (client: pg.ClientBase, price: NewPrice): Promise<unknown> =>
  client.query(PRICE, [
    price.code,
    price.currency,
    price.unit,
    price.market ?? 'nickel',
    JSON.stringify(price.specification ?? []),
  ]);

/** Publishes points of a price, or corrects existing ones. */
export const putPoints = (
  client: pg.ClientBase,
  code: string,
  ...points: readonly NewPoint[]
): Promise<unknown> =>
  client.query(POINTS, [
    code,
    ...([0, 1, 2, 3] as const).map((at) => points.map((each) => each[at])),
  ]);

/** Publishes rates of a currency by date, or corrects existing ones. */
export const putRates = (
  client: pg.ClientBase,
  source: string,
  iso: string,
  rates: Readonly<Record<string, string>>,
): Promise<unknown> => client.query(RATES, [source, iso, Object.keys(rates), Object.values(rates)]);

/** ECB rates of 8 November 2019, units for one euro. */
export const ECB_2019_11_08 = { USD: '1.1034', CNY: '7.7115', JPY: '120.72' } as const;

/** Publishes the ECB rates of 8 November 2019. */
export async function putEcbRates(client: pg.ClientBase): Promise<void> {
  for (const [iso, rate] of Object.entries(ECB_2019_11_08)) {
    await putRates(client, 'ECB', iso, { '2019-11-08': rate });
  }
}
