import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { parse } from 'yaml';
import { createClient, PricesError, rowsOf } from '../../clients/typescript/client.js';
import { MARKETS } from '../../src/catalog/markets.ts';
import { testDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);
const url = await addressOf(service.app);
const client = createClient({ url, key: service.key, onWarning: () => {} });
const texts = createClient({ url, key: service.key, decimals: 'text', onWarning: () => {} });

const COLUMNS = 'code,name,date,low,mid,high,currency,unit,corrections'.split(',');

t.test('prices are the records of the service, with their revision', async (t) => {
  const filters = { regions: ['Europe'], dateFrom: '2026-06-01' };
  const { json } = await service.post('nickel', { filters, options: { includeSeries: true } });
  const prices = await client.prices('nickel', { filters });
  t.same(prices, { data: json.data, metadata: json.$metadata, revision: json.$metadata.revision });
  const rows = rowsOf(prices);
  const [first] = prices.data;
  t.same(rows[0], {
    code: first?.code,
    name: first?.name,
    date: first?.series[0]?.date,
    low: first?.series[0]?.low,
    mid: first?.series[0]?.mid,
    high: first?.series[0]?.high,
    currency: first?.currency?.iso,
    unit: first?.unitOfMeasure.symbol,
    corrections: 0,
  });
  t.same(Object.keys(rows[0] ?? {}), COLUMNS);
  t.equal(rows.length, prices.data.flatMap(({ series }) => series).length);
  const again = await client.prices('nickel', { filters, options: { revision: prices.revision } });
  t.same(again.data, prices.data);
  const plain = await client.prices('nickel', { options: { includeSeries: false } });
  t.ok(plain.data.length > 0 && plain.data.every(({ series }) => series.length === 0));
});

t.test('an empty result has the columns of every other', async (t) => {
  const empty = await client.prices('nickel', {
    filters: { codes: ['CP-NI-0001'], dateFrom: '2199-01-01' },
  });
  t.same([...rowsOf(empty)], []);
  t.same(rowsOf(empty).columns, COLUMNS);
  t.same(
    rowsOf(await client.prices('nickel', { filters: { regions: ['Nowhere'] } })).columns,
    COLUMNS,
  );
});

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
}

const { schemas } = parse(readFileSync(`${ROOT}openapi.yaml`, 'utf8')).components;

/** Names of the members of a type in a schema and below it. */
function membersOf(type: string, schema: Schema, name = ''): string[] {
  const { $ref, properties = {}, anyOf = [], items } = schema;
  if ($ref !== undefined) return membersOf(type, schemas[$ref.split('/').at(-1) ?? ''], name);
  const below = Object.entries(properties).flatMap(([each, inner]) => membersOf(type, inner, each));
  const same = [...anyOf, ...(items ? [items] : [])].flatMap((each) => membersOf(type, each, name));
  return [...(schema.type === type ? [name] : []), ...below, ...same];
}

/** The numbers in a JSON value, by the names of their members. */
const numbersIn = (value: unknown): string[] =>
  Object.entries(value ?? {}).flatMap(([name, each]) =>
    typeof each === 'number' ? [name] : typeof each === 'object' ? numbersIn(each) : [],
  );

t.test(
  'with decimals as texts every digit is that of the service; counts are numbers',
  async (t) => {
    const counts = ['corrections', 'days', 'observations', 'observationsLeftOut', 'order'];
    // The types of the client name the integers of a record: every other number is a text.
    t.same([...new Set(membersOf('integer', schemas.NickelPriceRecord))].sort(), counts);
    const decimals = [...new Set(membersOf('number', schemas.NickelPriceRecord))];
    t.same(decimals.sort(), ['absolute', 'high', 'low', 'mid', 'movingAverage', 'percent']);

    const filters = { dateFrom: '2026-01-01' };
    const options = {
      currency: 'EUR',
      decimals: 10,
      includeSummary: true,
      aggregate: { period: 'month', method: 'average' },
    } as const;
    const body = { filters, options: { includeSeries: true, ...options } };
    const { text } = await service.post('nickel', body);
    const exact = await texts.prices('nickel', { filters, options });
    const figures = new RegExp(`"(${decimals.join('|')})":"?(-?\\d[^,"}]*)`, 'g');
    const figuresIn = (json: string) => [...json.matchAll(figures)].map(([, , digits]) => digits);
    t.ok(figuresIn(text).length > 100);
    t.same(figuresIn(JSON.stringify(exact.data)), figuresIn(text));
    t.same(
      numbersIn(exact.data).filter((name) => !counts.includes(name)),
      [],
    );
    t.type(rowsOf(exact)[0]?.mid, 'string');
  },
);

