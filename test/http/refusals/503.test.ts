import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import t from 'tap';
import { administer, dropSchema, testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';
import { until } from '../../support/http/sockets.ts';

type TestedService = Pick<Awaited<ReturnType<typeof serviceWithoutDatabase>>, 'request'>;
type Test = Pick<typeof t, 'same' | 'match' | 'notMatch' | 'equal'>;

const PRICES = [
  ['POST', '/v3/prices/nickel'],
  ['GET', '/v3/prices/nickel/filters'],
  ['GET', '/v3/prices'],
  ['GET', '/v3/search?q=nickel'],
  ['GET', '/v3/calendar'],
] as const;

const get = (service: TestedService, url: string) => service.request({ method: 'GET', url });

/** Every address with prices says that it cannot answer, why, and when to come back. */
async function pricesSay(t: Test, service: TestedService, code: string): Promise<void> {
  for (const [method, url] of PRICES) {
    const payload = method === 'POST' ? { payload: {} } : {};
    const { status, json, headers, text } = await service.request({ method, url, ...payload });
    t.same([status, json.code], [503, code], url);
    t.match(headers['retry-after'], /^\d+$/);
    t.equal(headers['cache-control'], 'no-store');
    t.notMatch(text, /127\.0\.0\.1|ECONN|select |relation|nobody|stack|password/i);
  }
}

/** Health says the same in its own words; the process itself is alive. */
async function healthSays(
  t: Test,
  service: TestedService,
  checks: { readonly database: string; readonly [check: string]: unknown },
): Promise<void> {
  const seen = async (): Promise<string> => (await get(service, '/ready')).json.checks.database;
  await until(
    'the service has checked its database',
    async () => (await seen()) === checks.database,
  );
  for (const url of ['/health', '/v3/prices/health', '/ready']) {
    const { status, json, headers } = await get(service, url);
    t.equal(status, 503, url);
    t.match(json, { status: 'unavailable', checks, reasons: [/^The database /] }, url);
    t.same(Object.keys(json), ['status', 'reasons', 'version', 'time', 'checks']);
    t.match(headers['content-type'], 'application/json');
    t.match(headers['retry-after'], /^\d+$/);
    t.equal(headers['cache-control'], 'no-store');
  }
  t.equal((await get(service, '/live')).status, 200);
}

t.test('without a database everything that needs one is a 503', async (t) => {
  const service = await serviceWithoutDatabase(t);
  await pricesSay(t, service, 'database_unavailable');
  const checks = { database: 'unavailable', schema: 'unknown', data: { latestPublishedAt: null } };
  await healthSays(t, service, checks);
});

t.test('a database that accepts a connection and says nothing is one that is down', async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const service = await serviceWithoutDatabase(t, {}, `postgres://x@127.0.0.1:${port}/x`, 1_000);
  await healthSays(t, service, { database: 'unavailable' });
  await pricesSay(t, service, 'database_unavailable');
});

t.test('a database without the tables is distinguished from one that is down', async (t) => {
  const database = await testDatabase(t);
  await dropSchema(database);
  const service = await serviceWithoutDatabase(t, {}, database.url);
  await pricesSay(t, service, 'schema_outdated');
  await healthSays(t, service, { database: 'ok', schema: 'schema_outdated' });
  // A first migration that failed leaves this table alone.
  await database.pool.query('create table kysely_migration (name text, "timestamp" text)');
  const begun = await serviceWithoutDatabase(t, {}, database.url);
  await healthSays(t, begun, { database: 'ok', schema: 'schema_outdated' });
  const { key } = await serviceOn(t, await testDatabase(t));
  const answer = await service.app.inject({
    url: '/v3/prices',
    headers: { 'x-api-key': key },
  });
  t.same(
    [answer.statusCode, answer.json().code],
    [503, 'schema_outdated'],
    'with an API key as well',
  );
});

t.test('a database that rejects the login, or does not exist, is a 503', async (t) => {
  const { url } = await testDatabase(t);
  const elsewhere = new URL(url);
  elsewhere.pathname = '/no_such_database';
  await pricesSay(t, await serviceWithoutDatabase(t, {}, elsewhere.href), 'database_unavailable');
  const noAccount = new URL(url);
  noAccount.username = 'no_such_account';
  await pricesSay(t, await serviceWithoutDatabase(t, {}, noAccount.href), 'database_unavailable');
});

t.test('a service recovers by itself when its database comes back', async (t) => {
  const database = await testDatabase(t);
  const service = await serviceWithoutDatabase(t, {}, database.url);
  const name = new URL(database.url).pathname.slice(1);
  const post = async () => (await service.post('nickel', {})).status;
  t.equal(await post(), 200);
  const server = process.env['TEST_DATABASE_URL'] as string;
  const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${name}'`;
  await administer(server, `alter database "${name}" allow_connections false`, terminate);
  t.equal(await post(), 503);
  await administer(server, `alter database "${name}" allow_connections true`);
  await until('the service answers again', async () => (await post()) === 200);
});
