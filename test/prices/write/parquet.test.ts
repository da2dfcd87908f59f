import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import t from 'tap';
import { seededDatabase, testDatabase } from '../../support/database/database.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { readArrow } from '../../support/prices/arrow.ts';
import { csvRecords } from '../../support/prices/csv.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { makeFolder } from '../../support/run/folders.ts';

const PARQUET = 'application/vnd.apache.parquet';
const EVERYTHING = {
  includeSeries: true,
  includeSummary: true,
  currency: 'EUR',
  unitOfMeasure: 'lb',
};
const MOVING = { includeSeries: true, movingAverage: 5 };
const MEANS = { includeSeries: true, currency: 'EUR', rates: 'period-mean' };
const AVERAGES = { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } };

let folder: string;
let files = 0;
t.before(async () => {
  const created = await makeFolder();
  folder = created.path;
  t.teardown(() => created.remove());
});

/** Requests a Parquet file and opens it in DuckDB as the table `prices`. */
async function parquetOf({ app, key }: Service, slug: string, body: object) {
  const answer = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    payload: body,
    headers: { accept: PARQUET, 'x-api-key': key },
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  files += 1;
  const file = join(folder, `${files}.parquet`);
  await writeFile(file, answer.rawPayload);
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const rows = async (sql: string) =>
    (await connection.runAndReadAll(sql.replaceAll('prices', `'${file}'`))).getRowObjects();
  return { answer, rows, close: () => connection.closeSync() };
}

/** A value of DuckDB as the cell of a CSV: decimals without zeros at their end. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = String(value);
  if (/^-?\d+\.(?:\d{18}|\d{10})$/.test(text)) return text.replace(/\.?0+$/, '');
  const [, day, time, fraction = ''] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00)?$/.exec(text) ?? [];
  if (day === undefined) return text;
  const shown = fraction.replace(/0+$/, '');
  return `${day}T${time}${shown && `.${shown}`}Z`;
}

const cellsOf = (rows: readonly Readonly<Record<string, unknown>>[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, v]) => [name, cellOf(v)])));

t.test('DuckDB reads from the file what the CSV of the same request holds', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  await inRevision(
    database.pool,
    "update price set observes = 'month-mean' where code like 'CP-NI-000%'",
  );
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const service = await serviceOn(t, database, settings);
    for (const options of [{}, { includeSeries: true }, EVERYTHING, AVERAGES, MOVING, MEANS]) {
      const body = { filters: { dateFrom: '2026-06-01' }, options };
      const csv = await service.request({
        method: 'POST',
        url: '/v3/prices/nickel',
        payload: body,
        headers: { accept: 'text/csv' },
      });
      const { rows, close, answer } = await parquetOf(service, 'nickel', body);
      t.equal(answer.headers['content-type'], PARQUET);
      t.match(answer.headers['content-disposition'], /^attachment; filename="nickel-.*\.parquet"$/);
      const expected = csvRecords(csv.text);
      t.same(cellsOf(await rows('select * from prices')), expected);
      t.ok(expected.length > 5);
      const hasMeans = expected.some((each) => each['fxMeanDays'] === '22');
      t.equal(hasMeans, options === MEANS, 'mean rates');
      close();
    }
  }
});

t.test('types, columns and metadata of a file', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const body = { options: { includeSeries: true, columns: 'code,date,mid,publishedAt' } };
  const { rows, close, answer } = await parquetOf(service, 'nickel', body);
  t.same(
    (await rows('describe select * from prices')).map((each) => [
      each['column_name'],
      each['column_type'],
    ]),
    [
      ['code', 'VARCHAR'],
      ['date', 'DATE'],
      ['mid', 'DECIMAL(38,10)'],
      ['publishedAt', 'TIMESTAMP WITH TIME ZONE'],
    ],
  );
  const about = await rows(
    'select decode(key) as key, decode(value) as value from parquet_kv_metadata(prices)',
  );
  const values = Object.fromEntries(about.map(({ key, value }) => [key, String(value)]));
  t.equal(JSON.parse(values['revision'] ?? ''), answer.headers['x-data-revision']);
  t.same(Object.keys(values).sort(), ['conversion', 'metadata', 'revision']);
  const empty = await parquetOf(service, 'nickel', { filters: { codes: ['nothing'] } });
  t.same(await empty.rows('select count(*)::int as rows from prices'), [{ rows: 0 }]);
  empty.close();
  const regions = Array.from({ length: 120 }, (_, place) => `nowhere ${place}`);
  const warned = await parquetOf(service, 'nickel', { filters: { regions } });
  const [entry] = await warned.rows(
    "select decode(value) as value from parquet_kv_metadata(prices) where decode(key) = 'metadata'",
  );
  const { warnings, warningsCount } = JSON.parse(String(entry?.['value']));
  t.same([warnings.length, warningsCount], [100, 120], 'a shortened list says so');
  warned.close();
  close();
});

/** Decimals of either sign and up to 15 digits, 10 of them behind the point at most. */
const decimals = fc
  .tuple(
    fc.boolean(),
    fc.integer({ min: 0, max: 10 }),
    fc.bigInt({ min: 1n, max: 999_999_999_999_999n }),
  )
  .map(([isNegative, scale, digits]) => {
    const text = String(digits).padStart(scale + 1, '0');
    const whole = text.slice(0, text.length - scale);
    const fraction = text.slice(text.length - scale).replace(/0+$/, '');
    return `${isNegative ? '-' : ''}${whole}${fraction && `.${fraction}`}`;
  });