t.test('pages joined are the whole, of one revision, and warn once', async (t) => {
  const warned: string[] = [];
  const own = createClient({
    url,
    key: service.key,
    onWarning: ({ code, suggestions }, market) => warned.push(market, code, ...suggestions),
  });
  const request = { filters: { regions: ['Europ', 'Europe', 'North America'] } };
  const whole = await client.prices('lithium', request);
  const pages = [];
  for await (const page of own.pages('lithium', { ...request, options: { limit: 2 } })) {
    pages.push(page);
  }
  t.same(
    pages.flatMap(({ data }) => data),
    whole.data,
  );
  t.ok(pages.length > 2);
  t.same([...new Set(pages.map(({ revision }) => revision))], [whole.revision]);
  t.same(warned.slice(0, 3), ['lithium', 'unmatched_value', 'Europe']);
  t.equal(warned.filter((each) => each === 'unmatched_value').length, 1);
  for await (const page of own.pages('cobalt'))
    t.ok(page.data.length > 0, 'also without a request');
});

t.test('a warning goes to the console if no handler is set', async (t) => {
  const warnings = t.capture(console, 'warn', () => {});
  await createClient({ url, key: service.key }).prices('nickel', {
    filters: { regions: ['Europ'] },
  });
  t.match(warnings(), [{ args: ['nickel', 'unmatched_value', /Europ/] }]);
});

t.test('the feed of changes is read to its end, then waited for', async (t) => {
  const markets = ['cobalt', 'nickel'] as const;
  const [first, second] = [
    await client.changes({ market: markets, limit: 3 }),
    await client.changes({ market: ['cobalt'] }),
  ];
  t.equal(first.data.length, 3);
  t.match(first.revision, /^[0-9a-z]+\.\d+$/);
  const { json } = await service.request({ method: 'GET', url: '/v3/changes?market=cobalt' });
  t.same(second.data, json.data);
  t.equal(second.nextSeq, json.$metadata.nextSeq);
  let page = second;
  while (page.data.length > 0)
    page = await client.changes({ market: ['cobalt'], after: page.nextSeq });
  const waited = await client.changes({ market: ['cobalt'], after: page.nextSeq, wait: 1 });
  t.same([waited.data, waited.nextSeq], [[], page.nextSeq]);
  const { revision } = await client.prices('cobalt');
  for (const after of ['latest', `revision:${revision}`])
    t.same(await client.changes({ after, market: ['cobalt'] }), { ...waited, data: [] }, after);
});

const { paths } = parse(readFileSync(`${ROOT}openapi.yaml`, 'utf8'));

/** The ids of the operations that read data with a credential, those of one market only. */
const operationIds = Object.entries<Record<string, { operationId: string; security?: unknown[] }>>(
  paths,
)
  .filter(([path]) => !MARKETS.some(({ slug }) => slug !== 'nickel' && path.includes(`/${slug}`)))
  .flatMap(([, { get, post }]) => [get, post])
  .filter((each) => each?.security !== undefined && each.security.length > 0)
  .map((each) => each?.operationId);

t.test('every operation that reads data has a call, with the content of its answer', async (t) => {
  const range = { base: 'EUR', quote: 'USD', from: '2026-06-01', to: '2026-06-30' } as const;
  const whole = (path: string, call: Promise<unknown>) => [path, call] as const;
  const calls: Readonly<Record<string, readonly [path: string, call: Promise<unknown>]>> = {
    getMe: whole('/v3/me', client.me()),
    getMarkets: whole('/v3/prices', client.markets()),
    getCurrencies: whole('/v3/reference/currencies', client.currencies()),
    getUnits: whole('/v3/reference/units', client.units()),
    getRates: whole(`/v3/reference/rates?${new URLSearchParams(range)}`, client.rates(range)),
    getCalendar: whole('/v3/calendar?market=nickel', client.calendar({ market: ['nickel'] })),
    searchPrices: whole('/v3/search?q=nickel&limit=2', client.search('nickel', { limit: 2 })),
    getNickelFilters: whole('/v3/prices/nickel/filters', client.filters('nickel')),
    getNickelPrices: whole('/v3/prices/nickel?includeSeries=true', client.prices('nickel')),
    postNickelPrices: whole('/v3/prices/nickel?includeSeries=true', client.prices('nickel')),
    getChanges: whole('/v3/changes?limit=2', client.changes({ limit: 2 })),
  };
  t.same(Object.keys(calls).sort(), operationIds.sort());
  for (const [id, [path, call]] of Object.entries(calls)) {
    const { json } = await service.request({ method: 'GET', url: path });
    const { $metadata: metadata, data } = json;
    const listing = { data, metadata, revision: metadata?.revision };
    const { nextSeq, hasMore, warnings } = metadata ?? {};
    const { revision } = (await call) as { revision: string };
    const page = { data, nextSeq, hasMore, revision, warnings };
    const content = nextSeq ? page : metadata ? listing : (data ?? json);
    t.same(await call, content, id);
    if (data) t.ok(Object.keys(data).length > 0, id);
  }
});

