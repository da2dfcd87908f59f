import t from 'tap';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import type { Reply } from '../support/http/service.ts';
import { commitConcurrently } from '../support/prices/concurrent-commit.ts';
import { addPrice, commit } from '../support/prices/sample-writes.ts';

// One test logs the database statements.
const { database, statements, service } = await serviceWithStatementLog(t, {
  RECORDS_MAX: 1_000,
  PRICE_BOOK_BYTES: '0',
});

const NICKEL = { filters: {}, options: { includeSeries: true } };

const page = (options: object, filters: object = {}, slug = 'nickel') =>
  service.post(slug, { filters, options: { ...NICKEL.options, ...options } });

/** The code of a refusal unless it is validation_failed, its places and their codes. */
const placesOf = ({ json }: Reply): string[] => [
  ...(json.code === 'validation_failed' ? [] : [json.code]),
  ...json.errors.map((each: { pointer: string; code: string }) => `${each.pointer} ${each.code}`),
];

const INVALID = ['invalid_cursor', '/options/cursor invalid_cursor'];

t.test('a limit is the most records of an answer; without it everything comes', async (t) => {
  const whole = (await page({})).json;
  const { count } = whole.$metadata;
  t.equal(whole.$metadata.nextCursor, null);
  for (const limit of [1, count - 1, count, count + 1, 1_000]) {
    const { $metadata, data } = (await page({ limit })).json;
    t.same(data, whole.data.slice(0, limit));
    t.equal($metadata.count, Math.min(limit, count), 'of this page');
    t.equal($metadata.nextCursor === null, limit >= count, `${limit} of ${count}`);
  }
  const { nextCursor } = (await page({ limit: 2 })).json.$metadata;
  const rest = (await page({ cursor: nextCursor })).json;
  t.same(rest.data, whole.data.slice(2), 'a cursor alone brings the rest');
  for (const limit of [0, -1, 1_001, 1.5, '2', null]) {
    const answer = await page({ limit });
    t.equal(answer.status, 400);
    t.match(placesOf(answer)[0], /^\/options\/limit (out_of_range|wrong_type)$/);
  }
});

t.test('a cursor continues only the request that returned it', async (t) => {
  const { nextCursor: cursor } = (await page({ limit: 2 })).json.$metadata;
  t.match(cursor, /^[\w-]{20,200}$/);
  t.equal((await page({ limit: 7, cursor })).status, 200, 'with another limit');
  for (const [options, filters, slug] of [
    [{ cursor, includeSeries: false }],
    [{ cursor, currency: 'EUR' }],
    [{ cursor }, { regions: ['Europe'] }],
    [{ cursor }, { dateFrom: '2026-01-01' }],
    [{ cursor }, {}, 'copper'],
  ] as const) {
    const answer = await page(options, filters, slug);
    t.same([answer.status, placesOf(answer)], [400, INVALID]);
  }
  for (let at = 0; at < cursor.length; at += 1) {
    const other = cursor[at] === 'A' ? 'B' : 'A';
    const changed = cursor.slice(0, at) + other + cursor.slice(at + 1);
    const answer = await page({ cursor: changed });
    if (answer.status !== 400) t.fail(changed);
  }
  const odd = ['', 'x', 'null', 'W10', `${cursor}=`, `${cursor}A`, ` ${cursor}`, cursor.repeat(9)];
  for (const each of [...odd, cursor.slice(1), cursor.slice(0, -1), 'é', '\u0000', '%']) {
    t.same(placesOf(await page({ cursor: each })), INVALID, JSON.stringify(each));
  }
  t.same(placesOf(await page({ cursor: 1 })), ['/options/cursor wrong_type']);
  // A cursor is looked into only for a request that breaks no rule.
  t.same(placesOf(await page({ cursor: 'x', limit: 0 })), ['/options/limit out_of_range']);
});

t.test('a walk through the past stays there; a cursor fits its own revision only', async (t) => {
  const { revision, asOf } = (await page({})).json.$metadata;
  await commitConcurrently(database.pool, 1_000);
  for (const past of [{ revision }, { asOf }]) {
    const whole = (await page(past)).json;
    const first = (await page({ ...past, limit: 3 })).json;
    const cursor = first.$metadata.nextCursor;
    for (const options of [{ cursor }, { ...past, cursor }]) {
      const rest = (await page(options)).json;
      t.same([...first.data, ...rest.data], whole.data);
      t.equal(rest.$metadata.revision, revision);
    }
  }
  const { nextCursor: cursor } = (await page({ limit: 3 })).json.$metadata;
  t.same(placesOf(await page({ cursor, revision })), INVALID);
  t.same(placesOf(await page({ cursor, asOf })), INVALID);
});

t.test('a page reads its own prices and series only', async (t) => {
  const before = statements.length;
  const { json } = await page({ limit: 2 });
  const executed = statements.slice(before);
  const selections = executed.filter((each) => /latest_point_at/.test(each));
  t.equal(selections.length, 1);
  t.match(selections[0], /limit \$/);
  const { rows } = await database.pool.query('select id from price where code = any($1)', [
    json.data.map((each: { code: string }) => each.code),
  ]);
  const copied = executed.flatMap((each) => /any\('\{([\d,]+)\}'\)/.exec(each)?.[1] ?? []);
  t.same(copied.join().split(',').map(Number).sort(), rows.map(({ id }) => id).sort());
});

t.test('omitted records use no place on a page, and are reported on each page', async (t) => {
  await commit(database.pool, async (client) => {
    for (const number of [1, 2, 3]) {
      const code = `CP-NI-000${number}-E`;
      await addPrice(client, { code, currency: 'USD', unit: 'kilowatt-hour' });
    }
  });
  const options = { unitOfMeasure: 'Pound', onUnconvertible: 'omit' };
  const whole = (await page(options)).json;
  t.match(whole.$metadata.warnings, [{ code: 'unconvertible_omitted', detail: /0001-E/ }]);
  const found: unknown[] = [];
  for (let cursor: string | undefined; cursor !== null; ) {
    const { $metadata, data } = (await page({ ...options, limit: 2, cursor })).json;
    t.same($metadata.warnings, whole.$metadata.warnings);
    cursor = $metadata.nextCursor;
    t.ok(cursor === null || data.length === 2, 'every page but the last is full');
    found.push(...data);
  }
  t.same(found, whole.data);
  const error = await page({ ...options, onUnconvertible: 'error', limit: 1 });
  t.match(error.json, { code: 'unconvertible_records', detail: /0003-E/ });
});

t.test('pages have tags of their own', async (t) => {
  const get = (query: string, headers = {}) =>
    service.request({ method: 'GET', url: `/v3/prices/nickel?${query}`, headers });
  const first = await get('limit=2');
  const { nextCursor } = first.json.$metadata;
  const queries = [
    '',
    'limit=2',
    'limit=3',
    `cursor=${nextCursor}`,
    `limit=2&cursor=${nextCursor}`,
  ];
  const answers = await Promise.all(queries.map((query) => get(query)));
  t.equal(new Set(answers.map(({ headers }) => headers['etag'])).size, queries.length);
  for (const [index, { headers }] of answers.entries()) {
    const again = await get(queries[index] as string, { 'if-none-match': headers['etag'] });
    t.equal(again.status, 304);
  }
  t.equal((await get('limit=2&format=csv')).headers['x-next-cursor'], nextCursor);
});

t.test('a cursor of another epoch is refused', async (t) => {
  const { nextCursor: cursor } = (await page({ limit: 2 })).json.$metadata;
  await database.pool.query("update service set epoch = 'renewed'");
  t.same(placesOf(await page({ cursor })), INVALID);
});
