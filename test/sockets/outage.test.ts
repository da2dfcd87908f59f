import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { type ClientOptions, openClient } from '../../src/db/client.ts';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { addressOf } from '../support/http/address.ts';
import { startClosedLoop } from '../support/http/closed-loop-load.ts';
import { keyFor } from '../support/http/service.ts';
import { exchange, postText, until } from '../support/http/sockets.ts';
import { testConfig } from '../support/http/test-config.ts';

type Test = Parameters<typeof testDatabase>[0];

/** However slow the machine is, it is no outage. */
const PATIENT = { silenceMs: 60_000, awayMs: 60_000 };

const PATH = `/v3/prices/${BULK_MARKET.slug}`;
const QUESTIONS = [
  [PATH, {}],
  [PATH, { options: { includeSeries: true } }],
] as const;

const database = await testDatabase(t);
await fill(database, { prices: 30, points: 100 });
const key = await keyFor(database, ['prices:*']);

/** The service behind a wire to its database that can be cut. */
async function wired(
  test: Test,
  more: Partial<ClientOptions> = {},
  env: Readonly<Record<string, string>> = {},
) {
  const proxy = await tcpProxyTo(test, database.url);
  const client = openClient({
    url: proxy.url,
    connectionsMax: 4,
    acquireTimeoutMs: 30_000,
    statementTimeoutMs: 60_000,
    silenceMs: 500,
    readOnly: true,
    applicationName: 'wired',
    ...more,
  });
  const config = testConfig(env);
  const app = await buildApp({ config, client });
  test.teardown(async () => {
    app.server.closeAllConnections();
    proxy.cut(true);
    await app.close();
    await client.close();
  });
  const port = Number(new URL(await addressOf(app)).port);
  const get = (path: string) =>
    exchange(test, port, `GET ${path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n`);
  const post = () =>
    exchange(test, port, postText({ key }, BULK_MARKET.slug, {}, 'Connection: close\r\n'));
  /** Waits until it is as it should be; a busy machine may take a while for that. */
  const inOrder = (): Promise<void> =>
    until(
      'the service answers and is ready',
      async () => (await post()).status === 200 && (await get('/ready')).status === 200,
    );
  return { proxy, client, app, port, get, post, inOrder };
}