t.test('10,000 random decimals are the same in JSON, CSV, rows, Parquet and Arrow', async (t) => {
  const { url: _url, ...database } = await testDatabase(t, { seeded: true });
  const values = fc.sample(decimals, 10_000);
  const negative = values.filter((each) => each.startsWith('-'));
  t.ok(negative.length > 4_000 && negative.length < 6_000, `${negative.length} are negative`);
  await database.pool.query(
    `do $$ begin perform open_revision('random decimals'); end $$;
     insert into series (price_id, date, low, mid, high, published_at)
     select (select id from price where code = 'CP-NI-0001'), date '1900-01-01' + at::int - 1,
       null, mid::numeric, null, now()
     from unnest(array[${values.map((each) => `'${each}'`).join(',')}])
       with ordinality as v(mid, at)`,
  );
  const service = await serviceOn(t, { url: _url, ...database });
  const body = {
    filters: { codes: ['CP-NI-0001'], dateTo: '1927-12-31' },
    options: { includeSeries: true },
  };
  const ask = async (accept: string) =>
    (
      await service.app.inject({
        method: 'POST',
        url: '/v3/prices/nickel',
        payload: body,
        headers: { accept, 'x-api-key': service.key },
      })
    ).body;
  const json = parseExact(await ask('application/json')).data[0].series;
  t.same(
    json.map(({ mid }: { mid: string }) => mid),
    values,
  );
  t.same(
    csvRecords(await ask('text/csv')).map(({ mid }) => mid),
    values,
  );
  t.same(
    parseExact(await ask('application/json;profile=rows')).map(({ mid }: { mid: string }) => mid),
    values,
  );
  const { rows, close } = await parquetOf(service, 'nickel', body);
  t.same(
    cellsOf(await rows('select mid from prices order by date')).map(({ mid }) => mid),
    values,
  );
  const arrow = await service.app.inject({
    method: 'POST',
    url: '/v3/prices/nickel',
    payload: body,
    headers: { accept: 'application/vnd.apache.arrow.stream', 'x-api-key': service.key },
  });
  t.same(
    readArrow(arrow.rawPayload).rows.map(({ mid }) => mid),
    values,
  );
  close();
});

const nickel = { codes: ['CP-NI-0001'] };
const cobalt = { codes: ['CP-CO-0001'] };
const ounces = { includeSeries: true, unitOfMeasure: 'Troy ounce' };
const won = { includeSeries: true, unitOfMeasure: 't', currency: 'KRW', decimals: 2 };
const summary = { includeSummary: true };
/** Requests whose numbers do not fit, with the place and the detail of the refusal. */
const refused = [
  ['nickel', nickel, ounces, 'decimals', /^mid of CP-NI-0001 .* 18 decimals .*set decimals/],
  [
    'cobalt',
    cobalt,
    won,
    'currency',
    /^mid of CP-CO-0001 .* 20 digits .*request text\/csv instead$/,
  ],
  [
    'cobalt',
    cobalt,
    summary,
    'includeSummary',
    /Percent of CP-CO-0001 .*request text\/csv instead$/,
  ],
] as const;

t.test('a number beyond the digits of a column is refused before the first byte', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  await database.pool.query(
    `do $$ begin perform open_revision('very small and very large numbers'); end $$;
     insert into series (price_id, date, low, mid, high, published_at)
       values ((select id from price where code = 'CP-NI-0001'), '1900-01-01',
         null, 0.0000000001, null, now());
     update series s set low = null, high = null, mid = case when s.date = d.latest
         then 999999999999999 else 0.0000000001 end
       from (select price_id, max(date) as latest from series where price_id =
         (select id from price where code = 'CP-CO-0001') group by price_id) d
       where s.price_id = d.price_id and s.date > d.latest - 40`,
  );
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const service = await serviceOn(t, database, settings);
    const ask = (slug: string, body: object, accept: string) =>
      service.request({
        method: 'POST',
        url: `/v3/prices/${slug}`,
        payload: body,
        headers: { accept },
      });
    for (const [slug, filters, options, place, detail] of refused) {
      const { status, json } = await ask(slug, { filters, options }, PARQUET);
      t.equal(status, 400);
      t.equal(json.code, 'validation_failed');
      t.equal(json.errors[0].pointer, `/options/${place}`);
      t.match(json.errors[0].detail, detail);
      t.equal((await ask(slug, { filters, options }, 'text/csv')).status, 200, 'CSV holds it');
    }
    const rounded = { filters: nickel, options: { ...ounces, decimals: 10 } };
    const { rows, close } = await parquetOf(service, 'nickel', rounded);
    t.same(cellsOf(await rows('select mid from prices order by date limit 1')), [{ mid: '0' }]);
    close();
    const some = { ...ounces, columns: 'code,date' };
    t.equal((await ask('nickel', { filters: nickel, options: some }, PARQUET)).status, 200);
    const query = 'codes=CP-NI-0001&includeSeries=true&unitOfMeasure=Troy+ounce&format=parquet';
    const { status, json } = await service.request({
      method: 'GET',
      url: `/v3/prices/nickel?${query}`,
    });
    t.same([status, json.errors[0].pointer], [400, '?decimals']);
  }
});
