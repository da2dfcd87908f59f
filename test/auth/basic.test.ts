import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';

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
    t.notOk(await challenged(off, {}));
  },
);
