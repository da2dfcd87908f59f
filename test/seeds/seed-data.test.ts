import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import t from 'tap';
import { sampleRates } from '../../seeds/rates.ts';
import { type SamplePrice, sampleMarkets } from '../../seeds/sample.ts';
import { seriesOf } from '../../seeds/series.ts';
import { DIMENSIONS } from '../../src/catalog/dimensions.ts';
import { MARKETS, marketOf } from '../../src/catalog/markets.ts';
import { idOf } from '../../src/db/ids.ts';
import { seededDatabase } from '../support/database/database.ts';

const { db } = await seededDatabase(t);

async function rowsOf<T = Record<string, unknown>>(query: string): Promise<T[]> {
  const { rows } = await sql.raw<T>(query).execute(db);
  return rows;
}

const markets = await sampleMarkets();
const prices: readonly SamplePrice[] = markets.flatMap((market) => market.prices);

/** Products, prices, and the beginning of the digest of the series, by market. */
const SAMPLES = {
  lithium: [11, 16, 'f730829a6d4e93d3'],
  manganese: [11, 14, '430dc5d1b2fd531f'],
  'lithium-ion-battery': [11, 15, '5c687096601d61a8'],
  cobalt: [11, 14, 'e3f3a26cdbfd4994'],
  anodes: [12, 14, '206c1137d6e5cc91'],
  cathodes: [13, 15, 'c3ba3028ba665e14'],
  electrolyte: [12, 14, '3ec8650f09f559dd'],
  'natural-graphite': [10, 14, 'cf7936fa1ac8c381'],
  'rare-earths': [15, 16, '33688e686bb3bc4f'],
  'synthetic-graphite': [12, 14, 'b1df35c7bbe295d5'],
  recycling: [13, 17, '6ae33020abfef486'],
  nickel: [13, 18, 'cec44204acd4649a'],
  aluminium: [12, 17, 'de8201b3002aed44'],
  'binders-and-additives': [15, 17, 'c3c68b0e64bd87d7'],
  precursor: [13, 16, 'f10b0001f8bd2424'],
  solvent: [12, 16, 'ae2bb7a756ded980'],
  copper: [11, 17, '70360df57a33ae06'],
} as const;

const POINTS = 'series s join price p on p.id = s.price_id';

t.test(
  'every market has products and prices with every filter of it; codes are unique',
  async (t) => {
    t.equal(new Set(prices.map(({ code }) => code)).size, prices.length);
    t.same(
      markets.map(({ slug }) => slug),
      MARKETS.map(({ slug }) => slug),
    );
    for (const market of markets) {
      t.ok(market.products.length > 0 && market.prices.length > 0, market.slug);
      const { filters, prefix } = marketOf(market.slug) ?? { filters: [], prefix: '' };
      const fields = filters.map((filter) => DIMENSIONS[filter].field);
      for (const price of market.prices) {
        t.ok(price.code.startsWith(`CP-${prefix}-`) && /^CP-[A-Z]{2}-\d{4}$/.test(price.code));
        t.same(Object.keys(price.dimensions).toSorted(), fields.toSorted(), price.code);
      }
      for (const field of fields) {
        t.ok(
          market.prices.some(({ dimensions }) => dimensions[field]),
          `${market.slug} ${field}`,
        );
      }
    }
  },
);

t.test('ids are the same in every database, for ever', async (t) => {
  const known = {
    'incoterm/cif': '87be894f-2695-5f01-98da-90efc057b674',
    'region/europe': 'ea19ec47-2756-5fa6-a101-0a87e1bfb467',
    'currency/usd': '6537187d-c52c-571e-b0fd-b1dd77a8053b',
    'unit/tonne': '8e6b60ad-d4df-5a24-a382-041430145ad3',
    'product/nickel/met': '6badb4d8-d319-5ba6-8d44-399b0921b204',
  };
  const rows = await rowsOf<{ path: string; uuid: string }>(
    `select kind || '/' || slug as path, uuid from dimension_value
     union all select 'currency/' || lower(iso), uuid from currency
     union all select 'unit/' || slug, uuid from unit_of_measure
     union all select 'product/' || m.slug || '/' || p.slug, p.uuid
       from product p join market m on m.id = p.market_id`,
  );
  const ids = new Map(rows.map(({ path, uuid }) => [path, uuid]));
  for (const [path, uuid] of Object.entries(known)) t.equal(ids.get(path), uuid, path);
  t.equal(idOf('incoterm', 'cif'), known['incoterm/cif']);
  t.equal(new Set(ids.values()).size, rows.length);
});

t.test('series and rates are the same on every machine and at every time', async (t) => {
  const hashOf = (lines: readonly string[]): string =>
    createHash('sha256').update(lines.join('\n')).digest('hex');
  const series = prices.flatMap((price) =>
    seriesOf(price).map(({ date, corrected, ...point }) => {
      const { low, mid, high } = corrected ?? point;
      return [price.code, date, low, mid, high, corrected?.correctedAt ?? point.publishedAt].join();
    }),
  );
  for (const { slug, products, prices: own } of markets) {
    const lines = own.flatMap(({ code }) => series.filter((line) => line.startsWith(`${code},`)));
    const known = SAMPLES[slug as keyof typeof SAMPLES];
    const found = [products.length, own.length, hashOf(lines).slice(0, 16)];
    // A new market has no samples of earlier versions.
    if (known) t.same(found, known, slug);
  }
  const rates = sampleRates().map((rate) => Object.values(rate).join());
  t.equal(hashOf(rates), 'a7c1e4235b84a4070f0676a3d06bcefe644b555ad86458ec5fef3186d193ff7d');

  t.test('and the database holds exactly them', async (t) => {
    const points = await rowsOf<{ line: string }>(
      `select concat_ws(',', p.code, s.date, s.low, s.mid, s.high,
         to_char(s.published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) as line
       from series s join price p on p.id = s.price_id`,
    );
    const stored = await rowsOf<{ line: string }>(
      `select concat_ws(',', c.iso, r.date, r.rate) as line
       from fx_rate r join currency c on c.id = r.currency_id`,
    );
    t.equal(hashOf(points.map(({ line }) => line).toSorted()), hashOf(series.toSorted()));
    t.equal(hashOf(stored.map(({ line }) => line).toSorted()), hashOf(rates.toSorted()));
  });
});

