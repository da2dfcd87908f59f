import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { seededDatabase, testDatabase } from '../../support/database/database.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { readArrow } from '../../support/prices/arrow.ts';
import { csvRecords, parseCsv } from '../../support/prices/csv.ts';
import { commit, putPoints } from '../../support/prices/sample-writes.ts';

const ARROW = 'application/vnd.apache.arrow.stream';
const EVERYTHING = {
  includeSeries: true,
  includeSummary: true,
  currency: 'EUR',
  unitOfMeasure: 'lb',
};
const MOVING = { includeSeries: true, movingAverage: 5 };
const MEANS = { includeSeries: true, currency: 'EUR', rates: 'period-mean' };
const AVERAGES = { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } };

async function ask({ app, key }: Service, slug: string, body: object) {
  const answer = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    payload: body,
    headers: { accept: ARROW, 'x-api-key': key },
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return { answer, read: readArrow(answer.rawPayload) };
}

const csvOf = async ({ request }: Service, slug: string, body: object) =>
  (
    await request({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      payload: body,
      headers: { accept: 'text/csv' },
    })
  ).text;

/** CSV cells without the apostrophe that guards against formulas. */
const plain = (rows: readonly Readonly<Record<string, string>>[]) =>
  rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, v]) => [name, v.replace(/^'(?=[=+@-])/, '')]),
    ),
  );

t.test('an Arrow stream holds what the CSV of the same request holds', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  await inRevision(
    database.pool,
    "update price set observes = 'month-mean' where code like 'CP-NI-000%'",
  );
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const service = await serviceOn(t, database, settings);
    for (const options of [{}, { includeSeries: true }, EVERYTHING, AVERAGES, MOVING, MEANS]) {
      const body = { filters: { dateFrom: '2026-06-01' }, options };
      for (const slug of ['nickel', 'lithium'] as const) {
        const { answer, read } = await ask(service, slug, body);
        t.equal(answer.headers['content-type'], ARROW);
        t.match(answer.headers['content-disposition'], /^attachment; filename=".*\.arrows"$/);
        const expected = plain(csvRecords(await csvOf(service, slug, body)));
        t.same(read.rows, expected, `${slug} ${JSON.stringify(options)}`);
        t.ok(expected.length > 5);
        const hasMeans = expected.some((each) => each['fxMeanDays'] === '22');
        t.equal(hasMeans, options === MEANS && slug === 'nickel', 'mean rates');
      }
    }
  }
});

t.test('types, columns and metadata of a stream', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const some = 'code,date,mid,publishedAt,corrections,isSustainable,fxFrom,weekPercent';
  const body = { options: { includeSeries: true, columns: some } };
  const { answer, read } = await ask(service, 'nickel', body);
  t.same(read.columns, [
    ['code', 'utf8'],
    ['date', 'date32'],
    ['mid', 'decimal128(38, 10)'],
    ['publishedAt', 'timestamp(2, UTC)'],
    ['corrections', 'int32'],
    ['isSustainable', 'bool'],
    ['fxFrom', 'decimal128(38, 10)'],
    ['weekPercent', 'decimal128(38, 18)'],
  ]);
  t.equal(JSON.parse(read.metadata['revision'] ?? ''), answer.headers['x-data-revision']);
  t.same(Object.keys(read.metadata).sort(), ['conversion', 'metadata', 'revision']);
  t.ok(read.batches.length > 1 && read.batches.every((rows) => rows <= 8_192));
  const converted = { options: { ...body.options, currency: 'EUR' } };
  const columns = (await ask(service, 'nickel', converted)).read.columns;
  t.same(columns[2], ['mid', 'decimal128(38, 18)'], 'computed');
  for (const { slug } of MARKETS) {
    const none = { filters: { codes: ['no such'] } };
    const empty = (await ask(service, slug, none)).read;
    t.same(
      empty.columns.map(([name]) => name),
      parseCsv(await csvOf(service, slug, none))[0],
    );
    t.equal(empty.rows.length, 0);
  }
});

t.test(
  'the first batch of a long stream is small, each next one at most twice as big',
  async (t) => {
    const database = await testDatabase(t);
    await fill(database, { prices: 20, points: 2_000 });
    const service = await serviceOn(t, database);
    for (const columns of ['all', 'short', 'code,date,mid']) {
      const body = { options: { includeSeries: true, columns } };
      const { batches } = (await ask(service, BULK_MARKET.slug, body)).read;
      t.equal(
        batches.reduce((sum, rows) => sum + rows, 0),
        40_000,
      );
      t.ok((batches[0] ?? 0) <= 512, `${columns}: ${batches}`);
      const isSteep = batches.some((rows, at) => rows > 2 * (batches[at - 1] ?? rows) + 2);
      t.notOk(isSteep, `${columns}: ${batches}`);
      t.ok(Math.max(...batches) > 2_000, 'later ones have a cost of some MB');
    }
  },
);

t.test('warnings are in headers, and an option without use is refused', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const url = '/v3/prices/nickel?regions=Eurpe&format=arrow';
  const { status, headers } = await service.request({ method: 'GET', url });
  t.same([status, headers['content-type'], headers['x-warnings-count']], [200, ARROW, '1']);
  t.match(headers['x-warnings'], /unmatched_value/);
  for (const option of ['warnings=row', 'decimalsAsText=true', 'layout=wide&includeSeries=true']) {
    const refused = await service.request({ method: 'GET', url: `${url}&${option}` });
    t.equal(refused.status, 400, option);
  }
});

t.test('a number beyond the digits of a column is refused before the first byte', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['1900-01-01', null, '0.0000000001', null]),
  );
  const service = await serviceOn(t, database);
  const url = '/v3/prices/nickel?codes=CP-NI-0001&includeSeries=true&unitOfMeasure=Troy+ounce';
  const { status, json } = await service.request({ method: 'GET', url: `${url}&format=arrow` });
  t.same([status, json.errors[0].pointer], [400, '?decimals']);
});
