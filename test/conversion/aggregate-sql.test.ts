import type pg from 'pg';
import t from 'tap';
import { METHODS, type Method, PERIODS, type Period } from '../../src/catalog/analytics.ts';
import { aggregatedPoints } from '../../src/conversion/aggregate.ts';
import type { Columns, PointColumns } from '../../src/conversion/columns.ts';
import { type Conversion, observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { dayText } from '../../src/std/days.ts';
import { testDatabase } from '../support/database/database.ts';
import { analyticsClient } from '../support/database/sql-analytics.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  type PointTexts,
  randomOf,
  ratesOf,
  textAt,
  unitOf,
} from './support.ts';

const BY_RULE = { decimals: null };

/** Random business days with rates on most of them, and prices on most of them. */
function randomSeries(seed: number) {
  const random = randomOf(seed);
  const rows: PointTexts[] = [];
  const usd: Record<string, string> = {};
  const cny: Record<string, string> = {};
  for (let day = dayOf('2019-12-20'); day <= dayOf('2021-02-10'); day += 1) {
    const date = dayText(day);
    if (random() < 0.6 || day < dayOf('2019-12-22')) {
      usd[date] = (1 + random() / 5).toFixed(4);
      cny[date] = (7 + random()).toFixed(4);
    }
    if (random() < 0.5 && day > dayOf('2020-01-01')) {
      const decimals = Math.floor(random() * 4);
      const mid = random() * 20_000 - 1000;
      const text = (value: number) => value.toFixed(decimals);
      const bare = random() < 0.01;
      rows.push([date, bare ? null : text(mid - 50), text(mid), text(mid + 70)]);
    }
  }
  return { rows, usd, cny };
}

const TRUNC: Record<Period, string> = {
  week: 'week',
  month: 'month',
  quarter: 'quarter',
  year: 'year',
};
const SQL_METHOD: Record<Method, string> = {
  average: 'sum(v) / count(*)',
  first: '(array_agg(v order by date))[1]',
  last: '(array_agg(v order by date desc))[1]',
  min: 'min(v)',
  max: 'max(v)',
};

/** The same aggregate, computed by PostgreSQL from the same texts. */
async function byPostgres(
  client: pg.PoolClient,
  column: string,
  period: Period,
  method: Method,
  converted: boolean,
): Promise<Record<string, unknown>[]> {
  const round = converted || method === 'average';
  const value = converted
    ? `p.${column} * 0.45359237 * fx.usd / 1000::numeric(200, 100) / fx.cny`
    : `p.${column}::numeric(200, 100)`;
  const { rows } = await client.query(`
    with converted as (
      select p.date, ${value} as v, date_trunc('${TRUNC[period]}', p.date::timestamp)::date as start
      from points as p left join lateral (select * from fx where fx.date <= p.date
        and fx.date >= p.date - 7 order by fx.date desc limit 1) as fx on true)
    select start::text, (start + interval '1 ${period === 'quarter' ? 'month' : period}'
        * ${period === 'quarter' ? 3 : 1} - interval '1 day')::date::text as end,
      count(*)::int as observations,
      case when count(v) < count(*) then null
        else ${round ? 'pg_temp.by_rule' : 'trim_scale'}(${SQL_METHOD[method]})::text end as value
    from converted group by start order by start`);
  return rows;
}

const asRows = (points: PointColumns, column: 'low' | 'mid' | 'high') =>
  Array.from({ length: points.length }, (_, index) => ({
    start: dayText(points.periods?.start[index] ?? 0),
    end: dayText(points.periods?.end[index] ?? 0),
    observations: points.periods?.observations[index],
    value: textAt(points[column], index),
  }));

async function fill(client: pg.PoolClient, series: ReturnType<typeof randomSeries>) {
  await client.query(
    `create temp table points (date date, low numeric, mid numeric, high numeric)`,
  );
  await client.query(`create temp table fx (date date, usd numeric, cny numeric)`);
  const columns = [0, 1, 2, 3].map((at) => series.rows.map((row) => row[at]));
  await client.query(
    `insert into points
      select * from unnest($1::date[], $2::numeric[], $3::numeric[], $4::numeric[])`,
    columns,
  );
  await client.query(
    'insert into fx select * from unnest($1::date[], $2::numeric[], $3::numeric[])',
    [Object.keys(series.usd), Object.values(series.usd), Object.values(series.cny)],
  );
}

t.test('every aggregate is what PostgreSQL computes, with and without conversion', async (t) => {
  const client = await analyticsClient(t, await testDatabase(t));
  const series = randomSeries(20_200_101);
  const columns: Columns = columnsOf(series.rows);
  const { conversion } = outcomeOf(
    { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
    { currency: CURRENCY.USD, unit: unitOf('pound') },
    ratesOf({ USD: series.usd, CNY: series.cny }),
  );
  await fill(client, series);
  for (const how of [null, conversion] satisfies (Conversion | null)[]) {
    for (const period of PERIODS) {
      for (const method of METHODS) {
        const points = aggregatedPoints(observe(columns, how), { period, method }, BY_RULE);
        for (const column of ['low', 'mid', 'high'] as const) {
          const right = await byPostgres(client, column, period, method, how !== null);
          const what = `${how ? 'converted' : 'native'} ${column}, ${period}, ${method}`;
          t.same(asRows(points, column), right, what);
        }
      }
    }
  }
});