t.test('every sample is distinguishable from a real price', async (t) => {
  const unmarked = await rowsOf(
    `select code from price where not specification @> '[{"name": "sample data"}]'`,
  );
  t.same(unmarked, []);
  t.same(
    await rowsOf(
      `select source, is_sample, count(*)::integer as rates from fx_rate
       join fx_source on slug = source group by 1, 2`,
    ),
    [{ source: 'SAMPLE', is_sample: true, rates: 12_654 }],
  );
  t.same(await rowsOf('select slug, is_sample from fx_source order by slug'), [
    { slug: 'ECB', is_sample: false },
    { slug: 'FED', is_sample: false },
    { slug: 'SAMPLE', is_sample: true },
  ]);
});

t.test('low ≤ mid ≤ high, and the last day has the values of the table', async (t) => {
  t.same(await rowsOf('select * from series where not (low <= mid and mid <= high)'), []);
  const last = await rowsOf<Record<string, string>>(
    `select distinct on (p.code) p.code, s.date, s.low, s.mid, s.high
     from series s join price p on p.id = s.price_id order by p.code, s.date desc`,
  );
  const table = new Map(prices.map((price) => [price.code, price]));
  for (const { code = '', low, mid, high } of last) {
    const { low: from, mid: to, high: above } = table.get(code) ?? {};
    t.same([low, mid, high].map(Number), [from, to, above].map(Number), code);
  }
  t.match(
    last.filter(({ code }) => ['CP-CU-0006', 'CP-EL-0010', 'CP-LI-0014'].includes(code ?? '')),
    [
      { date: '2026-06-25', low: '0.11', mid: '0.125', high: '0.14' },
      { date: '2025-03-27', low: '26500', mid: '27800', high: '29100' },
      { date: '2026-06-25', low: '900000', mid: '930000', high: '960000' },
    ],
  );
});

t.test('the awkward cases are there', async (t) => {
  const codes = async (query: string): Promise<unknown> =>
    (await rowsOf<{ code: string }>(query)).map(({ code }) => code);
  const having = (condition: string): Promise<unknown> =>
    codes(`select p.code from ${POINTS} group by p.code having ${condition} order by p.code`);
  t.same(
    await having('min(s.low) < 0'),
    ['CP-BA-0017', 'CP-CU-0008', 'CP-CU-0009', 'CP-NI-0018', 'CP-RC-0015'],
    'negative values',
  );
  t.same(await having('min(s.mid) < 0 and max(s.mid) > 0'), ['CP-CU-0008', 'CP-CU-0009']);
  t.match(await having("bool_and(p.price_type = 'payable' and s.mid > 100)"), ['CP-PC-0011']);
  t.same(await having("max(s.date) < '2025-06-30'"), ['CP-EL-0010'], 'discontinued');
  t.same(
    await codes('select code from price where not exists (select from series where price_id = id)'),
    ['CP-SO-0016'],
    'launched, without values',
  );
  t.match(await having('min(s.low) < 2 and min(s.low) > 0'), [/^CP-/], 'small values');
  t.match(await having('max(s.high) > 900000'), [/^CP-/], 'large values');
  t.same(
    await rowsOf(
      `select s.date - lag as days from (
         select s.date, lag(s.date) over (order by s.date) as lag
         from ${POINTS} where p.code = 'CP-MN-0002') s where s.date - lag > 21`,
    ),
    [{ days: 112 }],
    'a gap',
  );
  const halfPoints = (mid: string, last: string): number =>
    Math.round((Number(mid) - Number(last)) * 1_000) / 500;
  t.same(
    prices
      .filter(({ type }) => type === 'payable')
      .filter((payable) =>
        seriesOf(payable).some(({ mid }) => !Number.isInteger(halfPoints(mid, payable.mid))),
      ),
    [],
    'payables move in half points',
  );
});

t.test('a wrong publication is corrected, and the past keeps it', async (t) => {
  const corrected = await rowsOf<Record<string, string | number>>(
    `select p.code, s.date, s.corrections, s.mid, h.mid as before, h.corrections as earlier,
       at_first.mid as at_first, s.published_at > h.published_at as later
     from series s join price p on p.id = s.price_id
     join series_history h using (price_id, date)
     join series_at(2) as at_first using (price_id, date)
     order by p.code, s.date`,
  );
  t.equal(corrected.length, 8);
  for (const point of corrected) {
    t.match(
      point,
      { corrections: 1, earlier: 0, later: true },
      `${point['code']} ${point['date']}`,
    );
    t.not(point['mid'], point['before']);
    t.equal(point['at_first'], point['before']);
  }
  t.equal((await rowsOf('select 1 from series where corrections > 0')).length, 8);
});

t.test('every sample payable has a reference, which is a sample price', async (t) => {
  const rows = await rowsOf<{ code: string; entry: { code: string } }>(
    `select code, payable_reference -> 0 as entry from price where price_type = 'payable'`,
  );
  const outright = new Set(prices.filter(({ type }) => type === 'price').map(({ code }) => code));
  t.ok(rows.length > 20);
  for (const { code, entry } of rows) t.ok(outright.has(entry?.code), code);
});
