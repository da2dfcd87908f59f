import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { metricsOf } from '../../src/metrics/metrics.ts';
import { loggerOf } from '../../src/process/log.ts';
import { serveMetrics } from '../../src/process/metrics-server.ts';
import { HS256, SECRET } from '../support/auth/auth-app.ts';
import { goodClaims, secretToken } from '../support/auth/tokens.ts';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { keyFor } from '../support/http/service.ts';
import { exchange, postText, RawConnection, until } from '../support/http/sockets.ts';
import { testConfig } from '../support/http/test-config.ts';

const database = await testDatabase(t);
await fill(database, { prices: 45, points: 3_000 });

/** A service that counts, with its log as objects. */
async function observed(test: Parameters<typeof testDatabase>[0]) {
  const lines: Record<string, unknown>[] = [];
  const metrics = metricsOf();
  const app = await buildApp({
    config: testConfig({
      JWT_SECRET: SECRET,
      JWT_ISSUER: HS256.JWT_ISSUER,
      JWT_AUDIENCE: HS256.JWT_AUDIENCE,
      SERIES_PRICES_PER_STATEMENT: 1,
    }),
    client: database.client,
    usagePool: database.pool,
    logger: loggerOf('info', { write: (line) => lines.push(JSON.parse(line)) }),
    metrics,
  });
  test.teardown(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  const port = Number(new URL(await addressOf(app)).port);
  const key = await keyFor(database, ['prices:*']);
  const completed = () => lines.filter(({ msg }) => msg === 'request completed');
  /** The value of a metric with these labels; 0 where it was never counted. */
  const counted = async (name: string, labels: Record<string, string> = {}) => {
    const all = await metrics.registry.getSingleMetric(name)?.get();
    const found = all?.values.filter((each) =>
      Object.entries(labels).every(
        ([label, value]) => (each.labels as Record<string, unknown>)[label] === value,
      ),
    );
    return found?.reduce((sum, { value }) => sum + value, 0) ?? 0;
  };
  const ask = (text: string) => exchange(test, port, text);
  return { app, port, key, metrics, completed, counted, ask };
}

const CLOSE = 'Connection: close\r\n';
const get = (path: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: t\r\n${CLOSE}${headers}\r\n`;

t.test('each request is one log line with principal, operation, status and duration', async (t) => {
  const { key, ask, completed } = await observed(t);
  const token = secretToken(goodClaims({ sub: 'jane@example.com', scope: 'prices:*' }));
  await ask(postText({ key }, BULK_MARKET.slug, {}, CLOSE));
  await ask(get('/v3/prices?secret=1', `Authorization: Bearer ${token}\r\n`));
  await ask(get('/v3/prices'));
  await ask(get('/nowhere'));
  await ask(get('/v3/prices/%zz'));
  await until('all are logged', () => completed().length === 5);
  const [market, list, anonymous, nowhere, broken] = completed();
  const operation = `post${BULK_MARKET.slug[0]?.toUpperCase()}${BULK_MARKET.slug.slice(1)}Prices`;
  const path = `/v3/prices/${BULK_MARKET.slug}`;
  t.match(market, {
    level: 30,
    reqId: /^[\w-]{36}$/,
    operation,
    method: 'POST',
    path,
    status: 200,
    key: key.split('_')[2],
    ms: Number,
    bytes: Number,
  });
  t.ok(Number(market?.['bytes']) > 45 * 100);
  const subject = createHash('sha256').update('jane@example.com').digest('hex').slice(0, 16);
  t.match(list, { operation: 'getMarkets', path: '/v3/prices', status: 400, subject });
  t.notMatch(JSON.stringify(completed()), /jane|secret/);
  t.match(anonymous, { level: 30, status: 401, code: 'missing_credentials' });
  t.match(nowhere, { operation: 'unknown', status: 404, code: 'not_found' });
  t.match(broken, { status: 400, code: 'malformed_request' });
});

t.test('a failure is in the log line of its request, with its cause', async (t) => {
  const { key, ask, completed } = await observed(t);
  await database.pool.query('alter table service rename to gone');
  await ask(postText({ key }, BULK_MARKET.slug, {}, CLOSE));
  await database.pool.query('alter table gone rename to service');
  await until('the request is logged', () => completed().length === 1);
  t.match(completed()[0], {
    level: 50,
    status: 503,
    code: 'schema_outdated',
    err: { message: /does not exist/, stack: String },
  });
});

t.test('requests are counted by operation and status, refusals by code', async (t) => {
  const { key, port, ask, completed, counted } = await observed(t);
  await ask(postText({ key }, BULK_MARKET.slug, {}, CLOSE));
  await ask(postText({ key: 'nonsense' }, BULK_MARKET.slug, {}, CLOSE));
  await ask(get('/v3/nowhere/at/all'));
  await ask('nonsense\r\n\r\n');
  const leaver = new RawConnection(t, port);
  leaver.socket.write(postText({ key }, BULK_MARKET.slug, { options: { includeSeries: true } }));
  await leaver.firstBytes();
  leaver.socket.destroy();
  await until('all are logged', () => completed().length === 4);
  const operation = String(completed()[0]?.['operation']);
  const name = 'prices_request_duration_seconds';
  const count = (labels: Record<string, string>) => counted(name, { ...labels, le: '+Inf' });
  t.equal(await count({ operation, status: '200' }), 1);
  t.equal(await count({ operation, status: '401' }), 1);
  t.equal(await count({ operation, status: '499' }), 1, 'a client that left is no failure');
  t.equal(await count({ operation: 'unknown', status: '404' }), 1);
  t.equal(await count({ status: '500' }), 0);
  t.equal(await counted('prices_refusals_total', { code: 'invalid_api_key' }), 1);
  t.equal(await counted('prices_refusals_total', { code: 'malformed_request' }), 1);
  t.ok((await counted('prices_response_bytes_total', { operation })) > 4_500);
});

t.test('an answer that broke off is counted by what it failed with', async (t) => {
  const { key, port, completed, counted } = await observed(t);
  const reader = new RawConnection(t, port);
  reader.socket.write(postText({ key }, BULK_MARKET.slug, { options: { includeSeries: true } }));
  await reader.firstBytes();
  await database.pool.query('alter function series_at(bigint) rename to gone');
  reader.socket.resume();
  await reader.ended();
  await database.pool.query('alter function gone(bigint) rename to series_at');
  await until('the answer is logged', () => completed().length === 1);
  t.match(completed()[0], { level: 50, status: 'broken', err: { message: /does not exist/ } });
  t.equal(await counted('prices_refusals_total', { code: 'schema_outdated' }), 1);
});

t.test('the metrics have a separate port, and show the state of the parts', async (t) => {
  const { key, ask, metrics } = await observed(t);
  await ask(postText({ key }, BULK_MARKET.slug, {}, CLOSE));
  await until(
    'the service has checked its database',
    async () => (await ask(get('/ready'))).status === 200,
  );
  const server = await serveMetrics(metrics.registry, { port: 0, host: '127.0.0.1' });
  t.teardown(() => server.close());
  const read = await exchange(t, server.port, get('/metrics'));
  t.equal(read.status, 200);
  t.match(read.headers['content-type'], 'text/plain; version=0.0.4');
  const has = (line: string | RegExp) => t.match(read.body, line);
  has('prices_database_state{state="closed"} 1');
  has('prices_database_state{state="open"} 0');
  has(/prices_pool_connections [1-9]/);
  has(/prices_revision_checks_total [1-9]/);
  has('prices_statements_waiting 0');
  has('prices_requests_running 0');
  // `increase()` needs a sample from before the increase.
  has('prices_refusals_total{code="internal_error"} 0');
  has(
    new RegExp(`prices_latest_publication_timestamp_seconds{market="${BULK_MARKET.slug}"} 1\\d{9}`),
  );
  has(new RegExp(`prices_last_revision_timestamp_seconds{scope="${BULK_MARKET.slug}"} 1\\d{9}`));
  has(/nodejs_eventloop_lag_p99_seconds /);
  t.notMatch(read.body, key.slice(-38));
  for (const file of ['alerts.yml', 'grafana/dashboard.json']) {
    const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
    const named = text.match(/\b(prices|nodejs|process)_[a-z0-9_]+/g) ?? [];
    const isTold = (name: string) => read.body.includes(name.replace(/_(bucket|count|sum)$/, ''));
    t.same(
      named.filter((name) => !isTold(name)),
      [],
      `${file} names metrics that there are`,
    );
    t.ok(named.length > 8);
  }
  for (const line of [get('/'), get('/metrics/x'), 'POST /metrics HTTP/1.1\r\nHost: t\r\n\r\n']) {
    const connection = new RawConnection(t, server.port);
    connection.socket.write(line);
    await until('the request is refused', () => connection.text.startsWith('HTTP/1.1 404 '));
  }
  await t.rejects(serveMetrics(metrics.registry, { port: server.port, host: '127.0.0.1' }), {
    name: 'ConfigError',
    message: /^METRICS_PORT: \d+ on 127\.0\.0\.1 is in use .*; METRICS_PORT=0 selects a free port$/,
  });
});
