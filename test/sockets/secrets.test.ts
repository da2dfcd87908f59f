import t from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { HS256, SECRET } from '../support/auth/auth-app.ts';
import { filtersWith, heldOf, sendEverywhere } from '../support/auth/secret-places.ts';
import { goodClaims, secretToken } from '../support/auth/tokens.ts';
import { testDatabase } from '../support/database/database.ts';
import { exchange, startListening, until } from '../support/http/sockets.ts';

const ENV = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
  REQUEST_TIMEOUT_MS: '300',
  HEADERS_TIMEOUT_MS: '200',
};

t.test('no log line and no answer has a key or a token, wherever it was sent', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, ENV);
  const secrets = [service.key, newKey().text, secretToken(goodClaims())];
  const answers: string[] = [];
  for (const secret of secrets) {
    answers.push(...(await sendEverywhere(t, service, secret)));
    for (const text of filtersWith(secret, service.key)) {
      answers.push(JSON.stringify(await exchange(t, service.port, text)));
    }
  }
  await database.pool.query('alter table api_key rename to gone');
  const { lines } = service;
  // On a stalled machine a request may reach its short deadline before it could fail.
  await until('failures are in the log as well', async () => {
    for (const secret of secrets) await sendEverywhere(t, service, secret);
    return lines.some((line) => line.includes('"level":50'));
  });
  t.ok(lines.length > 100, 'the log was written');
  t.ok(answers.length > 100, 'all of it was answered');
  const outputs = [...lines, ...answers];
  t.same(
    outputs.filter((text) => heldOf([SECRET, ...secrets], text) !== null),
    [],
  );
});
