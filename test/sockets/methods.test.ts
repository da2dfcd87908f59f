import { METHODS } from 'node:http';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { exchange, startListening } from '../support/http/sockets.ts';

/** All methods of Node's parser except CONNECT, which requests a tunnel. */
const ODD = METHODS.filter((each) => !['CONNECT', 'OPTIONS'].includes(each));

const HEAD = 'Host: test\r\nConnection: close\r\n';

const PRICES = 'GET, HEAD, POST, OPTIONS';

/** The paths of the service by the methods that they take. */
const TAKES: readonly [allow: string, ...paths: string[]][] = [
  [PRICES, '/v3/prices/nickel', '/v3/prices/lithium-ion-battery', '/v3/prices/copp%65r'],
  ['GET, HEAD, OPTIONS', '/v3/prices', '/v3/prices/nickel/filters', '/v3/prices/health'],
  [
    'GET, HEAD, OPTIONS',
    '/health',
    '/ready',
    '/live',
    '/openapi.json',
    '/openapi.yaml',
    '/llms.txt',
  ],
  ['GET, HEAD, OPTIONS', '/live?a=b', 'http://test/live', 'http://user:word@test:80/live?a'],
];

t.test('a method that an address does not take is a 405 that names those it does', async (t) => {
  const { port, failures } = await startListening(t, await testDatabase(t));
  for (const [allow, ...paths] of TAKES) {
    for (const path of paths) {
      const taken = allow.split(', ');
      const odd = ODD.filter((each) => !taken.includes(each));
      const methods = path === '/v3/prices/nickel' ? odd : ['DELETE', 'PUT', 'QUERY', 'PROPFIND'];
      for (const method of methods) {
        const answer = await exchange(t, port, `${method} ${path} HTTP/1.1\r\n${HEAD}\r\n`);
        t.match(answer, { status: 405, headers: { allow } }, `${method} ${path}`);
        if (method === 'HEAD') continue;
        t.match(answer.json, { status: 405, code: 'method_not_allowed', requestId: /./ });
        t.notMatch(answer.json.instance, /user|\?/, 'the problem names only the path');
      }
    }
  }
  t.same(failures(), []);
});

t.test('a wrong method or address is reported whatever the body is', async (t) => {
  const { port } = await startListening(t, await testDatabase(t));
  const bodies = [
    'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{x',
    'Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}',
    'Content-Length: 2\r\n\r\n{}',
    'Content-Type: application/json\r\nContent-Length: 0\r\n\r\n',
    'Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n',
  ];
  for (const body of bodies) {
    const wrong = await exchange(t, port, `PUT /v3/prices/nickel HTTP/1.1\r\n${HEAD}${body}`);
    t.equal(wrong.status, 405, body);
    const nowhere = await exchange(t, port, `POST /v3/prices/gold HTTP/1.1\r\n${HEAD}${body}`);
    t.match(nowhere, { status: 404, json: { code: 'not_found' } }, body);
  }
});

t.test('an address is what it is, to the letter', async (t) => {
  const { port } = await startListening(t, await testDatabase(t));
  const strange = ['/v3/prices/nickel/', '/v3/prices/NICKEL', '/v3//prices', '//live', '/live;a=b'];
  const hidden = ['/v3/prices/../../live', '/v3/prices/nickel%2Ffilters', '/V3/prices', '*'];
  for (const path of [...strange, ...hidden, '/v3/prices/__proto__', `/${'a'.repeat(2_000)}`]) {
    const { status, json } = await exchange(t, port, `POST ${path} HTTP/1.1\r\n${HEAD}\r\n`);
    t.match({ status, json }, { status: 404, json: { code: 'not_found' } }, path);
    t.ok(json.instance.length <= 256);
  }
});

t.test('OPTIONS says what an address takes, and asks for no credential', async (t) => {
  const { port } = await startListening(t, await testDatabase(t));
  const answer = await exchange(t, port, `OPTIONS /v3/prices/nickel HTTP/1.1\r\n${HEAD}\r\n`);
  t.match(answer, { status: 204, headers: { allow: PRICES }, body: '' });
  t.equal((await exchange(t, port, `OPTIONS /nowhere HTTP/1.1\r\n${HEAD}\r\n`)).status, 404);
});

t.test('the service is no proxy', async (t) => {
  const { port } = await startListening(t, await testDatabase(t));
  const sent = 'CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\n';
  const { status, headers, json } = await exchange(t, port, sent);
  t.match({ status, code: json.code }, { status: 405, code: 'method_not_allowed' });
  t.equal(headers['allow'], '');
});
