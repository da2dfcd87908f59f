import t from 'tap';
import { expected } from '../conversion/oracle.ts';
import { seededDatabase, type TestDatabase, testDatabase } from '../support/database/database.ts';
import { CURRENCY, inRevision, insertOf } from '../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { commit, putEcbRates, putRates } from '../support/prices/sample-writes.ts';

let database: TestDatabase;
let service: Service;
t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await putEcbRates(client);
    await putRates(client, 'ECB', 'USD', { '2019-11-07': '1.1077', '2019-11-11': '1.1041' });
    await putRates(client, 'ECB', 'CNY', { '2019-11-11': '7.7322' });
  });
  service = await serviceOn(t, database);
});

const get = (url: string, headers: Record<string, string> = {}, of: Service = service) =>
  of.request({ method: 'GET', url, headers });
const rates = (query: string) => get(`/v3/reference/rates?${query}`);

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

t.test('currencies are all there are, with the days for which the source has rates', async (t) => {
  const { status, json } = await get('/v3/reference/currencies');
  t.equal(status, 200);
  t.equal(json.$metadata.source, 'ECB');
  const { rows } = await database.pool.query(
    'select uuid as id, iso, name, symbol from currency order by iso collate "C"',
  );
  t.same(
    json.data.map(({ id, iso, name, symbol }: Json) => ({ id, iso, name, symbol })),
    rows,
  );
  const days = (iso: string) => {
    const found = json.data.find((each: Json) => each.iso === iso);
    return [found.firstRateDate, found.lastRateDate];
  };
  t.same(days('USD'), ['2019-11-07', '2019-11-11']);
  t.same(days('JPY'), ['2019-11-08', '2019-11-08']);
  t.same(days('EUR'), ['2019-11-07', '2019-11-11'], 'the base, whenever any other has one');
  t.same(days('KRW'), [null, null]);
});

t.test(
  'units have a dimension and an exact factor, and conversion accepts their names',
  async (t) => {
    const { json } = await get('/v3/reference/units');
    const { rows } = await database.pool.query(
      `select uuid as id, name, symbol, dimension, trim_scale(factor)::text as factor, rec20
      from unit_of_measure order by name collate "C"`,
    );
    t.same(json.data, rows);
    t.match(
      json.data.find((each: Json) => each.symbol === 'oz t'),
      { dimension: 'mass', factor: '0.0311034768', rec20: 'APZ' },
    );
    for (const { id, name, symbol } of json.data) {
      for (const unitOfMeasure of [id, name, symbol]) {
        const answer = await service.post('copper', {
          filters: { codes: ['none'] },
          options: { unitOfMeasure },
        });
        t.equal(answer.status, 200, unitOfMeasure);
      }
    }
  },
);

t.test('rates are the legs as published, day by day, and the cross rate for reading', async (t) => {
  const { json } = await rates('base=usd&quote=CNY');
  const { revision, asOf, ...rest } = json.$metadata;
  t.same(rest, {
    source: 'ECB',
    sourceBase: 'EUR',
    base: 'USD',
    quote: 'CNY',
    rounding: 'half-even, 10 decimals',
    warnings: [],
  });
  t.ok(revision && asOf);
  t.same(
    json.data.map((each: Json) => [each.date, each.legs.base, each.legs.quote]),
    [
      ['2019-11-08', '1.1034', '7.7115'],
      ['2019-11-11', '1.1041', '7.7322'],
    ],
    'a day with one leg alone has no rate',
  );
  for (const { rate, legs } of json.data) t.equal(rate, expected([legs.quote], [legs.base], 10));
  t.match((await rates('base=EUR&quote=JPY')).json.data, [
    { date: '2019-11-08', rate: '120.72', legs: { base: '1', quote: '120.72' } },
  ]);
  const dates = async (query: string) =>
    (await rates(`base=EUR&quote=USD&${query}`)).json.data.map((each: Json) => each.date);
  t.same(await dates('from=2019-11-08'), ['2019-11-08', '2019-11-11']);
  t.same(await dates('to=2019-11-08'), ['2019-11-07', '2019-11-08']);
  t.same(await dates('from=2019-11-09&to=2019-11-10'), []);
  t.same((await rates('base=KRW&quote=USD')).json.data, [], 'a known currency without rates');
  t.same((await rates('base=EUR&quote=EUR')).json.data, []);
});