t.test('a file has the bytes of the service in each of its formats', async (t) => {
  const { content } = paths['/v3/prices/nickel'].post.responses[200];
  const media = Object.keys(content).filter((each) => each !== 'application/json');
  const formats = ['csv', 'ndjson', 'rows', 'parquet', 'arrow', 'xlsx'] as const;
  t.equal(formats.length, media.length, 'each format of the document but JSON');
  const request = { filters: { dateFrom: '2026-06-01' } };
  const body = JSON.stringify({ ...request, options: { includeSeries: true } });
  for (const [place, format] of formats.entries()) {
    const file = await client.file('nickel', format, request);
    const headers = {
      accept: media[place] ?? '',
      'content-type': 'application/json',
      'x-api-key': service.key,
    };
    const answer = await fetch(`${url}/v3/prices/nickel`, { method: 'POST', headers, body });
    t.equal(answer.status, 200, format);
    const [made, sent] = [await file.bytes(), new Uint8Array(await answer.arrayBuffer())];
    t.ok(made.length > 100 && Buffer.compare(made, sent) === 0, format);
    t.same([file.revision, file.nextCursor], [answer.headers.get('x-data-revision'), null]);
  }
  const warned: string[] = [];
  const own = createClient({
    url,
    key: service.key,
    onWarning: ({ code }) => warned.push(code),
  });
  const options = { limit: 1, columns: 'code,date,mid', lastObservations: 1 } as const;
  const filters = { regions: ['Europ', 'Europe', 'North America'] };
  const page = await own.file('nickel', 'csv', { filters, options });
  const text = new TextDecoder().decode(await page.bytes());
  t.match(text, /^code,date,mid\r\nCP-NI-\d+,2026-[\d-]+,[\d.]+\r\n$/);
  t.same(warned, ['unmatched_value']);
  const next = { ...options, cursor: page.nextCursor ?? '' };
  const second = await own.file('nickel', 'csv', { filters, options: next });
  t.notSame(new TextDecoder().decode(await second.bytes()), text);
  t.equal(warned.length, 1, 'each page has the warnings of the whole');
  const refused = own.file('nickel', 'parquet', { options: { layout: 'wide' } });
  await t.rejects(refused, { name: 'PricesError', status: 400, code: 'validation_failed' });
  await t.rejects(own.file('nickel', 'xml' as 'csv'), { message: /^No format xml: csv,ndjson/ });
});

t.test('a refusal carries its status, code, places and request id', async (t) => {
  const refusal = (call: Promise<unknown>) =>
    call.then(
      () => null,
      (error: unknown) => error,
    );
  // Values that untyped code may pass.
  const loose = client as unknown as {
    prices(market: string, request?: object): Promise<unknown>;
    changes(request: object): Promise<unknown>;
  };
  const misspelt = await refusal(loose.prices('nickel', { filters: { regoins: ['Europe'] } }));
  t.ok(misspelt instanceof PricesError);
  t.match(misspelt, {
    name: 'PricesError',
    status: 400,
    code: 'validation_failed',
    errors: [{ pointer: '/filters/regoins', code: 'unknown_field' }],
    requestId: /^[0-9a-f-]{36}$/,
    message: /\/filters\/regoins: .*did you mean regions/,
  });
  for (const request of [{ filter: {} }, { options: { layout: 'wide' } }]) {
    t.match(await refusal(loose.prices('nickel', request)), { code: 'validation_failed' });
  }
  t.match(await refusal(loose.changes({ since: 'a' })), { status: 400 });
  t.match(await refusal(loose.prices('nickle')), { status: 404, message: /version 3/ });
  const unauthorized = createClient({ url, key: 'nonsense' });
  t.match(await refusal(unauthorized.prices('nickel')), { status: 401, code: 'invalid_api_key' });
});

/** Every Node on the path that the client promises to run on. */
const nodes = [
  ...new Set(
    (process.env['PATH'] ?? '').split(delimiter).flatMap((path) => globSync(`${path}/node`)),
  ),
];

t.test('the package runs on every Node of this machine from 20 on', async (t) => {
  const program = `
    import { createClient } from '${ROOT}clients/typescript/client.js';
    const { data } = await createClient().prices('nickel');
    const { nextSeq } = await createClient().changes({ limit: 1 });
    console.log(process.version, data.length > 0, nextSeq !== null);`;
  const versions: string[] = [];
  for (const node of nodes) {
    const { stdout } = await promisify(execFile)(
      'env',
      ['-u', 'NODE_OPTIONS', node, '--input-type=module', '--eval', program],
      { env: { ...PLAIN_ENV, COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: service.key } },
    );
    const [version = '', ...got] = stdout.trim().split(' ');
    versions.push(version);
    t.same(got, ['true', 'true'], version);
  }
  t.ok(versions.includes(process.version));
  t.comment(versions.join(', '));
});
