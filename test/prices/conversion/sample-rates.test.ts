import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { readDataRevision } from '../../../src/db/revisions.ts';
import { undo } from '../../../src/ingest/ledger/undo.ts';
import { samplesReader } from '../../../src/prices/market/samples.ts';
import { answerOf, type BookRequest, fill, type Twins, twinsOn } from '../../book/support.ts';
import { loadText } from '../../ingest/support/loading.ts';
import { testDatabase } from '../../support/database/database.ts';
import { explainedReads } from '../../support/database/query-plans.ts';
import { addPrice, commit, putPoints, putRates } from '../../support/prices/sample-writes.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read untyped bodies.
type Json = any;

const SAMPLE = 'CP-NI-0001';
const MARKED = [{ name: 'sample data', value: 'synthetic values', order: 1 }];
const POINTS = [
  ['2026-06-29', '99', '100', '101'],
  ['2026-06-30', null, '110.5', null],
] as const;

let twins: Twins;
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await addPrice(client, { code: 'OWN-1', currency: 'USD', unit: 'tonne' });
    await putPoints(client, 'OWN-1', ...POINTS);
    // Its description says what it is not.
    await addPrice(client, {
      code: 'OWN-2',
      currency: 'USD',
      unit: 'tonne',
      specification: MARKED,
    });
    await putPoints(client, 'OWN-2', ...POINTS);
  });
  twins = await twinsOn(t, database);
  await fill(twins);
});

/** Sends a request to the services with and without the price book; the answers must be equal. */
async function ask(test: Pick<typeof t, 'same'>, codes: readonly string[], options: object) {
  const request: BookRequest = {
    ...{ slug: 'nickel', accept: 'application/json' },
    filters: { codes, dateFrom: '2026-06-22' },
    options: { currency: 'EUR', ...options },
  };
  const [cached, plain] = await Promise.all([
    answerOf(twins.cached, request),
    answerOf(twins.plain, request),
  ]);
  test.same(
    [cached.status, cached.said, cached.body.toString()],
    [plain.status, plain.said, plain.body.toString()],
    JSON.stringify(request),
  );
  return JSON.parse(plain.body.toString().replace(/,}$/, '}')) as Json;
}

const codesOf = (json: Json): string[] => json.$metadata.warnings.map((each: Json) => each.code);
const statesOf = (json: Json) => json.data.map((each: Json) => each.conversion.status);

const SERIES = { includeSeries: true };

t.test('sample rates never convert a price that is not a sample', async (t) => {
  for (const options of [
    SERIES,
    {},
    { includeSummary: true },
    { ...SERIES, includeSummary: true, unitOfMeasure: 'lb' },
    { ...SERIES, aggregate: { period: 'month', method: 'average' } },
    { ...SERIES, lastObservations: 1 },
    { ...SERIES, decimalsAsText: true },
  ]) {
    const json = await ask(t, ['OWN-1', 'OWN-2'], options);
    for (const record of json.data) {
      t.match(record.conversion, { status: 'refused', reason: 'no-rate', source: null });
      t.match(record, { currency: { iso: 'USD' }, unitOfMeasure: { symbol: 't' } }, 'as published');
    }
    t.same(codesOf(json), ['rates_missing'], JSON.stringify(options));
  }
  const { data, $metadata } = await ask(t, ['OWN-1'], SERIES);
  t.match(data[0].series, [{ mid: 100 }, { mid: 110.5 }]);
  t.equal(
    $metadata.warnings[0].detail,
    'SAMPLE has no rate of USD for prices that are not samples, as its rates are invented: load ' +
      'published ones; 2 requested points need one: 2026-06-29 to 2026-06-30 (2)',
  );
  const omitted = await ask(t, ['OWN-1', SAMPLE], { ...SERIES, onUnconvertible: 'omit' });
  t.same(
    omitted.data.map((each: Json) => each.code),
    [SAMPLE],
  );
  const error = await ask(t, ['OWN-1', SAMPLE], { ...SERIES, onUnconvertible: 'error' });
  t.match(error, { code: 'unconvertible_records', detail: /No exchange rate: OWN-1\./ });
});

t.test('other formats, layouts and GET refuse it too', async (t) => {
  const { app, key } = twins.plain;
  const url = '/v3/prices/nickel?codes=OWN-1&currency=EUR&includeSeries=true';
  for (const more of ['format=csv', 'format=ndjson', 'format=rows', 'format=csv&layout=wide']) {
    const answer = await app.inject({ url: `${url}&${more}`, headers: { 'x-api-key': key } });
    t.equal(answer.statusCode, 200, more);
    t.match(answer.body, '110.5', more);
    t.notMatch(answer.body, 'SAMPLE', more);
    const warnings = JSON.parse(String(answer.headers['x-warnings']));
    t.match(warnings, [{ code: 'rates_missing', currency: 'USD', lastDateWithRate: null }], more);
  }
});

