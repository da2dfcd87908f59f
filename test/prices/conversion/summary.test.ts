import type pg from 'pg';
import t from 'tap';
import { seededDatabase, type TestDatabase } from '../../support/database/database.ts';
import {
  analyticsClient,
  type PointUnits,
  shown,
  valuesIn,
} from '../../support/database/sql-analytics.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';

let database: TestDatabase;
let service: Service;
let client: pg.PoolClient;
t.before(async () => {
  database = await seededDatabase(t);
  service = await serviceOn(t, database);
  client = await analyticsClient(t, database);
});

/** The last day that may be the base of each span, from the date `d` of the latest. */
const BASES: Readonly<Record<string, string>> = {
  previous: 'd - 1',
  week: "d - interval '7 days'",
  fortnight: "d - interval '14 days'",
  month: "d - interval '1 month'",
  quarter: "d - interval '3 months'",
  halfYear: "d - interval '6 months'",
  year: "d - interval '1 year'",
  yearToDate: "date_trunc('year', d) - interval '1 day'",
};

const CHANGE = `json_build_object('absolute', pg_temp.by_rule(l.mid - b.mid)::text,
  'percent', case when not l.payable and b.mid > 0
    then pg_temp.by_rule((l.mid - b.mid) / b.mid * 100)::text end,
  'baseDate', b.date)`;

/** The summary of every price up to a day as PostgreSQL computes it, by code. */
async function bySql(units: PointUnits, dateTo: string): Promise<Map<string, unknown>> {
  const baseOf = (day: string) => `(select ${CHANGE} from v as b where b.code = l.code
    and b.date = (select max(date) from v where code = l.code and date <= ${day}))`;
  const changes = Object.entries(BASES).map(
    ([span, day]) => `'${span}', ${baseOf(day.replace(/\bd\b/, 'l.date'))}`,
  );
  const observed = (of: string) =>
    `json_build_object('date', ${of}.date, 'mid', ${shown(`${of}.mid`, `${of}.kept`)})`;
  await client.query(`create temp table bounded as
    with ${valuesIn(units)} select * from v where date <= '${dateTo}'`);
  await client.query('create index on bounded (code, date); analyze bounded');
  const { rows } = await client.query(
    `with v as not materialized (select * from bounded),
      latest as (select distinct on (code) * from bounded order by code, date desc)
    select l.code, json_build_object('latest', ${observed('l')},
      'previous', (select ${observed('b')} from v as b where b.code = l.code and b.date < l.date
        order by b.date desc limit 1),
      'changes', json_build_object(${changes.join(', ')})) as summary
    from latest as l`,
  );
  await client.query('drop table bounded');
  return new Map(rows.map((row) => [row.code, row.summary]));
}

const NOTHING = {
  latest: null,
  previous: null,
  changes: Object.fromEntries(Object.keys(BASES).map((span) => [span, null])),
};

for (const units of ['native', 'EUR/kg'] as const) {
  t.test(`every summary of every price is what SQL makes of it, ${units}`, async (t) => {
    const target = units === 'native' ? {} : { currency: 'EUR', unitOfMeasure: 'kg' };
    const percents = { some: 0, none: 0 };
    for (const dateTo of ['2199-12-31', '2024-02-29', '2022-01-01']) {
      const right = await bySql(units, dateTo);
      for (const { slug } of SPECIFIED) {
        const answer = await service.app.inject({
          method: 'POST',
          url: `/v3/prices/${slug}`,
          headers: { 'x-api-key': service.key },
          payload: { filters: { dateTo }, options: { includeSummary: true, ...target } },
        });
        for (const { code, summary, series } of parseExact(answer.body).data) {
          const wanted = right.get(code) ?? NOTHING;
          if (JSON.stringify(summary) !== JSON.stringify(wanted)) t.same(summary, wanted, code);
          percents[summary.changes.year?.percent ? 'some' : 'none'] += 1;
          t.ok(series.length === 0, 'a summary brings no series');
        }
      }
    }
    t.ok(percents.some > 300 && percents.none > 30, JSON.stringify(percents));
  });
}

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

t.test('dateTo bounds a summary, dateFrom and aggregate do not', async (t) => {
  const options = { includeSeries: true, includeSummary: true, currency: 'USD' };
  const summaries = async (filters: object, more: object = {}): Promise<Json[]> =>
    (await service.post('nickel', { filters, options: { ...options, ...more } })).json.data.map(
      (each: Json) => each.summary,
    );
  const dateTo = '2025-06-30';
  const whole = await summaries({ dateTo });
  t.same(await summaries({ dateTo, dateFrom: '2025-06-29' }), whole);
  const aggregate = { period: 'year', method: 'max' };
  t.same(await summaries({ dateTo }, { aggregate }), whole);
  t.not(JSON.stringify(await summaries({})), JSON.stringify(whole));
  t.ok(whole.every((each) => each.latest === null || each.latest.date <= dateTo));
});

t.test(
  'the latest of a summary is the last point of the range, and of its day alone',
  async (t) => {
    for (const { slug } of SPECIFIED) {
      const options = { includeSeries: true, includeSummary: true, currency: 'CNY' };
      const { json } = await service.post(slug, { filters: { dateTo: '2026-03-31' }, options });
      const record = json.data.find((each: Json) => each.series.length > 1);
      const last = record.series.at(-1);
      const day = last.date;
      const { json: single } = await service.post(slug, {
        filters: { codes: [record.code], dateFrom: day, dateTo: day },
        options,
      });
      t.same(single.data[0].series, [last], `${slug}: a single day is that day of the range`);
      t.same(record.summary.latest, { date: day, mid: last.mid });
      t.same(single.data[0].summary, record.summary);
    }
  },
);
