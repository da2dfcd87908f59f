import t from 'tap';
import { VERSION } from '../../src/std/program.ts';
import { seededDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  priceId,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { readOracle } from '../support/prices/oracle.ts';

/** A service that has checked its database. */
async function checkedService(...[test, database, env]: Parameters<typeof serviceOn>) {
  const service = await serviceOn(test, database, env);
  const ready = () => service.app.inject({ method: 'GET', url: '/ready' });
  await until(
    'the service has checked its database',
    async () => (await ready()).statusCode === 200,
  );
  return service;
}

const HEALTH = ['/health', '/v3/prices/health', '/ready'];

t.test('health needs no credential and has version, database and latest publication', async (t) => {
  const database = await seededDatabase(t);
  const { app, request } = await checkedService(t, database);
  const all = await readOracle(database.pool);
  const latest = all.map((each) => each.points.at(-1)?.[1].split(' ')[4] ?? '').sort();
  for (const url of HEALTH) {
    const invalid = { 'x-api-key': 'nonsense', authorization: 'Bearer nonsense' };
    for (const headers of [{}, invalid]) {
      const { status, json, headers: sent } = await request({ method: 'GET', url, headers });
      const { time, ...rest } = json;
      t.equal(status, 200, url);
      t.same(rest, {
        status: 'ok',
        reasons: [],
        version: VERSION,
        checks: {
          database: 'ok',
          schema: 'ok',
          rates: 'ok',
          behindSince: null,
          data: { latestPublishedAt: latest.at(-1) },
        },
      });
      t.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000);
      t.equal(sent['cache-control'], 'no-store');
    }
    const head = await app.inject({ method: 'HEAD', url });
    t.same([head.statusCode, head.body], [200, ''], `HEAD ${url}`);
  }
});

t.test('a service that stops is healthy and not ready', async (t) => {
  const { app, request } = await checkedService(t, await testDatabase(t));
  app.isStopping = true;
  const { status, json } = await request({ method: 'GET', url: '/ready' });
  t.equal(status, 503);
  t.match(json, { status: 'unavailable', checks: { schema: 'ok', service: 'shutting_down' } });
  t.equal(json.reasons.at(-1), 'The service is stopping');
  const health = await request({ method: 'GET', url: '/health' });
  t.equal(health.status, 200);
  t.notOk('service' in health.json.checks);
});

t.test('a service without a single value is degraded, and answers', async (t) => {
  const database = await testDatabase(t);
  const { request } = await checkedService(t, database);
  const { status, json } = await request({ method: 'GET', url: '/health' });
  t.equal(status, 200);
  t.match(json, {
    status: 'degraded',
    checks: { database: 'ok', schema: 'ok', data: { latestPublishedAt: null } },
  });
  // Without reference data there is no source of rates either.
  t.match(json.reasons, [/^No price has a value yet: .* load$/, /^FX_SOURCE: .* ECB; load its/]);
});

t.test('a service with an unknown source of rates is degraded, and answers', async (t) => {
  const database = await seededDatabase(t);
  const { request } = await checkedService(t, database, { FX_SOURCE: 'NOBODY' });
  const { status, json } = await request({ method: 'GET', url: '/ready' });
  t.equal(status, 200);
  t.match(json, { status: 'degraded', checks: { database: 'ok', rates: 'unknown_source' } });
  t.match(json.reasons, [/^FX_SOURCE: there is no source of exchange rates NOBODY; load/]);
});

t.test(
  'the latest publication is that of the newest point of any price, to the microsecond',
  async (t) => {
    const database = await testDatabase(t);
    await writeMinimalData(database.pool);
    const point = (code: string, date: string, published_at: string) =>
      insertOf('series', pointRow({ price_id: priceId(code), date, published_at }));
    await inRevision(
      database.pool,
      point('T-1', "'2024-05-01'", "'2024-05-01T16:00:00.000001Z'"),
      point('T-3', "'2024-05-02'", "'2024-05-02T01:30:00.12+09:00'"),
    );
    const { request } = await checkedService(t, database);
    const { json } = await request({ method: 'GET', url: '/health' });
    t.equal(json.checks.data.latestPublishedAt, '2024-05-01T16:30:00.12Z');
  },
);
