import { Writable } from 'node:stream';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { readAudit } from '../../src/auth/keys/info.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import { loggerOf } from '../../src/process/log.ts';
import { otherSecret } from '../support/auth/key-texts.ts';
import { seededDatabase } from '../support/database/database.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { testConfig } from '../support/http/test-config.ts';

const URL = '/v3/prices/nickel';
const basic = (user: string, password: string) => ({
  'x-api-key': '',
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

let on: Service;
let off: Service;
t.before(async () => {
  const database = await seededDatabase(t);
  on = await serviceOn(t, database, { BASIC_AUTH: 'on' });
  off = await serviceOn(t, database);
});

/** Sends a request without the default key. */
const ask = (
  { app }: Service,
  headers: Record<string, string>,
  method: 'GET' | 'HEAD' | 'POST' = 'GET',
  url = URL,
) => {
  const { 'x-api-key': key, ...rest } = headers;
  return app.inject({
    method,
    url,
    headers: key ? headers : rest,
    ...(method === 'POST' && { payload: {} }),
  });
};

t.test('a key is the password of any user, with GET and HEAD', async (t) => {
  for (const user of ['', 'analyst', 'Jörg']) {
    for (const method of ['GET', 'HEAD'] as const) {
      t.equal((await ask(on, basic(user, on.key), method)).statusCode, 200, user);
    }
  }
});

t.test('POST, and a service where Basic is off, take no password', async (t) => {
  for (const [service, method] of [
    [on, 'POST'],
    [off, 'GET'],
    [off, 'POST'],
  ] as const) {
    const answer = await ask(service, basic('', service.key), method);
    t.equal(answer.statusCode, 401);
    t.equal(answer.json().code, 'invalid_token');
    t.notMatch(answer.headers['www-authenticate'], /Basic/);
    t.notMatch(answer.body, service.key);
  }
});

t.test('a wrong password is refused as a wrong key is, and never shown', async (t) => {
  for (const password of ['cps_live_nothing', 'secret', '', `${on.key}x`]) {
    const answer = await ask(on, basic('me', password));
    t.equal(answer.statusCode, 401);
    t.equal(answer.json().code, 'invalid_api_key');
    if (password) t.notMatch(answer.body, password);
  }
  const both = { ...basic('', on.key), 'x-api-key': on.key };
  t.equal((await ask(on, both)).json().code, 'ambiguous_credentials');
});

t.test('the refusals of a service with Basic say where a key goes', async (t) => {
  const wrong = await ask(on, basic('any', 'wrong'));
  t.equal(wrong.json().code, 'invalid_api_key');
  t.equal(
    wrong.json().detail,
    'The password of Basic is not a key of this service: send an API key as the password, ' +
      'with any user name',
  );
  const asUser = await ask(on, basic(on.key, ''));
  t.equal(asUser.json().detail, wrong.json().detail);
  t.notMatch(asUser.body, on.key);
  const unknown = await ask(on, basic('any', otherSecret(on.key)));
  t.equal(unknown.json().detail, wrong.json().detail);
  t.match((await ask(on, { 'x-api-key': 'wrong' })).json().detail, /^The key in x-api-key is not/);
  for (const [service, method, says] of [
    [on, 'GET', true],
    [on, 'POST', false],
    [off, 'GET', false],
  ] as const) {
    const none = (await ask(service, {}, method)).json();
    t.equal(none.code, 'missing_credentials');
    t.match(none.detail, /^Send an API key in the header x-api-key/);
    t.equal(/as the password of Basic, with any user name/.test(none.detail), says, method);
  }
});

t.test(
  'the challenge goes to spreadsheets and navigations, never to the script of a page',
  async (t) => {
    const challenged = async (service: Service, headers: Record<string, string>) =>
      /Basic realm="prices"/.test(
        String((await ask(service, headers)).headers['www-authenticate']),
      );
    t.ok(await challenged(on, {}));
    t.ok(await challenged(on, basic('', 'wrong')));
    t.ok(await challenged(on, { 'sec-fetch-mode': 'navigate' }));
    for (const mode of ['cors', 'same-origin', 'no-cors', 'websocket']) {
      t.notOk(await challenged(on, { 'sec-fetch-mode': mode }), mode);
    }
    t.notOk(await challenged(on, { 'x-api-key': 'wrong' }), 'plain http has no Sec-Fetch-Mode');
    t.notOk(await challenged(off, {}));
  },
);

t.test('a password and the same key in its header share one rate limit', async (t) => {
  const limits = { BASIC_AUTH: 'on', RATE_PER_MINUTE: '1', RATE_BURST: '2' };
  const service = await serviceOn(t, await seededDatabase(t), limits);
  const password = basic('me', service.key);
  t.match((await ask(service, password)).headers['ratelimit'], /^"default";r=1;/);
  t.match((await ask(service, { 'x-api-key': service.key })).headers['ratelimit'], /r=0;/);
  for (const headers of [password, { 'x-api-key': service.key }]) {
    const refused = await ask(service, headers);
    t.match(refused, { statusCode: 429, headers: { 'retry-after': /^\d+$/ } });
  }
});

t.test('wrong passwords block their network like wrong keys', async (t) => {
  const limits = { BASIC_AUTH: 'on', FAILED_AUTH_PER_MINUTE: '2' };
  const service = await serviceOn(t, await seededDatabase(t), limits);
  t.equal((await ask(service, basic('', 'wrong'))).statusCode, 401);
  t.equal((await ask(service, { 'x-api-key': 'wrong' })).statusCode, 401);
  for (const headers of [basic('', service.key), { 'x-api-key': service.key }]) {
    t.match((await ask(service, headers)).json(), { status: 429, detail: /network/ });
  }
});

t.test('audit and log name the key of a password, and never its secret', async (t) => {
  const { db, client, as } = await roledDatabase(t, { seeded: true });
  const [used, guessed] = await Promise.all(
    ['used', 'guessed'].map((name) =>
      createKey(db, { name, scopes: ['prices:nickel'], expiresAt: null }),
    ),
  );
  if (!used || !guessed) throw new Error('no keys');
  let log = '';
  const destination = new Writable({
    write(chunk, _encoding, done) {
      log += chunk;
      done();
    },
  });
  const app = await buildApp({
    config: testConfig({ BASIC_AUTH: 'on' }),
    client,
    usagePool: as('usage').pool,
    logger: loggerOf('info', destination),
  });
  const wrong = otherSecret(guessed.key);
  const send = async (password: string, url: string): Promise<number> => {
    const { authorization } = basic('me', password);
    return (await app.inject({ url, headers: { authorization } })).statusCode;
  };
  t.equal(await send(used.key, URL), 200);
  t.equal(await send(wrong, URL), 401);
  await app.close();
  const acts = await readAudit(db, { limit: 100 });
  const first = acts.filter(({ action }) => action === 'first-used');
  t.same(
    first.map(({ id }) => id),
    [used.id],
  );
  t.match(log, new RegExp(`"key":"${used.id}"`));
  for (const secret of [used.key, wrong]) {
    t.notOk(log.includes(secret.slice(20)));
    t.notOk(log.includes(Buffer.from(`me:${secret}`).toString('base64')));
  }
});
