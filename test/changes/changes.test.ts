import t from 'tap';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  priceId,
  priceRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import {
  type FeedChange,
  pastOf,
  type WireChange,
  withoutSeq,
} from '../support/prices/feed-oracle.ts';
import { get, LINES, page, published, readAll } from '../support/prices/feed-pages.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';

/** The position behind all that there is, from the tables. */
async function endOf({ pool }: TestDatabase): Promise<string> {
  const { rows } = await pool.query(`
    select s.epoch || r.commit_id || '.' || (c.first_seq + c.price_changes + c.points - 1) as end
    from service s, change_segment c join revision r on r.number = c.revision
    order by c.first_seq desc limit 1`);
  return rows[0].end;
}

t.test('the feed has the changes of every commit, in order and exactly', async (t) => {
  const { database, service } = await published(t, 11, 60);
  const past = await pastOf(database.pool);
  const whole = await readAll(service, 5_000);
  t.strictSame(whole.map(withoutSeq), past);
  t.ok(past.length > 150, `${past.length} changes`);
  const seen = new Set(past.map((each) => each.operation));
  t.same([...seen].sort(), ['corrected', 'price-added', 'price-changed', 'published', 'withdrawn']);
});

t.test('pages of any size make up the same feed, and every position leads on', async (t) => {
  const { service } = await published(t, 12, 25);
  const whole = await readAll(service, 5_000);
  for (const limit of [1, 2, 3, 7, 50]) {
    t.strictSame(await readAll(service, limit), whole, `pages of ${limit}`);
  }
  for (const [index, { seq }] of whole.entries()) {
    if (index % 5 > 0) continue;
    const { changes } = await page(service, { after: seq });
    t.strictSame(changes, whole.slice(index + 1), `after the change ${index}`);
  }
  t.equal(new Set(whole.map((each) => each.seq)).size, whole.length);
});

t.test('the feed repeats the same changes, whatever is committed later', async (t) => {
  const { service, publisher } = await published(t, 13, 20);
  const before = await page(service);
  for (let turn = 0; turn < 20; turn += 1) await publisher.transact();
  const after = await page(service);
  t.strictSame(after.changes.slice(0, before.changes.length), before.changes);
  const next = await page(service, { after: before.next });
  t.strictSame(after.changes.slice(before.changes.length), next.changes);
});

/** The content of `series`, from nothing but the feed. */
function replayed(changes: readonly FeedChange[]): string[] {
  const points = new Map<string, string>();
  for (const { code, date, after } of changes) {
    if (date === null) continue;
    const key = `${code} ${date}`;
    if (after) points.set(key, JSON.stringify(Object.values(after)));
    else points.delete(key);
  }
  return [...points].map((each) => each.join(' ')).sort();
}

t.test('a reader of the whole feed has the content of the tables', async (t) => {
  for (const seed of [1, 2, 3]) {
    const { database, service } = await published(t, seed, 40);
    const { rows } = await database.pool.query(`select p.code || ' ' || s.date || ' ' ||
        jsonb_build_array(low::text, mid::text, high::text,
          to_char(published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          corrections::text) as line
      from series s join price p on p.id = s.price_id`);
    const held = rows.map(({ line }) => line.replaceAll(', ', ',')).sort();
    t.same(replayed((await readAll(service, 17)).map(withoutSeq)), held);
    t.ok(held.length > 5);
  }
});

t.test('a change of a price has its record before and after', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await serviceOn(t, database);
  const start = await endOf(database);
  const record = async () => {
    const body = { filters: { codes: ['CP-NI-0001'] } };
    const { code, lastAssessedAt, latestPublishedAt, nextExpectedAt, series, ...shown } = (
      await service.post('nickel', body)
    ).json.data[0];
    return shown;
  };
  const first = await record();
  await inRevision(
    database.pool,
    `update price set name = 'Nickel, anew', short_name = null, specification = '[]'
      where code = 'CP-NI-0001'`,
    "update product set alias = 'Anew' where slug = 'met' or alias like 'Ni%'",
  );
  const second = await record();
  t.not(first.product.alias, second.product.alias, 'also what the price refers to');
  const { json } = await get(service, { after: start });
  t.match(json.data, [
    { operation: 'price-changed', code: 'CP-NI-0001', market: 'nickel', date: null },
  ]);
  t.strictSame(json.data[0].before, first);
  t.strictSame(json.data[0].after, second);
  t.strictSame(Object.keys(json.data[0].after), Object.keys(second), 'in the same order');
});

