import t from 'tap';
import { createKey } from '../../../src/auth/keys/keys.ts';
import { seededDatabase } from '../../support/database/database.ts';
import { keyFor, type Service, serviceOn } from '../../support/http/service.ts';
import { until } from '../../support/http/sockets.ts';

/** Seconds of a minute that has begun: a busy machine may take some of it. */
const MINUTE = '(60|[2345]\\d)';

const me = (service: Service, headers: Record<string, string> = {}) =>
  service.request({ method: 'GET', url: '/v3/me', headers });

t.test('a rate limit is reported with each answer, and the reported wait suffices', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t), {
    RATE_PER_MINUTE: '1',
    RATE_BURST: '3',
  });
  for (const remaining of [2, 1, 0]) {
    const answer = await me(service);
    t.equal(answer.status, 200);
    t.equal(answer.headers['ratelimit-policy'], '"default";q=1;w=60');
    t.match(answer.headers['ratelimit'], new RegExp(`^"default";r=${remaining};t=${MINUTE}$`));
  }
  const refused = await me(service);
  t.match(refused, { status: 429, json: { code: 'rate_limited' } });
  t.match(refused.json.detail, /At most 1 requests a minute/);
  t.match(refused.headers['retry-after'], new RegExp(`^${MINUTE}$`));
  t.equal(refused.headers['ratelimit'], `"default";r=0;t=${refused.headers['retry-after']}`);
  t.equal(refused.headers['cache-control'], 'no-store');
});

t.test('every request with a valid credential counts, also one without the scope', async (t) => {
  const database = await seededDatabase(t);
  const service = await serviceOn(t, database, {
    RATE_PER_MINUTE: '1',
    RATE_BURST: '2',
  });
  const broken = await service.post('nickel', { filters: { unknown: 1 } });
  t.match(broken, { status: 400, headers: { ratelimit: /^"default";r=1;t=\d+$/ } });
  const anonymous = await service.app.inject({ method: 'GET', url: '/v3/me' });
  t.equal(anonymous.statusCode, 401);
  t.equal(anonymous.headers['ratelimit'], undefined);
  const headers = { 'x-api-key': await keyFor(database, ['prices:nickel']) };
  const url = '/v3/prices/copper/filters';
  const closed = async () => {
    const { status, headers: sent } = await service.request({ method: 'GET', url, headers });
    return `${status} ${sent['ratelimit']?.slice(0, 13)}`;
  };
  t.same(
    [await closed(), await closed(), await closed(), await closed()],
    ['403 "default";r=1', '403 "default";r=0', '429 "default";r=0', '429 "default";r=0'],
  );
  t.equal((await me(service)).status, 200);
  t.equal((await me(service)).status, 429);
  t.equal((await service.request({ method: 'GET', url: '/live' })).status, 200, 'open addresses');
});

t.test('a key may have limits of its own, which it can see', async (t) => {
  const database = await seededDatabase(t);
  const service = await serviceOn(t, database, {
    RATE_PER_MINUTE: '600',
    RATE_BURST: '60',
    CONCURRENT_MAX: '10',
  });
  const usual = await me(service);
  t.same(usual.json.limits, { requestsPerMinute: 600, burst: 60, concurrent: 10 });
  t.equal(usual.headers['ratelimit-policy'], '"default";q=600;w=60');
  t.equal(usual.headers['ratelimit'], '"default";r=59;t=1');
  const expiresAt = new Date(Date.now() + 3_600_000);
  const own = await createKey(database.db, {
    name: 'own',
    scopes: ['prices:nickel', 'prices:copper'],
    expiresAt,
    limits: { perMinute: 1, burst: 1, concurrent: null },
  });
  const { headers, json } = await me(service, { 'x-api-key': own.key });
  t.same(json, {
    kind: 'key',
    id: own.id,
    scopes: ['prices:nickel', 'prices:copper']
      .filter((scope) => json.scopes.includes(scope))
      .sort((one, other) => json.scopes.indexOf(one) - json.scopes.indexOf(other)),
    markets: json.scopes.map((scope: string) => scope.slice('prices:'.length)),
    expiresAt: own.expiresAt,
    limits: { requestsPerMinute: 1, burst: 1, concurrent: 10 },
  });
  t.equal(json.scopes.length, 2);
  t.equal(headers['x-api-key-expires'], new Date(String(own.expiresAt)).toUTCString());
  const { headers: later } = await me(service, { 'x-api-key': own.key });
  t.match(later['retry-after'], new RegExp(`^${MINUTE}$`));
  const free = await createKey(database.db, {
    name: 'free',
    scopes: ['prices:*'],
    expiresAt: null,
    limits: { perMinute: 0, burst: 1, concurrent: 0 },
  });
  const answer = await me(service, { 'x-api-key': free.key });
  t.same(answer.json.limits, { requestsPerMinute: null, burst: null, concurrent: null });
  t.equal(answer.headers['ratelimit'], undefined);
  t.equal(answer.headers['x-api-key-expires'], undefined);
});