t.test('no request fails when sessions of the service are ended', async (t) => {
  const { port, client } = await wired(t, PATIENT);
  const steady = startClosedLoop(t, { port, key }, QUESTIONS, 4);
  for (let round = 0; round < 10; round += 1) {
    await steady.next(20);
    await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'wired%'`);
  }
  await steady.next(20);
  const { failed, sent } = await steady.stop();
  t.same(failed, []);
  t.ok(sent >= 220);
  // A session that stalls with its machine ends late.
  await until('the database is there', () => client.link.state === 'up');
});

t.test('no request fails when the database is away for a moment', async (t) => {
  const { port, proxy, client } = await wired(t, PATIENT);
  const steady = startClosedLoop(t, { port, key }, QUESTIONS, 4);
  for (let round = 0; round < 3; round += 1) {
    await steady.next(20);
    proxy.cut(true);
    await until('the outage is noticed', () => client.link.state === 'away');
    proxy.cut(false);
    await until('the database is back', () => client.link.state === 'up');
  }
  await steady.next(20);
  t.same((await steady.stop()).failed, []);
  t.equal(client.reads.retries.count, 0, 'an interruption is no reason for a retry');
});

/** One place, and a queue of which one principal has 20. */
const GATE = { RUNNING_MAX: '1', WAITING_MAX: '80', PRICE_BOOK_BYTES: '0' };

t.test(
  'requests that come while the database is away take no slot, and lose no time',
  async (t) => {
    const { proxy, client, get, post, port } = await wired(t, PATIENT, GATE);
    await until('the service answers', async () => (await post()).status === 200);
    await until(
      'the connections are idle',
      () => client.pool.idleCount > 0 && client.reads.slots.inUse === 0,
    );
    const before = client.pool.totalCount;
    proxy.cut(true);
    await until('the outage is noticed', () => client.link.state === 'away');
    const bad = postText({ key: `${key}x` }, BULK_MARKET.slug, {}, 'Connection: close\r\n');
    for (const [status, asked] of [
      [404, get('/v3/nothing')],
      [200, get('/live')],
      [503, get('/ready')],
      [401, get('/v3/me')],
      [401, exchange(t, port, bad)],
    ] as const) {
      t.equal((await asked).status, status, 'requests without the database are answered');
    }
    const statuses: string[] = [];
    const parked = Array.from({ length: 20 }, async () => {
      const { status, json } = await post();
      statuses.push(status === 200 ? '200' : `${status} ${json.code}`);
    });
    await until('they wait', () => client.link.queues.backlog >= 20);
    t.same(statuses, []);
    proxy.cut(false);
    await Promise.all(parked);
    t.same(statuses, Array(20).fill('200'));
    await until('the bounds are the usual ones', () => !client.link.queues.isCatchingUp);
    t.ok(client.pool.totalCount >= before);
  },
);

t.test('all that wait for a database that stays away are refused at once', async (t) => {
  const { proxy, client, post } = await wired(t, { awayMs: 1_000 }, GATE);
  await until('the service answers', async () => (await post()).status === 200);
  proxy.cut(true);
  await until('the outage is noticed', () => client.link.state !== 'up');
  const refused = await Promise.all(Array.from({ length: 10 }, post));
  const codes = new Set(refused.map(({ status, json }) => `${status} ${json.code}`));
  t.same(
    [...codes].filter((code) => !/^503 (database|auth)_unavailable$/.test(code)),
    [],
  );
  t.same(
    refused.filter(({ headers }) => !/^[1-5]$/.test(headers['retry-after'] ?? '')),
    [],
  );
});

t.test('the connections are made again as soon as the database is back', async (t) => {
  const { proxy, client, inOrder } = await wired(t, PATIENT);
  await inOrder();
  const before = client.pool.totalCount;
  proxy.cut(true);
  // If the server answers before the check, the lost connections are made on demand.
  await until('the outage is noticed', () => client.link.state === 'away');
  await until('all are gone', () => client.pool.totalCount === 0);
  proxy.cut(false);
  await until('as many are there', () => client.pool.totalCount >= before);
  t.ok(before > 0, 'without a request');
});

for (const [what, away] of [
  ['cannot be reached', 'cut'],
  ['says nothing', 'freeze'],
] as const) {
  t.test(`a database that ${what} is told at once, until it is back`, async (t) => {
    const { proxy, client, get, post, inOrder } = await wired(t);
    await inOrder();
    const waiting = away === 'freeze' ? post : null;
    if (away === 'cut') proxy.cut(true);
    else proxy.freeze();
    const caught = await waiting?.();
    if (caught) t.match(caught.json.code, /^(database|auth)_unavailable$/);
    await until('the outage is noticed', () => client.link.state === 'down');
    const refused = await post();
    t.equal(refused.status, 503);
    t.match(refused.json.code, /^(database|auth)_unavailable$/);
    t.match(refused.headers['retry-after'], /^\d+$/);
    for (const path of ['/ready', '/health', '/v3/prices/health']) {
      t.match(await get(path), { status: 503, json: { checks: { database: 'unavailable' } } });
    }
    t.equal((await get('/live')).status, 200);
    proxy.cut(true);
    proxy.cut(false);
    await inOrder();
    await until('no slot is in use', () => client.reads.slots.inUse === 0);
  });
}

t.test('a silence that ends as it began spoils nothing', async (t) => {
  const { proxy, client, inOrder } = await wired(t);
  await inOrder();
  proxy.freeze();
  await until('the silence is noticed', () => client.link.state === 'down');
  // Bytes sent meanwhile are lost: a thawed connection has a gap.
  proxy.cut(false);
  await inOrder();
});

t.test('health is answered while every connection is busy', async (t) => {
  const { client, get, inOrder } = await wired(t, PATIENT);
  await inOrder();
  const ending = new AbortController();
  const busy = [1, 2, 3, 4].map(() =>
    client.reads.query({ text: 'select pg_sleep(1000)' }, ending.signal).catch(() => {}),
  );
  await until('all are taken', () => client.reads.slots.inUse === 4);
  for (const path of ['/ready', '/health', '/live']) t.equal((await get(path)).status, 200);
  ending.abort();
  await Promise.all(busy);
});
