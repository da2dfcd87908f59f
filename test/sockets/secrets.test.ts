import t from 'tap';
import { newKey } from '../../src/auth/key-format.ts';
import { HS256, SECRET } from '../support/auth-app.ts';
import { testDatabase } from '../support/database.ts';
import { sendEverywhere } from '../support/secret-places.ts';
import { exchange, listening, until } from '../support/sockets.ts';
import { goodClaims, secretToken } from '../support/tokens.ts';

const ENV = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
  REQUEST_TIMEOUT_MS: '300',
  HEADERS_TIMEOUT_MS: '200',
};

const HEAD = 'Host: test\r\nConnection: close\r\n';

t.test('no log line has a key or a token, wherever it was sent', async (t) => {
  const database = await testDatabase(t);
  const service = await listening(t, database, ENV);
  const secrets = [service.key, newKey().text, secretToken(goodClaims())];
  for (const secret of secrets) await sendEverywhere(t, service, secret);
  await database.pool.query('alter table api_key rename to gone');
  const { lines } = service;
  // Where a machine stalls, a request may run out of its short time before it could fail.
  await until('failures are in the log as well', async () => {
    for (const secret of secrets) await sendEverywhere(t, service, secret);
    return lines.some((line) => line.includes('"level":50'));
  });
  t.ok(lines.length > 100, 'the log was written');
  // A key begins with its public id, which may be shown; a token has a signature at its end.
  const hidden = [SECRET, ...secrets.map((each) => each.slice(-30))];
  t.same(
    lines.filter((line) => hidden.some((each) => line.includes(each))),
    [],
  );
});

t.test('percent escapes hide no key from what masks it', async (t) => {
  const service = await listening(t, await testDatabase(t));
  const { text } = newKey();
  for (const path of [`%63ps${text.slice(3)}`, text.replaceAll('_', '%5f')]) {
    const answer = await exchange(
      t,
      service.port,
      `GET /v3/prices/${path} HTTP/1.1\r\n${HEAD}\r\n`,
    );
    t.notMatch(JSON.stringify(answer), text.slice(-38), 'the answer');
  }
  t.notMatch(service.lines.join(''), text.slice(-38), 'the log');
});
