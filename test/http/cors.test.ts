import t from 'tap';
import { ConfigError, configOf } from '../../src/config/config.ts';
import { HEADERS } from '../../src/contract/openapi/refusals.ts';
import { seededDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';

const PAGE = 'https://desk.example.com';
const OTHER = 'https://other.example.com';
const URL = '/v3/prices/nickel';
const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'x-api-key,content-type',
};

let open: Service;
let closed: Service;
t.before(async () => {
  const database = await seededDatabase(t);
  open = await serviceOn(t, database, { CORS_ORIGINS: `${PAGE},http://localhost:8080` });
  closed = await serviceOn(t, database);
});

/** Headers that the browser itself obeys, and that a page needs not read. */
const OF_HTTP: readonly string[] = ['cache-control', 'vary', 'content-encoding'];

const allowed = (headers: object) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith('access-control-')),
  );

t.test('a page of an allowed origin may ask and read, without a credential', async (t) => {
  const { headers, status } = await open.request({
    method: 'OPTIONS',
    url: URL,
    headers: { origin: PAGE, ...PREFLIGHT, 'x-api-key': '' },
  });
  t.equal(status, 204);
  t.equal(headers['access-control-allow-origin'], PAGE);
  t.match(headers['access-control-allow-methods'], /POST/);
  t.match(headers['access-control-allow-headers'], /x-api-key/);
  t.equal(headers['access-control-allow-credentials'], undefined);
  t.match(headers['vary'], /origin/i);
});

t.test('answers and refusals name the origin, and what a page may read', async (t) => {
  const answers = [
    await open.request({ method: 'POST', url: URL, payload: {}, headers: { origin: PAGE } }),
    await open.request({ method: 'GET', url: URL, headers: { origin: PAGE } }),
    await open.request({ method: 'GET', url: URL, headers: { origin: PAGE, 'x-api-key': 'x' } }),
    await open.request({ method: 'GET', url: `${URL}?salt=1`, headers: { origin: PAGE } }),
    await open.request({ method: 'GET', url: '/v3/nothing', headers: { origin: PAGE } }),
  ];
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 401, 400, 404],
  );
  for (const { headers } of answers) {
    t.equal(headers['access-control-allow-origin'], PAGE);
    const exposed = headers['access-control-expose-headers']?.split(', ') ?? [];
    for (const name of Object.keys(HEADERS).filter((each) => !OF_HTTP.includes(each))) {
      t.ok(exposed.includes(name), name);
    }
    t.match(headers['vary'], /origin/i);
  }
});

t.test('no other origin is named, and none by default', async (t) => {
  for (const [service, origin] of [
    [open, OTHER],
    [open, `${PAGE}.evil.com`],
    [open, 'null'],
    [closed, PAGE],
  ] as const) {
    const preflight = await service.request({
      method: 'OPTIONS',
      url: URL,
      headers: { origin, ...PREFLIGHT },
    });
    t.same(allowed(preflight.headers), {}, origin);
    const answer = await service.request({ method: 'GET', url: URL, headers: { origin } });
    t.equal(answer.status, 200, 'a browser keeps it from the page');
    t.same(allowed(answer.headers), {});
  }
});

t.test('OPTIONS from no page or another origin returns the methods of an address', async (t) => {
  for (const service of [open, closed]) {
    for (const headers of [{}, { origin: OTHER, ...PREFLIGHT }]) {
      const known = await service.request({ method: 'OPTIONS', url: URL, headers });
      t.equal(known.status, 204);
      const methods = known.headers['allow']?.split(', ').toSorted();
      t.same(methods, ['GET', 'HEAD', 'OPTIONS', 'POST']);
      const unknown = await service.request({ method: 'OPTIONS', url: '/v3/nothing', headers });
      t.equal(unknown.status, 404);
      t.match(unknown.headers['content-type'], /^application\/problem\+json/);
    }
  }
});

t.test('a star, a path and an origin without a scheme are refused at start', (t) => {
  // Browsers send lower case: an origin in capitals would never match.
  for (const CORS_ORIGINS of [
    'https://Desk.example.com',
    '*',
    'https://*.example.com',
    `${PAGE}/`,
    'desk.example.com',
  ]) {
    t.throws(() => configOf({ CORS_ORIGINS }), ConfigError, CORS_ORIGINS);
  }
  t.end();
});
