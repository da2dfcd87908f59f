import type pg from 'pg';
import t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import {
  analyticsClient,
  type PointUnits,
  valuesIn,
} from '../../support/database/sql-analytics.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';

/** The service with the price book, and without. */
let services: readonly Service[];
let client: pg.PoolClient;
t.before(async () => {
  const database = await seededDatabase(t);
  services = [
    await serviceOn(t, database),
    await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' }),
  ];
  client = await analyticsClient(t, database);
});

interface Range {
  readonly dateFrom?: string;
  readonly dateTo?: string;
}

type Series = readonly (readonly [date: string, mean: string | null])[];
type Means = ReadonlyMap<string, Series>;

/**
 * Day and mean of each point, by code, as PostgreSQL computes them. Its factors have a
 * hundred decimals, so a mean halfway between two numbers is exact only to some decimals fewer.
 */
async function bySql(units: PointUnits, sessions: number): Promise<Means> {
  const { rows } = await client.query(
    `with ${valuesIn(units)}, means as (
      select code, date, case when count(*) over w = $1
        then pg_temp.by_rule(round(sum(mid) over w / $1, 60))::text end as mean
      from v window w as (partition by code order by date
        rows between $1 - 1 preceding and current row))
    select code, json_agg(json_build_array(date, mean) order by date) as series
    from means group by code`,
    [sessions],
  );
  return new Map(rows.map(({ code, series }) => [code, series]));
}

/** The points on the days, if there are any. */
const within = (means: Means, { dateFrom = '', dateTo = '9999' }: Range): Means =>
  new Map(
    [...means]
      .map(([code, series]) => {
        const some = series.filter(([date]) => date >= dateFrom && date <= dateTo);
        return [code, some] as const;
      })
      .filter(([, series]) => series.length > 0),
  );

/** The same, as the service answers. */
async function byService(
  from: Service,
  units: PointUnits,
  range: Range,
  form: object,
): Promise<Means> {
  const target = units === 'native' ? {} : { currency: 'EUR', unitOfMeasure: 'kg' };
  const found = new Map<string, Series>();
  for (const { slug } of SPECIFIED) {
    const { body } = await from.app.inject({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      headers: { 'x-api-key': from.key },
      payload: { filters: range, options: { includeSeries: true, ...target, ...form } },
    });
    for (const { code, series } of parseExact(body).data) {
      const means = series.map((each: { date: string; movingAverage: string | null }) => [
        each.date,
        each.movingAverage,
      ]);
      if (means.length > 0) found.set(code, means);
    }
  }
  return found;
}

/** The first point that differs, with its code; a comparison of all by tap takes a minute. */
function differenceOf(found: Means, right: Means): string | null {
  for (const code of new Set([...found.keys(), ...right.keys()])) {
    const [one = [], other = []] = [found.get(code), right.get(code)];
    const points = Array.from({ length: Math.max(one.length, other.length) }, (_, at) =>
      [one[at], other[at]].map((each) => `${each}`),
    );
    const odd = points.find(([is, should]) => is !== should);
    if (odd) return `${code}: ${odd.join(' and not ')}`;
  }
  return null;
}

const RANGES: readonly Range[] = [
  { dateFrom: '2026-03-10', dateTo: '2026-04-20' },
  { dateFrom: '2026-05-01' },
  {},
];

for (const units of ['native', 'EUR/kg'] as const) {
  t.test(`every moving average of every price is what SQL makes of it, ${units}`, async (t) => {
    for (const sessions of [1, 20, 250]) {
      const all = await bySql(units, sessions);
      for (const range of RANGES) {
        const right = within(all, range);
        const cut = new Map([...right].map(([code, series]) => [code, series.slice(-3)]));
        const title = JSON.stringify({ range, sessions });
        t.ok(right.size > 50, title);
        for (const from of services) {
          const movingAverage = sessions;
          const whole = await byService(from, units, range, { movingAverage });
          t.equal(differenceOf(whole, right), null, title);
          const form = { movingAverage, lastObservations: 3, includeSummary: sessions === 20 };
          const last = await byService(from, units, range, form);
          t.equal(differenceOf(last, cut), null, `the last of ${title}`);
        }
      }
    }
  });
}

t.test('a moving average changes no published value and no warning', async (t) => {
  for (const from of services) {
    for (const options of [{ includeSeries: true }, { includeSeries: true, currency: 'EUR' }]) {
      const filters = { dateFrom: '2026-03-10' };
      const without = await from.post('nickel', { filters, options });
      const means = { ...options, movingAverage: 20 };
      const { text } = await from.post('nickel', { filters, options: means });
      t.not(text, without.text);
      t.equal(text.replaceAll(/,"movingAverage":(?:null|-?[\d.]+)/g, ''), without.text);
    }
  }
});
