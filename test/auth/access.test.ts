import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import t from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import type { Access } from '../../src/http/context.ts';
import { authApp, checkCredentials, HS256, NO_TOKENS } from '../support/auth/auth-app.ts';
import { noDatabase } from '../support/auth/forgery.ts';
import { goodClaims, secretToken } from '../support/auth/tokens.ts';
import { testDatabase } from '../support/database/database.ts';

const CHALLENGE = 'Bearer realm="prices", ApiKey realm="prices"';
const CHALLENGE_ERROR = 'Bearer realm="prices", error="invalid_token", ApiKey realm="prices"';

t.test(
  'without a credential only open routes answer, and the rest says what to send',
  async (t) => {
    const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
    for (const url of ['/nickel', '/copper', '/me']) {
      for (const method of ['GET', 'HEAD', 'POST'] as const) {
        const answer = await app.inject({ method, url });
        t.equal(answer.statusCode, 401, `${method} ${url}`);
        t.equal(answer.headers['www-authenticate'], CHALLENGE);
        if (method !== 'HEAD') t.equal(answer.json().code, 'missing_credentials');
      }
    }
    const open = await app.inject('/open');
    t.equal(open.statusCode, 200);
    t.equal(open.json().principal, null);
    const unknownKey = { 'x-api-key': 'nonsense' };
    t.equal((await app.inject({ url: '/open', headers: unknownKey })).statusCode, 200);
  },
);

t.test('a scope that is missing is a 403 that names it and nothing else', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db, settings: HS256 });
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt: null });
  const token = secretToken(goodClaims({ scope: 'prices:nickel' }));
  for (const headers of [{ 'x-api-key': key }, { authorization: `Bearer ${token}` }]) {
    t.equal((await app.inject({ url: '/nickel', headers })).statusCode, 200);
    t.equal((await app.inject({ url: '/me', headers })).statusCode, 200);
    const answer = await app.inject({ url: '/copper', headers });
    t.equal(answer.statusCode, 403);
    t.equal(answer.json().code, 'insufficient_scope');
    t.match(answer.json().detail, /^The scope prices:copper is needed here: request it from /);
    t.equal(
      answer.headers['www-authenticate'],
      'Bearer error="insufficient_scope", scope="prices:copper"',
    );
    t.notMatch(answer.body, /nickel/);
  }
});

t.test('a refused request learns nothing about its body', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  const nickelOnly = { authorization: `Bearer ${secretToken(goodClaims())}` };
  for (const [type, payload] of [
    ['application/json', '{"broken'],
    ['application/json', 'x'.repeat(2_000_000)],
    ['text/csv', 'a,b'],
  ] as const) {
    const send = (url: string, headers: object) =>
      app.inject({ method: 'POST', url, payload, headers: { ...headers, 'content-type': type } });
    t.equal((await send('/copper', {})).statusCode, 401);
    t.equal((await send('/copper', nickelOnly)).statusCode, 403);
    t.match((await send('/nickel', nickelOnly)).statusCode, /^4(00|13|15)$/);
  }
});

t.test('an Authorization that is not "Bearer <token>" is a 401', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  const token = secretToken(goodClaims());
  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    `Bearer  ${token}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token},`,
    `Bearer "${token}"`,
    `Bearer\t${token}`,
    token,
    `Token ${token}`,
    `Bearer:${token}`,
    'Basic YTpi',
    'Digest username="a"',
    'Negotiate YII=',
    '\u00e9',
  ]) {
    const answer = await app.inject({ url: '/nickel', headers: { authorization } });
    t.equal(answer.statusCode, 401, authorization);
    t.equal(answer.json().code, 'invalid_token', authorization);
    t.equal(answer.headers['www-authenticate'], CHALLENGE_ERROR);
  }
});

t.test(
  'an API key in Authorization is a 401 that names x-api-key, and is not looked up',
  async (t) => {
    const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
    const key = newKey().text;
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const sent = [key, `Bearer ${key}`, `bearer cps_live_mistyped`, `ApiKey ${key}`];
    for (const authorization of [...sent, basic(`${key}:`), basic(`user:${key}`)]) {
      const answer = await app.inject({ url: '/nickel', headers: { authorization } });
      const { code, detail } = answer.json();
      t.same([answer.statusCode, code], [401, 'invalid_token'], authorization);
      t.match(detail, 'send it as x-api-key');
      t.equal(answer.headers['www-authenticate'], CHALLENGE_ERROR);
      t.notOk(answer.body.includes(key));
    }
    const payload = { ...goodClaims(), scope: 'prices:* cps_live_1' };
    const token = secretToken(payload);
    const answer = await app.inject({
      url: '/nickel',
      headers: { authorization: `Bearer ${token}` },
    });
    t.equal(answer.statusCode, 200, 'a token that holds such a text is a token');
  },
);

