import type pg from 'pg';
import type t from 'tap';
import type { TestDatabase } from './database.ts';

/**
 * An oracle in SQL: PostgreSQL computes conversions, aggregates and summaries from the tables of a
 * test, without any code of the service.
 */

/** Rounds half-even by the rule of the contract; `x` is exact or has a hundred decimals. */
const BY_RULE_FUNCTION = `
create function pg_temp.by_rule(x numeric) returns numeric language plpgsql as $$
declare
  d integer := 2;
  shifted numeric;
  whole numeric;
  n numeric;
begin
  while abs(x) * 10::numeric ^ d < 100000 and x <> 0 and d < 60 loop d := d + 1; end loop;
  shifted := abs(x) * ('1' || repeat('0', d))::numeric;
  whole := trunc(shifted);
  n := case when shifted - whole > 0.5 then whole + 1
    when shifted - whole = 0.5 and whole % 2 = 1 then whole + 1 else whole end;
  return trim_scale(sign(x) * n / ('1' || repeat('0', d))::numeric);
end $$`;

/** A connection with the function `pg_temp.by_rule`; the teardown closes it. */
export async function analyticsClient(
  test: Pick<typeof t, 'teardown'>,
  { pool }: Pick<TestDatabase, 'pool'>,
): Promise<pg.PoolClient> {
  const client = await pool.connect();
  test.teardown(() => client.release(true));
  await client.query(BY_RULE_FUNCTION);
  return client;
}

/** Stored values, or euro per kilogram if the price can be converted. */
export type PointUnits = 'native' | 'EUR/kg';

/** Sample rates are against the euro: one rate converts. */
const EURO_PER_KILOGRAM = `
  select m.slug, p.code, p.price_type = 'payable' as payable, s.date, s.published_at, s.corrections,
    case when kept then 1::numeric(200, 100)
      else 1::numeric(200, 100) / u.factor / case c.iso when 'EUR' then 1 else fx.rate end end as f,
    kept, s.low, s.mid, s.high
  from series s join price p on p.id = s.price_id join market m on m.id = p.market_id
    join unit_of_measure u on u.id = p.unit_id left join currency c on c.id = p.currency_id
    cross join lateral (select u.dimension <> 'mass' or (c.iso = 'EUR' and u.slug = 'kilogram'))
      as how (kept)
    left join lateral (select r.rate from fx_rate r where r.source = 'SAMPLE'
      and r.currency_id = c.id and r.date <= s.date and r.date >= s.date - 7
      order by r.date desc limit 1) as fx on true`;

const NATIVE = `
  select m.slug, p.code, p.price_type = 'payable' as payable, s.date, s.published_at, s.corrections,
    1::numeric(200, 100) as f, true as kept, s.low, s.mid, s.high
  from series s join price p on p.id = s.price_id join market m on m.id = p.market_id`;

/** A table \`v\` of every point: low, mid and high unrounded, and whether they are as stored. */
export const valuesIn = (units: PointUnits): string => `
  v as materialized (select slug, code, payable, kept, date, published_at, corrections,
    low * f as low, mid * f as mid, high * f as high
  from (${units === 'native' ? NATIVE : EURO_PER_KILOGRAM}) as all_points)`;

/** A number as in an answer: stored or rounded. */
export const shown = (value: string, kept: string): string =>
  `(case when ${kept} then trim_scale(${value}) else pg_temp.by_rule(${value}) end)::text`;

/** An instant as in an answer. */
export const instant = (value: string): string =>
  `regexp_replace(to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '\\.?0*$', '')
    || 'Z'`;
