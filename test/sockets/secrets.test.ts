import t from 'tap';
import { newKey } from '../../src/auth/key-format.ts';
import { HS256, SECRET } from '../support/auth-app.ts';
import { testDatabase } from '../support/database.ts';
import { Caller, exchange, type Listening, listening, until } from '../support/sockets.ts';
import { goodClaims, secretToken } from '../support/tokens.ts';

const ENV = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
  REQUEST_TIMEOUT_MS: '300',
  HEADERS_TIMEOUT_MS: '200',
};

const HEAD = 'Host: test\r\nConnection: close\r\n';

/** Places of a request that somebody may put a secret into, right ones and wrong ones. */
const placesOf = (secret: string): string[] => [
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: Bearer ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: Basic ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n` +
    `Authorization: Bearer ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Cookie: key=${secret}\r\nAccept: ${secret}\r\n\r\n`,
  `GET /v3/prices?x-api-key=${secret}&access_token=${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /live?key=${secret}#${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-request-id: ${secret}\r\n\r\n`,
  `GET /v3/prices/${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /${secret}/v3/prices/%zz HTTP/1.1\r\n${HEAD}\r\n`,
  `GET http://user:${secret}@test/v3/prices HTTP/1.1\r\n${HEAD}\r\n`,
  `GET http://${secret}@test/nowhere HTTP/1.1\r\n${HEAD}\r\n`,
  `${secret} /live HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /live ${secret}\r\n${HEAD}\r\n`,
  `GET /live HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\u0001\r\n\r\n`,
  `GET /live HTTP/1.1\r\n${HEAD}x-api-key: ${secret}${'a'.repeat(20_000)}\r\n\r\n`,
  `GET /live?${secret}${'a'.repeat(9_000)} HTTP/1.1\r\n${HEAD}\r\n`,
  `CONNECT ${secret}:443 HTTP/1.1\r\nHost: ${secret}\r\n\r\n`,
  `POST /v3/prices/nickel HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n` +
    `Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n{"filters":{"${secret}":1`,
  `GET /live HTTP/1.1\r\nHost: test\r\nx-api-key: ${secret}\r\n`,
];

/** A request that is answered, whose body has the secret where a filter should be. */
const bodyOf = (secret: string, key: string): string => {
  const json = JSON.stringify({ filters: { [secret]: [secret], regions: [secret] } });
  return (
    `POST /v3/prices/nickel HTTP/1.1\r\n${HEAD}x-api-key: ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  );
};

async function sendEverywhere(
  t: Parameters<typeof listening>[0],
  service: Listening,
  secret: string,
) {
  const { port, key } = service;
  await Promise.all(
    [...placesOf(secret), bodyOf(secret, key)].map((text) => exchange(t, port, text)),
  );
  // Somebody who leaves in the midst of it.
  const leaver = new Caller(t, port);
  leaver.socket.write(bodyOf(secret, key).slice(0, -5));
  await until('it was sent', () => leaver.socket.bytesWritten > 0);
  leaver.socket.destroy();
}

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