t.test('before and after are those of the past answers', async (t) => {
  const { database, service } = await published(t, 14, 30);
  const textOf = async (revision: number): Promise<string> =>
    (await database.pool.query('select revision_text($1) as text', [revision])).rows[0].text;
  const { data } = (await get(service)).json;
  const valueAt = async (each: WireChange, revision: number, text?: string) => {
    const { code, market } = each;
    const past = text ? { asOf: text } : { revision: await textOf(revision) };
    const { json } = await service.post(market, {
      filters: { codes: [code] },
      options: { includeSeries: true, ...past },
    });
    const [record] = json.data;
    if (each.date !== null) {
      const { date: _date, ...point } =
        record?.series.find((point: { date: string }) => point.date === each.date) ?? {};
      return Object.keys(point).length > 0 ? point : null;
    }
    if (!record) return null;
    const { code: _code, series, ...attributes } = record;
    const { lastAssessedAt, latestPublishedAt, nextExpectedAt, ...shown } = attributes;
    return shown;
  };
  for (const each of data.filter((_: unknown, index: number) => index % 3 === 0)) {
    const revision = Number(each.revision.split('.')[1]);
    const what = `${each.operation} ${each.code} ${each.date} at ${revision}`;
    // A code may have been another price's before: the record of the day before is then of that.
    if (each.date !== null || each.operation === 'price-changed') {
      t.strictSame(await valueAt(each, revision - 1), each.before, `${what}: before`);
    }
    if (each.operation !== 'withdrawn') {
      t.strictSame(await valueAt(each, revision, each.recordedAt), each.after, `${what}: after`);
    }
  }
});

t.test('numbers keep every digit, in JSON and in NDJSON', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await serviceOn(t, database);
  const start = await endOf(database);
  await commit(database.pool, async (client) => {
    await addPrice(client, { code: 'X-1', currency: 'USD', unit: 'tonne' });
    await putPoints(
      client,
      'X-1',
      ['2026-01-05', '-0.0000000001', '0', '0.1'],
      ['2026-01-06', null, '99999.0000000001', null],
      ['2026-01-07', '-999999999999999', '123456789012345', '999999999999999'],
    );
  });
  for (const headers of [{}, LINES]) {
    const { text } = await get(service, { after: start }, headers);
    for (const values of [
      '"low":-0.0000000001,"mid":0,"high":0.1,',
      '"low":null,"mid":99999.0000000001,"high":null,',
      '"low":-999999999999999,"mid":123456789012345,"high":999999999999999,',
    ]) {
      t.ok(text.includes(values), values);
    }
  }
});

t.test('a database in which nothing ever changed has a beginning', async (t) => {
  const database = await testDatabase(t);
  const service = await serviceOn(t, database);
  const { rows } = await database.pool.query('select epoch from service');
  const start = `${rows[0].epoch}.0`;
  const { status, json, headers } = await get(service);
  t.same(
    [status, json],
    [200, { $metadata: { nextSeq: start, hasMore: false, warnings: [] }, data: [] }],
  );
  t.equal(headers['x-next-seq'], start);
  t.equal((await get(service, {}, LINES)).text, '');
  await writeMinimalData(database.pool);
  t.equal((await get(service, { after: start })).json.data.length, 3);
});

t.test('JSON and NDJSON have the same changes, and both forbid caching', async (t) => {
  const { service } = await published(t, 15, 10);
  const cases: [accept: string, type: string][] = [
    ['application/x-ndjson', 'application/x-ndjson; charset=utf-8'],
    ['application/json;q=0.5, application/x-ndjson', 'application/x-ndjson; charset=utf-8'],
    ['application/*', 'application/json; charset=utf-8'],
    ['*/*', 'application/json; charset=utf-8'],
    ['text/csv', 'text/csv; charset=utf-8; header=present'],
    ['', 'application/json; charset=utf-8'],
    ['application/x-ndjson;q=0.2, application/json', 'application/json; charset=utf-8'],
  ];
  const { data, $metadata } = (await get(service, { limit: 20 })).json;
  for (const [accept, type] of cases) {
    const { headers, text } = await get(service, { limit: 20 }, { accept });
    t.equal(headers['content-type'], type, accept);
    t.equal(headers['cache-control'], 'no-store');
    t.equal(headers['x-next-seq'], $metadata.nextSeq);
    t.match(headers['x-data-revision'], /^[0-9a-z]{12}\.\d+$/);
    if (!/ndjson/.test(String(headers['content-type']))) continue;
    t.same(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
      data,
    );
  }
  for (const accept of ['text/html', 'application/x-ndjson;q=0', 'application/x-ndjson;q=1.2.3']) {
    const { status, json } = await get(service, {}, { accept });
    t.same([status, json.code], [406, 'not_acceptable'], accept);
    t.match(json.detail, 'application/json, application/x-ndjson or text/csv');
  }
});

t.test('the feed has the points of a removed price, and a code that is reused', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const service = await serviceOn(t, database);
  const { next } = await page(service);
  const put = insertOf('series', pointRow({ price_id: priceId('R-1') }));
  const removal = [`delete from series where price_id = ${priceId('R-1')}`];
  removal.push("delete from price where code = 'R-1'");
  await inRevision(database.pool, insertOf('price', priceRow('R-1')), put);
  await inRevision(database.pool, ...removal, insertOf('price', priceRow('R-1')), put);
  const { changes } = await page(service, { after: next });
  t.same(
    changes.map(({ operation, code, date }) => [operation, code, date]),
    [
      ['price-added', 'R-1', null],
      ['published', 'R-1', '2024-01-02'],
      ['withdrawn', 'R-1', null],
      ['withdrawn', 'R-1', '2024-01-02'],
      ['price-added', 'R-1', null],
      ['published', 'R-1', '2024-01-02'],
    ],
  );
  t.match(changes[2], { after: null, before: { name: 'Price R-1' } });
});
