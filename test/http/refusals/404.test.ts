import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

/** Sends a request without the openapi.yaml check, which lacks this path. */
const ask = (method: string, url: string, more: object = {}) =>
  service.app.inject({ method: method as 'GET', url, ...more });

const NOWHERE = [
  '/v3',
  '/v3/',
  '/v3/price',
  '/v2/prices/nickel',
  '/v3/prices/unobtainium',
  '/v3/prices/NICKEL',
  '/v3/prices/Nickel',
  '/V3/prices/nickel',
  '/v3/prices/nickel/prices',
  '/v3//prices/nickel',
  '/v3/prices/nickel%20',
  '/v3/prices/nickel%2Ffilters',
  '/v3/prices/lithium_ion_battery',
  '/v3/prices/../../etc/passwd',
  '/v3/prices/filters',
  '/nickel',
  '/metrics',
  '/*',
];

t.test(
  'an address that there is not is a 404 for everyone, whatever the method and body',
  async (t) => {
    for (const url of NOWHERE) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await ask(method, url);
        t.equal(answer.statusCode, 404, `${method} ${url}`);
        t.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8');
        t.match(answer.json(), { code: 'not_found', status: 404 });
        t.equal(answer.json().requestId, answer.headers['x-request-id']);
        t.equal(answer.headers['cache-control'], 'no-store');
      }
    }
  },
);

t.test('the problem of an unknown address names the page with all addresses', async (t) => {
  for (const url of ['/v3/prices/gold', '/v3/price', '/helth', '/v4/prices/nickel']) {
    const { detail } = (await ask('GET', url)).json();
    t.equal(detail, 'There is nothing here; /docs lists the addresses', url);
  }
});

t.test('a client with a credential learns where the list of markets is', async (t) => {
  const list = 'GET /v3/prices lists the markets';
  const hints = {
    '/v3/prices/gold': list,
    '/v3/prices/gold/filters': list,
    '/v3/prices/gold?regions=Europe': list,
    '/v3/prices/cobalt/filter': '/docs lists the addresses',
    '/v3/nothing/gold': '/docs lists the addresses',
  };
  for (const headers of [{ 'x-api-key': 'x' }, { authorization: 'Bearer x' }]) {
    for (const method of ['GET', 'POST']) {
      for (const [url, hint] of Object.entries(hints)) {
        const { detail } = (await ask(method, url, { headers })).json();
        t.equal(detail, `There is nothing here; ${hint}`, `${method} ${url}`);
      }
    }
  }
});

t.test('a trailing slash is another address', async (t) => {
  const known = ['/v3/prices', '/health', '/live', '/ready', '/v3/prices/health', '/openapi.json'];
  const markets = MARKETS.flatMap(({ slug }) => [
    `/v3/prices/${slug}`,
    `/v3/prices/${slug}/filters`,
  ]);
  for (const url of [...known, ...markets]) {
    for (const method of ['GET', 'POST']) {
      t.equal((await ask(method, `${url}/`)).statusCode, 404, `${method} ${url}/`);
    }
  }
});

t.test(
  'a body, however broken, large or strange, does not hide that the address is wrong',
  async (t) => {
    const json = { 'content-type': 'application/json' };
    for (const more of [
      { headers: json, payload: '{"filters":' },
      { headers: json, payload: '' },
      { headers: json, payload: 'x'.repeat(200_000) },
      { headers: { 'content-type': 'text/csv' }, payload: 'a,b' },
      { headers: { 'content-type': 'no type' }, payload: 'a,b' },
      { headers: { ...json, 'content-encoding': 'gzip' }, payload: 'x' },
      { headers: { 'x-api-key': 'x', authorization: 'Bearer y' } },
      { headers: { accept: 'text/csv' } },
    ]) {
      const answer = await ask('POST', '/v3/prices/unobtainium', more);
      t.equal(answer.statusCode, 404, JSON.stringify(more).slice(0, 60));
    }
  },
);

t.test('a missing file of the documentation is a problem like any other', async (t) => {
  for (const url of [
    '/docs/static/nothing.js',
    '/docs/static/../../package.json',
    '/docs/nothing',
  ]) {
    const answer = await ask('GET', url);
    t.equal(answer.statusCode, 404, url);
    t.equal(answer.json().code, 'not_found');
    t.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8');
  }
});

t.test('HEAD of no address has the headers of the refusal and no body', async (t) => {
  const answer = await ask('HEAD', '/v3/prices/unobtainium');
  t.same([answer.statusCode, answer.body], [404, '']);
});