t.test('a credential in the address or in the body is never read', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db, settings: HS256 });
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const token = secretToken(goodClaims());
  for (const query of [`x-api-key=${key}`, `api_key=${key}`, `access_token=${token}`]) {
    const answer = await app.inject(`/nickel?${query}`);
    t.equal(answer.statusCode, 401, query);
    t.equal(answer.json().code, 'missing_credentials');
    t.notOk(answer.body.includes(key) || answer.body.includes(token), 'nor sent back');
  }
  const headers = { cookie: `token=${token}`, 'x-api-token': key, 'proxy-authorization': key };
  t.equal((await app.inject({ url: '/nickel', headers })).statusCode, 401);
  const payload = { access_token: token };
  const post = await app.inject({ method: 'POST', url: '/nickel', payload });
  t.equal(post.statusCode, 401);
});

/** Sends raw header lines over a real connection; the answer as text. */
async function raw(port: number, lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(
    `GET /nickel HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`,
  );
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk;
  });
  await once(socket, 'close');
  return answer;
}

t.test('two credentials are a 400, also two of a kind, also equal ones', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db, settings: HS256 });
  const { port } = app.server.address() as AddressInfo;
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const keyLine = `x-api-key: ${key}`;
  const tokenLine = `Authorization: Bearer ${secretToken(goodClaims())}`;
  t.match(await raw(port, [keyLine]), /^HTTP\/1.1 200 /);
  t.match(await raw(port, [tokenLine]), /^HTTP\/1.1 200 /);
  for (const lines of [
    [keyLine, tokenLine],
    [tokenLine, keyLine],
    [keyLine, keyLine],
    [keyLine, 'X-API-Key: other'],
    ['X-Api-Key:', keyLine],
    [tokenLine, tokenLine],
    [tokenLine, 'authorization: Basic YTpi'],
    ['AUTHORIZATION:', tokenLine],
    [keyLine, 'Authorization:'],
  ]) {
    const answer = await raw(port, lines);
    t.match(answer, /^HTTP\/1.1 400 /, lines.join(' and '));
    t.match(answer, /"code":"ambiguous_credentials"/);
    t.notMatch(answer, /www-authenticate/i);
  }
});

const build = async (routes: (app: ReturnType<typeof fastify>) => void, before = false) => {
  const app = fastify();
  if (before) routes(app);
  const db = undefined as never;
  await checkCredentials(app, { db, settings: NO_TOKENS });
  if (!before) routes(app);
  await app.ready();
  return app;
};

t.test('a route that does not say who may use it does not register', async (t) => {
  await t.rejects(
    build((app) => app.get('/bare', async () => 'open')),
    /GET \/bare has no access rule/,
  );
  const nested = build((app) => {
    app.register(async (child: FastifyInstance) => child.post('/deep', async () => 'open'), {
      prefix: '/v3',
    });
  });
  await t.rejects(nested, /\/v3\/deep has no access rule/);
});

t.test('a route that was there before the checks fails closed', async (t) => {
  const app = await build((early) => early.get('/early', async () => 'open'), true);
  t.equal((await app.inject('/early')).statusCode, 500);
});

t.test('an unknown address is 404, with or without a credential', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  for (const headers of [{}, { 'x-api-key': 'a' }, { authorization: 'Basic x' }]) {
    t.equal((await app.inject({ url: '/nickel/', headers })).statusCode, 404);
    t.equal((await app.inject({ method: 'DELETE', url: '/nickel', headers })).statusCode, 404);
    t.equal((await app.inject({ url: '/%zz', headers })).statusCode, 400);
  }
});

t.test('the access of a GET route holds for its HEAD', async (t) => {
  const access: Access = { scope: 'prices:copper' };
  const app = await build((each) => each.get('/copper', { config: { access } }, async () => 'x'));
  t.equal((await app.inject({ method: 'HEAD', url: '/copper' })).statusCode, 401);
});
