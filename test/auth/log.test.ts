import { Writable } from 'node:stream';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { newKey } from '../../src/auth/keys/format.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import { configOf } from '../../src/config/config.ts';
import { loggerOf } from '../../src/process/log.ts';
import { HS256, SECRET } from '../support/auth/auth-app.ts';
import { goodClaims, hmac, secretToken, tokenOf } from '../support/auth/tokens.ts';
import { testDatabase } from '../support/database/database.ts';

type Test = Pick<typeof t, 'teardown'>;

/** An application that trusts tokens, and its log lines. */
async function logged(t: Test) {
  const database = await testDatabase(t);
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const env = {
    JWT_SECRET: SECRET,
    JWT_ISSUER: HS256.JWT_ISSUER,
    JWT_AUDIENCE: HS256.JWT_AUDIENCE,
  };
  const app = await buildApp({
    config: configOf(env),
    client: database.client,
    logger: loggerOf('trace', destination),
  });
  t.teardown(() => app.close());
  return { database, app, lines };
}

t.test('the log line of a refused token has the reason, and never the token', async (t) => {
  const { app, lines } = await logged(t);
  const reasonOf = async (token: string): Promise<string> => {
    lines.length = 0;
    const { headers, body } = await app.inject({
      url: '/v3/me',
      headers: { authorization: `Bearer ${token}` },
    });
    const line = lines.map((each) => JSON.parse(each)).find((each) => each.status === 401);
    const { code, reason } = line;
    t.equal(code, 'invalid_token');
    t.notMatch(body, reason, 'the client is not told');
    t.notMatch(JSON.stringify(headers), reason);
    t.ok(reason.length <= 128, reason);
    t.notMatch(lines.join(''), token.slice(-20));
    return reason;
  };
  t.equal(
    await reasonOf(secretToken(goodClaims({ aud: 'x' }))),
    'aud is not the audience of the service',
  );
  t.equal(await reasonOf(secretToken(goodClaims({ iss: 'x' }))), 'iss is not the trusted issuer');
  t.match(
    await reasonOf(tokenOf({ alg: 'HS256' }, goodClaims(), hmac('x'.repeat(32)))),
    /signature/,
  );
  t.equal(
    await reasonOf('no-token-at-all-but-a-longer-text'),
    'Authorization token is invalid: The token is malformed.',
  );
});

t.test('no log line and no refusal repeats a secret, whatever was sent wrongly', async (t) => {
  const { database, app, lines } = await logged(t);
  const { key } = await createKey(database.db, {
    name: 'canary',
    scopes: ['prices:nickel'],
    expiresAt: null,
  });
  const keys = [key, newKey().text, `${key}x`];
  const tokens = [
    secretToken(goodClaims()),
    secretToken(goodClaims({ exp: 1 })),
    tokenOf({ alg: 'HS256' }, goodClaims(), hmac('x'.repeat(32))),
  ];
  const secrets = [...keys.map((text) => text.slice(20)), ...tokens, SECRET];
  const answers: string[] = [];
  const send = async (url: string, headers: Record<string, string>) => {
    const payload = '{"filters":5}';
    const type = { 'content-type': 'application/json', ...headers };
    answers.push((await app.inject({ method: 'POST', url, headers: type, payload })).body);
  };
  const sendAll = async () => {
    for (const path of ['/v3/prices/nickel', '/v3/prices/copper', '/nowhere']) {
      for (const text of keys) {
        await send(path, { 'x-api-key': text });
        await send(`${path}?x-api-key=${text}&access_token=${tokens[0]}`, { 'x-api-key': text });
        await send(path, { 'x-api-key': text, authorization: `Bearer ${tokens[0]}` });
      }
      for (const token of tokens) await send(path, { authorization: `Bearer ${token}` });
      await send(path, { authorization: `Basic ${key}` });
    }
  };
  await sendAll();
  await database.pool.query('alter table api_key rename to gone');
  await sendAll();
  t.ok(lines.length > 50, 'the log was written');
  t.ok(lines.some((line) => /\/v3\/prices\/nickel/.test(line)));
  const leaks = [...lines, ...answers].filter((text) =>
    secrets.some((each) => text.includes(each)),
  );
  t.same(leaks, []);
});
