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

t.test('no log line and no refusal repeats a secret, whatever was sent wrongly', async (t) => {
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
