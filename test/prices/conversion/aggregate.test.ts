import type pg from 'pg';
import t from 'tap';
import { seededDatabase, type TestDatabase } from '../../support/database/database.ts';
import {
  analyticsClient,
  instant,
  type PointUnits,
  shown,
  valuesIn,
} from '../../support/database/sql-analytics.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';

/** It cuts a week, a month, a quarter and a year at both ends. */
const RANGE = { dateFrom: '2025-12-10', dateTo: '2026-04-20' };

const PERIODS = {
  week: ['week', '6 days'],
  month: ['month', '1 month - 1 day'],
  quarter: ['quarter', '3 months - 1 day'],
  year: ['year', '1 year - 1 day'],
} as const;
type Period = keyof typeof PERIODS;

const METHODS = {
  average: (v: string) => `sum(${v}) / count(*)`,
  first: (v: string) => `(array_agg(${v} order by date))[1]`,
  last: (v: string) => `(array_agg(${v} order by date desc))[1]`,
  min: (v: string) => `min(${v})`,
  max: (v: string) => `max(${v})`,
} as const;
type Method = keyof typeof METHODS;

let database: TestDatabase;
let service: Service;
let client: pg.PoolClient;
t.before(async () => {
  database = await seededDatabase(t);
  service = await serviceOn(t, database);
  client = await analyticsClient(t, database);
});

/** The series of every price as PostgreSQL aggregates them, by code. */
async function bySql(
  units: PointUnits,
  period: Period,
  method: Method,
): Promise<Map<string, unknown>> {
  const [unit, length] = PERIODS[period];
  const value = (name: string) => {
    const kept = method === 'average' ? 'false' : 'bool_and(kept)';
    return `case when count(${name}) = count(*) then ${shown(METHODS[method](name), kept)} end`;
  };
  const { rows } = await client.query(
    `with ${valuesIn(units)}, grouped as (
      select code, start::date as start, (start + interval '${length}')::date as "end",
        ${value('low')} as low, ${value('mid')} as mid, ${value('high')} as high,
        ${instant('max(published_at)')} as published, sum(corrections)::text as corrections,
        count(*)::text as observations
      from v cross join lateral (select date_trunc('${unit}', date::timestamp)) as p (start)
      where date between $1 and $2 group by code, start)
    select code, json_agg(json_build_object('date', "end", 'low', low, 'mid', mid, 'high', high,
      'publishedAt', published, 'corrections', corrections, 'periodStart', start,
      'periodEnd', "end", 'observations', observations) order by start) as series
    from grouped group by code`,
    [RANGE.dateFrom, RANGE.dateTo],
  );
  return new Map(rows.map((row) => [row.code, row.series]));
}

async function byService(units: PointUnits, period: Period, method: Method) {
  const target = units === 'native' ? {} : { currency: 'EUR', unitOfMeasure: 'kg' };
  const options = { includeSeries: true, aggregate: { period, method }, ...target };
  const series = new Map<string, { mid: string }[]>();
  for (const { slug } of SPECIFIED) {
    const answer = await service.app.inject({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      headers: { 'x-api-key': service.key },
      payload: { filters: RANGE, options },
    });
    for (const record of parseExact(answer.body).data) {
      if (record.series.length > 0) series.set(record.code, record.series);
    }
  }
  return series;
}

for (const units of ['native', 'EUR/kg'] as const) {
  t.test(`every aggregate of every price is what SQL makes of it, ${units}`, async (t) => {
    for (const period of Object.keys(PERIODS) as Period[]) {
      for (const method of Object.keys(METHODS) as Method[]) {
        const right = await bySql(units, period, method);
        const found = await byService(units, period, method);
        t.same([...found.keys()].sort(), [...right.keys()].sort());
        const wrong = [...found].filter(
          ([code, series]) => JSON.stringify(series) !== JSON.stringify(right.get(code)),
        );
        t.same(wrong.slice(0, 1), [], `${period} ${method}: ${found.size} prices`);
        if (wrong[0]) t.same(wrong[0][1], right.get(wrong[0][0]));
      }
    }
  });
}

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

t.test('a period at the edge is what the range holds of it, and counts that', async (t) => {
  const filters = { codes: ['CP-NI-0001'] };
  const seriesOf = async (range: object, options: object): Promise<Json[]> => {
    const { json } = await service.post('nickel', {
      filters: { ...filters, ...range },
      options: { includeSeries: true, ...options },
    });
    return json.data[0].series;
  };
  const aggregate = { period: 'quarter', method: 'average' };
  const range = { dateFrom: '2026-02-10', dateTo: '2026-04-15' };
  const quarters = await seriesOf(range, { aggregate });
  const daily = await seriesOf(range, {});
  t.match(quarters, [
    { date: '2026-03-31', periodStart: '2026-01-01', periodEnd: '2026-03-31' },
    { date: '2026-06-30', periodStart: '2026-04-01', periodEnd: '2026-06-30' },
  ]);
  const held = [daily.filter((each) => each.date <= '2026-03-31').length];
  held.push(daily.length - (held[0] ?? 0));
  t.same(
    quarters.map((each) => each.observations),
    held,
  );
  const both = await service.post('nickel', {
    filters: { ...filters, ...range },
    options: { includeSeries: true, includeSummary: true, aggregate },
  });
  const [{ series, summary }] = both.json.data;
  t.same(series, quarters, 'a summary that looks further back leaves the periods alone');
  t.equal(summary.latest.date, daily.at(-1).date, 'and is of the observations');
});
