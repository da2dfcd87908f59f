import { request as httpRequest, METHODS } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
let port: number;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
  await service.app.listen({ port: 0, host: '127.0.0.1' });
  ({ port } = service.app.server.address() as AddressInfo);
});

interface MethodAnswer {
  readonly status: number;
  readonly allow: string | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

/** Over a socket: some methods are nothing that `inject` would send. */
const send = (method: string, path: string, body?: string, type = 'application/json') =>
  new Promise<MethodAnswer>((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) };
    const request = httpRequest({ port, method, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        const { allow, 'content-type': contentType } = response.headers;
        resolve({ status: response.statusCode ?? 0, allow, type: contentType, text });
      });
    });
    request.on('error', reject);
    request.end(body);
  });

const PRICES = 'GET, HEAD, POST, OPTIONS';

/** Addresses and the methods that they take. */
const ADDRESSES: readonly (readonly [string, string])[] = [
  ...MARKETS.map(({ slug }) => [`/v3/prices/${slug}`, PRICES] as const),
  ['/v3/prices/nickel?x=1', PRICES],
  ['/v3/prices/%6Eickel', PRICES],
  ['/v3/prices', 'GET, HEAD, OPTIONS'],
  ['/v3/search', 'GET, HEAD, OPTIONS'],
  ['/v3/calendar', 'GET, HEAD, OPTIONS'],
  ['/v3/prices/nickel/filters', 'GET, HEAD, OPTIONS'],
  ['/health', 'GET, HEAD, OPTIONS'],
  ['/v3/prices/health', 'GET, HEAD, OPTIONS'],
  ['/live', 'GET, HEAD, OPTIONS'],
  ['/ready', 'GET, HEAD, OPTIONS'],
  ['/openapi.json', 'GET, HEAD, OPTIONS'],
  ['/', 'GET, HEAD, OPTIONS'],
];

t.test('a wrong method is a 405 that says which are right, without any credential', async (t) => {
  for (const [path, allow] of ADDRESSES) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']) {
      if (allow.includes(method)) continue;
      const answer = await send(method, path);
      t.equal(answer.status, 405, `${method} ${path}`);
      t.equal(answer.allow, allow, `${method} ${path}`);
      t.equal(answer.type, 'application/problem+json; charset=utf-8');
      if (method === 'HEAD') t.equal(answer.text, '');
      else t.match(JSON.parse(answer.text), { code: 'method_not_allowed', status: 405 });
    }
  }
});

t.test('the refusal lists the methods as a sentence does', async (t) => {
  const { text } = await send('PUT', '/v3/prices/nickel');
  t.equal(JSON.parse(text).detail, 'Use GET, HEAD or POST here');
});

t.test('every method that HTTP has is answered, never with a 5xx', async (t) => {
  for (const method of METHODS) {
    if (['CONNECT', ...PRICES.split(', ')].includes(method)) continue;
    const answer = await send(method, '/v3/prices/nickel');
    t.same([answer.status, answer.allow], [405, PRICES], method);
  }
});

t.test('a body, however broken, does not hide that the method is wrong', async (t) => {
  for (const [body, type] of [
    ['{"filters":', 'application/json'],
    ['', 'application/json'],
    ['a,b', 'text/csv'],
    ['a,b', 'no type'],
    ['x'.repeat(200_000), 'application/json'],
  ] as const) {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY']) {
      const { status } = await send(method, '/v3/prices/nickel', body, type);
      t.equal(status, 405, `${method} ${body.slice(0, 20)} as ${type}`);
    }
  }
});

t.test('OPTIONS says what an address takes', async (t) => {
  for (const [path, allow] of ADDRESSES) {
    const answer = await send('OPTIONS', path);
    t.same([answer.status, answer.allow, answer.text], [204, allow, ''], path);
  }
  t.equal((await send('OPTIONS', '/v3/prices/unobtainium')).status, 404);
});
