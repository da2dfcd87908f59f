import t from 'tap';
import { seededDatabase, type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { keyFor, type Service, serviceOn } from '../support/http/service.ts';
import { type OraclePrice, readOracle } from '../support/prices/oracle.ts';
import { SPECIFIED } from '../support/prices/specification.ts';

let database: TestDatabase;
let service: Service;
let all: readonly OraclePrice[];

t.before(async () => {
  database = await seededDatabase(t);
  service = await serviceOn(t, database);
  all = await readOracle(database.pool);
});

const get = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  service.request({ method, url, headers });

/** The newest publication of the latest points of some prices. */
const newestIn = (prices: readonly OraclePrice[]): string | null =>
  prices
    .flatMap(({ points }) => points.at(-1)?.[1].split(' ')[4] ?? [])
    .sort()
    .at(-1) ?? null;

t.test('GET /v3/prices lists for every market its filters, prices and days', async (t) => {
  const { status, json } = await get('/v3/prices');
  t.equal(status, 200);
  t.same(
    json.data.map((each: { slug: string }) => each.slug),
    SPECIFIED.map((each) => each.slug),
  );
  for (const [index, { slug, filters }] of SPECIFIED.entries()) {
    const own = all.filter((each) => each.market === slug);
    const days = own.flatMap((each) => each.points.map(([date]) => date)).sort();
    const { name, ...told } = json.data[index];
    t.ok(name.length > 0);
    t.same(
      { ...told, filters: told.filters.toSorted() },
      {
        slug,
        scope: `prices:${slug}`,
        filters: [...filters, 'codes'].sort(),
        prices: own.length,
        firstDate: days[0] ?? null,
        lastDate: days.at(-1) ?? null,
        latestPublishedAt: newestIn(own),
        authorized: true,
      },
    );
  }
});

t.test(
  'GET /v3/prices says which markets the principal may read; any credential will do',
  async (t) => {
    const key = await keyFor(database, ['prices:lithium', 'prices:copper']);
    const { json } = await get('/v3/prices', { 'x-api-key': key });
    t.same(
      json.data
        .filter((each: { authorized: boolean }) => each.authorized)
        .map((each: { slug: string }) => each.slug),
      ['lithium', 'copper'],
      'and lithium-ion-battery is another market',
    );
    for (const { slug, filters } of SPECIFIED) {
      const market = json.data.find((each: { slug: string }) => each.slug === slug);
      const names = ['slug', 'name', 'scope', 'authorized'];
      const isOpen = ['lithium', 'copper'].includes(slug);
      if (isOpen) t.equal(market.filters.length, filters.length + 1, slug);
      else t.same(Object.keys(market), names, `of ${slug} nothing but its names`);
    }
    t.equal((await service.app.inject({ url: '/v3/prices' })).statusCode, 401);
  },
);

t.test(
  'GET …/filters lists every value of the prices of the market, and how many have it',
  async (t) => {
    for (const { slug, filters } of SPECIFIED) {
      const { json, headers } = await get(`/v3/prices/${slug}/filters`);
      const own = all.filter((each) => each.market === slug);
      t.same(Object.keys(json.data), filters, slug);
      for (const filter of filters) {
        const values = own.flatMap((each) => each.values.get(filter) ?? []);
        const counted = [...Map.groupBy(values, (each) => each.id)].map(([id, same]) => ({
          id,
          name: same[0]?.name ?? '',
          prices: same.length,
        }));
        counted.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
        t.same(json.data[filter], counted, `${slug} ${filter}`);
      }
      const { market, revision, asOf, ...rest } = json.$metadata;
      t.same([market, rest], [slug, {}]);
      t.equal(headers['x-data-revision'], revision);
      const { json: prices } = await service.post(slug, { filters: { codes: ['none'] } });
      t.same([revision, asOf], [prices.$metadata.revision, prices.$metadata.asOf]);
    }
  },
);

t.test('the scope of a market opens its filters, and no other scope does', async (t) => {
  const key = await keyFor(database, ['prices:lithium']);
  const status = async (slug: string) =>
    (await get(`/v3/prices/${slug}/filters`, { 'x-api-key': key })).status;
  t.equal(await status('lithium'), 200);
  t.equal(await status('lithium-ion-battery'), 403);
});

for (const url of ['/v3/prices', '/v3/prices/nickel/filters']) {
  t.test(`${url} has a strong ETag, and 304 for a client that has it already`, async (t) => {
    const { headers, text } = await get(url);
    const tag = headers['etag'] as string;
    t.match(tag, /^"[^"]+"$/);
    t.equal(headers['cache-control'], 'private, no-cache');
    t.equal(headers['vary'], 'accept, accept-encoding, x-api-key, authorization');
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*', `"a","b" , ${tag}`]) {
      const answer = await get(url, { 'if-none-match': known });
      t.equal(answer.status, 304, known);
      t.equal(answer.text, '');
      t.equal(answer.headers['etag'], tag);
      t.equal(answer.headers['cache-control'], 'private, no-cache');
      t.equal(answer.headers['vary'], headers['vary']);
    }
    for (const stale of ['"other"', tag.replaceAll('"', ''), '', `${tag.slice(0, -1)}x"`]) {
      const answer = await get(url, { 'if-none-match': stale });
      t.equal(answer.status, 200, stale);
      t.equal(answer.text, text);
    }
  });

  t.test(`HEAD ${url} has the headers of GET and no body`, async (t) => {
    const whole = await get(url);
    const head = await get(url, {}, 'HEAD');
    t.equal(head.status, 200);
    t.equal(head.text, '');
    for (const name of ['etag', 'content-type', 'content-length', 'cache-control', 'vary']) {
      t.equal(head.headers[name], whole.headers[name], name);
    }
    t.equal(
      (await get(url, { 'if-none-match': whole.headers['etag'] as string }, 'HEAD')).status,
      304,
    );
  });
}

t.test('the ETag changes with the data and with the principal, never by itself', async (t) => {
  const own = await testDatabase(t);
  await writeMinimalData(own.pool);
  const other = await serviceOn(t, own);
  const few = await keyFor(own, ['prices:nickel']);
  const tagOf = async (url: string, key: string = other.key) =>
    (await other.request({ method: 'GET', url, headers: { 'x-api-key': key } })).headers['etag'];
  const [list, filters] = [await tagOf('/v3/prices'), await tagOf('/v3/prices/nickel/filters')];
  t.equal(await tagOf('/v3/prices'), list);
  t.not(await tagOf('/v3/prices', few), list, 'authorized differs');
  await inRevision(own.pool, insertOf('series', pointRow()));
  t.not(await tagOf('/v3/prices'), list);
  t.not(await tagOf('/v3/prices/nickel/filters'), filters);
});

t.test('a market without prices is shown as such', async (t) => {
  const own = await testDatabase(t);
  const other = await serviceOn(t, own);
  const list = await other.request({ method: 'GET', url: '/v3/prices' });
  for (const each of list.json.data) {
    t.match(
      each,
      { prices: 0, firstDate: null, lastDate: null, latestPublishedAt: null },
      each.slug,
    );
  }
  const values = await other.request({ method: 'GET', url: '/v3/prices/cobalt/filters' });
  t.same(Object.values(values.json.data), [[], [], [], [], [], [], []]);
  const { json } = await other.post('cobalt', { filters: { products: ['Cobalt metal'] } });
  t.match(json, { $metadata: { count: 0, warnings: [{ suggestions: [] }] }, data: [] });
});