t.test(
  'a network whose credentials were refused too often waits, also with a good one',
  async (t) => {
    const service = await serviceOn(t, await seededDatabase(t), { FAILED_AUTH_PER_MINUTE: '2' });
    const from = (remoteAddress: string, key: string) =>
      service.app.inject({
        method: 'GET',
        url: '/v3/me',
        headers: { 'x-api-key': key },
        remoteAddress,
      });
    for (let guess = 0; guess < 2; guess += 1) {
      t.equal((await from('2001:db8::1', 'cps_live_wrong')).statusCode, 401);
    }
    const blocked = await from('2001:db8::2', 'cps_live_wrong');
    t.equal(blocked.statusCode, 429);
    t.match(blocked.json(), { code: 'rate_limited', detail: /network/ });
    t.match(blocked.headers['retry-after'], /^(30|[12]\d)$/, 'half a minute, or what is left');
    t.equal((await from('2001:db8::3', service.key)).statusCode, 429, 'the same /64');
    t.equal((await from('2001:db8:0:1::1', service.key)).statusCode, 200, 'another one');
    t.equal((await from('192.0.2.1', service.key)).statusCode, 200);
    const nothing = await service.app.inject({
      method: 'GET',
      url: '/v3/me',
      remoteAddress: '192.0.2.1',
    });
    t.equal(nothing.statusCode, 401, 'sending nothing is no guess');
  },
);

t.test('X-Forwarded-For is believed only of a proxy that is trusted', async (t) => {
  const database = await seededDatabase(t);
  const guess = (service: Service, forwarded: string) =>
    service.app.inject({
      method: 'GET',
      url: '/v3/me',
      headers: { 'x-api-key': 'cps_live_wrong', 'x-forwarded-for': forwarded },
      remoteAddress: '10.0.0.1',
    });
  const open = await serviceOn(t, database, { FAILED_AUTH_PER_MINUTE: '1' });
  t.equal((await guess(open, '192.0.2.1')).statusCode, 401);
  t.equal((await guess(open, '192.0.2.2')).statusCode, 429, 'a new name does not help');
  const behind = await serviceOn(t, database, {
    FAILED_AUTH_PER_MINUTE: '1',
    TRUST_PROXY: '10.0.0.0/8',
  });
  t.equal((await guess(behind, '192.0.2.1')).statusCode, 401);
  t.equal((await guess(behind, '192.0.2.2')).statusCode, 401);
  t.equal((await guess(behind, '192.0.2.1')).statusCode, 429);
});

t.test('a clock that is set back blocks no client', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t), {
    RATE_PER_MINUTE: '6000',
    RATE_BURST: '1',
    FAILED_AUTH_PER_MINUTE: '6000',
  });
  t.equal((await me(service)).status, 200);
  t.equal((await me(service, { 'x-api-key': 'none' })).status, 401);
  const { now } = Date;
  t.teardown(() => {
    Date.now = now;
  });
  Date.now = () => now() - 3_600_000;
  await until('the rate limit recovers', async () => (await me(service)).status === 200);
});