t.test('every answer that is converted by sample rates has a warning', async (t) => {
  const json = await ask(t, ['OWN-1', SAMPLE], SERIES);
  t.same(statesOf(json), ['converted', 'refused']);
  t.same(codesOf(json), ['rates_missing', 'sample_rates']);
  const { detail, pointer } = json.$metadata.warnings[1];
  t.match(detail, /^The rates of SAMPLE are invented for demonstration/);
  t.equal(pointer, '/options/currency');
  const page = await ask(t, [SAMPLE], { ...SERIES, limit: 1 });
  t.same(codesOf(page), ['sample_rates']);
  t.same(codesOf(await ask(t, [SAMPLE], { currency: 'USD' })), [], 'no rate was used');
  const { app, key } = twins.plain;
  const query = `codes=${SAMPLE}&currency=EUR&lastObservations=1&includeSeries=true`;
  const url = `/v3/prices/nickel?${query}`;
  for (const format of ['csv', 'ndjson']) {
    const headers = { 'x-api-key': key };
    const plain = await app.inject({ url: `${url}&format=${format}`, headers });
    t.match(JSON.parse(String(plain.headers['x-warnings'])), [
      { code: 'sample_rates', pointer: '?currency' },
    ]);
    const row = await app.inject({ url: `${url}&format=${format}&warnings=row`, headers });
    t.match(row.body, /sample_rates/, format);
  }
  for (const path of ['rates?base=EUR&quote=USD', 'currencies']) {
    const { json: rates } = await twins.plain.request({
      method: 'GET',
      url: `/v3/reference/${path}`,
    });
    t.same(codesOf(rates), ['sample_rates'], path);
  }
});

t.test('a sample with a point of one’s own is none, until the load is undone', async (t) => {
  const { client, pool } = twins.database;
  const options = { ...SERIES, lastObservations: 1 };
  const before = await ask(t, [SAMPLE], options);
  t.same(statesOf(before), ['converted']);
  await commit(pool, (each) =>
    each.query(`update price set specification = '[]' where code = '${SAMPLE}'`),
  );
  t.same(statesOf(await ask(t, [SAMPLE], options)), ['converted'], 'its text does not matter');
  const report = await loadText(t, client, 'csv', `code,date,mid\n${SAMPLE},2026-07-01,15000\n`);
  t.equal(report.status, 'applied');
  t.same(statesOf(await ask(t, [SAMPLE], options)), ['refused']);
  const { revision } = before.$metadata;
  const past = await ask(t, [SAMPLE], { ...options, revision });
  t.same(past.data, before.data, 'the past stays as it was');
  const request = { batch: report.batch ?? 0, actor: 'tester', reason: 'test' };
  t.equal((await undo(client, request)).status, 'applied');
  t.same(statesOf(await ask(t, [SAMPLE], options)), ['converted']);
});

t.test('the samples of a market are found by its own points alone', async (t) => {
  const { pool } = await testDatabase(t, { seeded: true });
  const { db, scannedIn } = explainedReads(pool);
  const samplesOf = samplesReader(db);
  const { rows } = await pool.query(`select m.slug, count(*)::int as points
    from series as s join price as p on p.id = s.price_id join market as m on m.id = p.market_id
    group by m.slug`);
  const points = new Map(rows.map((each) => [each.slug, each.points]));
  for (const market of MARKETS) {
    const data = await readDataRevision(db, [market.slug]);
    const { result, scanned } = await scannedIn(['series'], () => samplesOf(market, data));
    t.ok(result.size > 0, market.slug);
    t.same(scanned, { series: points.get(market.slug) }, market.slug);
  }
});

t.test('published rates convert every price, without a warning', async (t) => {
  await commit(twins.database.pool, (client) =>
    putRates(client, 'ECB', 'USD', { '2026-06-29': '1.1', '2026-06-30': '1.25' }),
  );
  const json = await ask(t, ['OWN-1'], SERIES);
  t.match(json.data[0], { conversion: { status: 'converted', source: 'ECB' } });
  t.match(json.data[0].series, [{ mid: 90.9091 }, { mid: 88.4 }]);
  t.same(codesOf(json), []);
  const { json: rates } = await twins.plain.request({
    method: 'GET',
    url: '/v3/reference/rates?base=EUR&quote=USD',
  });
  t.match(rates.$metadata, { source: 'ECB', warnings: [] });
});
