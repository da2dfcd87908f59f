import t from 'tap';
import { exportArchive } from '../../src/archive/export.ts';
import { MARKETS as CATALOG } from '../../src/catalog/markets.ts';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { anyRequest, forAll, send, valuesOf } from '../support/fuzz/any-request.ts';
import { keyFor, type Service, serviceOn } from '../support/http/service.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { archivePath, contentsOf, exported, imported } from './support.ts';

const MARKETS = ['cobalt', 'nickel'];
const SEED = 20_270_102;

const SEGMENTS = `
  select m.slug as market, p.code, s.first_seq, s.price_changes, s.points, s.first_date::text,
    s.last_date::text
  from change_segment s join market m on m.id = s.market_id
    join (select id, code from price union select id, code from price_history) p
      on p.id = s.price_id
  where m.slug = any($1) order by s.first_seq`;

const LAST = 'select max(first_seq + price_changes + points) as last from change_segment';

let original: TestDatabase;
let copy: TestDatabase;
let folder: string;
t.before(async () => {
  original = await testDatabase(t, { seeded: true });
  for (const change of Object.values(CHANGES)) await change(original, t);
  // The last changes are those of a market that stays behind.
  await commit(original.pool, (client) =>
    putPoints(
      client,
      'CP-CU-0001',
      ['2026-07-06', null, '1', null],
      ['2026-07-07', null, '2', null],
    ),
  );
  folder = await exported(t, original.client, MARKETS);
  copy = await imported(t, folder);
});

/** A service with a key for these markets only. */
async function serviceFor(
  test: Pick<typeof t, 'teardown'>,
  database: TestDatabase,
): Promise<Service> {
  const service = await serviceOn(test, database);
  const key = await keyFor(database, ['prices:cobalt', 'prices:nickel']);
  return {
    ...service,
    key,
    request: ({ headers, ...options }) =>
      service.request({ ...options, headers: { 'x-api-key': key, ...headers } }),
  };
}

t.test(
  'an archive of some markets gives their readers the same answers, byte for byte, in every past',
  async (t) => {
    const [was, now] = [await serviceFor(t, original), await serviceFor(t, copy)];
    const request = anyRequest(randomOf(SEED));
    const values = await valuesOf(original);
    const { rows } = await original.pool.query(
      `select revision_text(number) as revision from revision order by number`,
    );
    const requests = Array.from({ length: 250 }, (_, index) => ({
      ...request(values),
      slug: MARKETS[index % 2] ?? '',
      past: rows[index % (rows.length + 1)] ?? {},
    }));
    let answered = 0;
    await forAll(requests, async ({ past, ...each }) => {
      const before = await send(was, each, past);
      if (before.status === 200) answered += 1;
      t.same(await send(now, each, past), before, JSON.stringify({ ...each, ...past }));
    });
    t.ok(answered > 50);
    const get = (service: typeof was, url: string) => service.request({ method: 'GET', url });
    for (const url of [
      ...MARKETS.map((slug) => `/v3/prices/${slug}/filters`),
      '/v3/reference/currencies',
      '/v3/reference/units',
    ]) {
      t.equal((await get(now, url)).text, (await get(was, url)).text, url);
    }
  },
);

t.test('it holds no price, point or product of another market', async (t) => {
  for (const table of ['price', 'price_history', 'product', 'product_history']) {
    const { rows } = await copy.pool.query(
      `select distinct m.slug from ${table} join market m on m.id = market_id order by m.slug`,
    );
    t.same(
      rows.filter(({ slug }) => !MARKETS.includes(slug)),
      [],
      table,
    );
  }
  for (const table of ['series', 'series_history', 'load_coverage']) {
    const { rows } = await copy.pool.query(
      `select from ${table} where price_id not in (select id from price)`,
    );
    t.equal(rows.length, 0, table);
  }
  const { rows } = await copy.pool.query('select count(*) from market');
  t.same(rows, [{ count: String(CATALOG.length) }], 'the catalog is whole');
});

t.test('the changes of its markets keep their numbers, and none is given twice', async (t) => {
  const of = async ({ pool }: TestDatabase, query: string, values: unknown[] = []) =>
    (await pool.query(query, values)).rows;
  const segments = await of(original, SEGMENTS, [MARKETS]);
  t.ok(segments.length > 40);
  t.same(await of(copy, SEGMENTS, [MARKETS]), segments);
  const last = await of(original, LAST);
  t.same(await of(copy, LAST), last);
  t.same(await of(copy, SEGMENTS, [['copper']]), [], 'the segment that is last has no price');
  for (const { pool } of [original, copy]) {
    await commit(pool, async (client) => {
      await addPrice(client, { code: 'CP-NI-8888', currency: 'USD', unit: 'tonne' });
      await putPoints(client, 'CP-NI-8888', ['2026-06-30', null, '9000', null]);
    });
  }
  t.same(await of(copy, SEGMENTS, [MARKETS]), await of(original, SEGMENTS, [MARKETS]));
});

t.test('it is exported again as the same files, whole or in part', async (t) => {
  const again = await imported(t, folder);
  const expected = await contentsOf(folder);
  t.same(await contentsOf(await exported(t, again.client, MARKETS)), expected);
  const { 'manifest.json': _markets, ...files } = expected;
  const { 'manifest.json': manifest, ...whole } = await contentsOf(await exported(t, again.client));
  t.same(whole, files);
  t.match(manifest, '"markets": null');
});

t.test('the manifest names the markets', async (t) => {
  const request = { folder: await archivePath(t), markets: MARKETS };
  t.same((await exportArchive(original.client, request)).markets, MARKETS);
});