t.test('a query that breaks a rule is refused, all of it at once', async (t) => {
  for (const [query, ...places] of [
    ['', '?base too_few_items', '?quote too_few_items'],
    ['base=USD', '?quote too_few_items'],
    ['base=USDX&quote=12', '?base invalid_format', '?quote invalid_format'],
    ['base=USD&quote=CNY&until=2020-01-01', '?until unknown_field'],
    ['base=USD&quote=CNY&from=2019-02-29&to=x', '?from invalid_format', '?to invalid_format'],
    ['base=USD&base=EUR&quote=CNY', '?base too_many_items'],
    ['base=U&quote=CNY&from=2020-01-02&to=2020-01-01', '?base invalid_format', '?from date_order'],
    ['base=ABC&quote=DEF', '?base unknown_currency', '?quote unknown_currency'],
  ] as const) {
    const { status, json } = await rates(query);
    t.same([status, json.code], [400, 'validation_failed'], query);
    t.same(
      json.errors.map((each: Json) => `${each.pointer} ${each.code}`).sort(),
      places.toSorted(),
      query,
    );
  }
  const { json } = await rates('base=ABC&quote=USD');
  for (const iso of ['EUR', 'USD', 'JPY']) t.match(json.errors[0].detail, iso);
});

for (const url of ['currencies', 'units', 'rates?base=USD&quote=CNY'].map(
  (each) => `/v3/reference/${each}`,
)) {
  t.test(`GET ${url} has its revision, a strong ETag, a 304, and any credential`, async (t) => {
    const { headers, json } = await get(url);
    t.equal(headers['x-data-revision'], json.$metadata.revision);
    t.match(headers['etag'], /^"[^"]+"$/);
    t.equal(headers['cache-control'], 'private, no-cache');
    t.equal(headers['vary'], 'accept, accept-encoding, x-api-key, authorization');
    const known = await get(url, { 'if-none-match': headers['etag'] as string });
    t.same([known.status, known.text], [304, '']);
    t.equal((await get(url, { accept: 'text/csv' })).status, 406);
    t.equal((await service.app.inject({ url })).statusCode, 401);
    const { headers: head } = await service.request({ method: 'HEAD', url });
    t.equal(head['etag'], headers['etag']);
  });
}

t.test('a new currency and a new unit are rows, known with the next request', async (t) => {
  const own = await testDatabase(t, { seeded: true });
  const other = await serviceOn(t, own);
  const sek = { ...CURRENCY, iso: "'SEK'", name: "'Swedish Krona'", symbol: "'kr'" };
  const body = { options: { currency: 'SEK', unitOfMeasure: 'cwt', includeSeries: true } };
  const tag = async () => (await get('/v3/reference/units', {}, other)).headers['etag'];
  t.equal((await other.post('nickel', body)).status, 400);
  const before = await tag();
  await inRevision(
    own.pool,
    insertOf('currency', sek),
    insertOf('unit_of_measure', {
      uuid: 'gen_random_uuid()',
      slug: "'hundredweight'",
      name: "'Hundredweight'",
      symbol: "'cwt'",
      name_key: "'hundredweight'",
      symbol_key: "'cwt'",
      dimension: "'mass'",
      factor: '50.80234544',
    }),
    `insert into fx_rate (source, currency_id, date, rate)
      select 'SAMPLE', (select id from currency where iso = 'SEK'), date, 11.25 from fx_rate
      where source = 'SAMPLE' and currency_id = (select id from currency where iso = 'USD')`,
  );
  t.not(await tag(), before, 'the ETag changes with the data');
  const { status, json } = await other.post('nickel', body);
  t.equal(status, 200);
  const record = json.data.find((each: Json) => each.code === 'CP-NI-0001');
  t.match(record.conversion, {
    status: 'converted',
    unitFactor: { multiply: '50.80234544', divide: '1000' },
  });
  t.equal(record.series[0].fx.to, '11.25');
});

t.test('a database without any source, and a source that does not exist, refuse', async (t) => {
  const empty = await serviceOn(t, await testDatabase(t));
  const none = await get('/v3/reference/currencies', {}, empty);
  t.match(none.json, { $metadata: { source: 'ECB' }, data: [] });
  t.equal((await get('/v3/reference/rates?base=EUR&quote=USD', {}, empty)).status, 400);
  const lost = await serviceOn(t, database, { FX_SOURCE: 'NOBODY' });
  const spans = await get('/v3/reference/currencies', {}, lost);
  t.equal(spans.json.$metadata.source, 'NOBODY');
  t.ok(spans.json.data.every((each: Json) => each.firstRateDate === null));
  const pair = await get('/v3/reference/rates?base=EUR&quote=USD', {}, lost);
  t.match(pair.json, { $metadata: { source: 'NOBODY', sourceBase: null }, data: [] });
  const { status, json } = await lost.post('nickel', { options: { currency: 'EUR' } });
  t.equal(status, 200);
  for (const { conversion } of json.data.filter((each: Json) => each.currency?.iso === 'USD')) {
    t.match(conversion, { status: 'refused', reason: 'no-rate', source: null });
  }
});

t.test('without real rates the sample is in use, by its name', async (t) => {
  const seeded = await serviceOn(t, await seededDatabase(t));
  const { json } = await get('/v3/reference/rates?base=EUR&quote=USD', {}, seeded);
  t.equal(json.$metadata.source, 'SAMPLE');
  t.ok(json.data.length > 1000);
});
