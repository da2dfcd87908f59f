import t from 'tap';
import { NO_TOKENS, SECRET } from '../support/auth/auth-app.ts';
import { goodClaims, nowSeconds, secretToken } from '../support/auth/tokens.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { keyFor } from '../support/http/service.ts';
import { exchange, type ListeningService, startListening, until } from '../support/http/sockets.ts';
import { type FeedAnswer, fetchChanges } from '../support/prices/feed-client.ts';

const TOKENS = { ...NO_TOKENS, JWT_SECRET: SECRET, JWT_LEEWAY_SECONDS: 0 };

let database: TestDatabase;
let service: ListeningService;
t.before(async () => {
  database = await testDatabase(t);
  await writeMinimalData(database.pool);
  service = await startListening(t, database, { CHANGES_WAITING_MAX: '10', ...TOKENS });
});

let day = 0;
const publish = (): Promise<number> => {
  day += 1;
  return inRevision(
    database.pool,
    insertOf('series', pointRow({ date: `'2020-01-01'::date + ${day}` })),
  );
};

/** The answer to a waiting key when first the key and then the data change. */
async function answerAfter(statement: string): Promise<FeedAnswer> {
  const key = await keyFor(database, ['prices:nickel', 'prices:copper']);
  const [id] = key.split('_').slice(2);
  const { next } = await fetchChanges(service, '');
  const before = service.lines.length;
  const answer = fetchChanges({ ...service, key }, `after=${next}&market=nickel&wait=25`);
  const isWaiting = () =>
    service.lines.slice(before).some((line) => /"incoming request"/.test(line)) &&
    database.client.link.reportsCommits &&
    database.pool.totalCount === database.pool.idleCount;
  await until('the request waits', isWaiting);
  await database.pool.query(statement.replace('$key', `'${id}'`));
  await publish();
  return answer;
}

t.test('a # and the text after it is ignored, and hides no market and no wait', async (t) => {
  const key = await keyFor(database, ['prices:nickel']);
  const ask = (query: string) => {
    const lines = [`GET /v3/changes?${query} HTTP/1.1`, 'host: x', `x-api-key: ${key}`];
    return exchange(t, service.port, [...lines, 'connection: close', '', ''].join('\r\n'));
  };
  t.match(await ask('market=copper'), { status: 403, json: { code: 'insufficient_scope' } });
  t.match(await ask('market=copper#x'), { status: 403, json: { code: 'insufficient_scope' } });
  t.match(await ask('market=nickel#x'), { status: 200 });
});

t.test('a key that ended while its request waited does not get the answer', async (t) => {
  const ended = {
    api_key_revoked: `update api_key set revoked_at = now(), revoked_reason = 'lost'
      where public_id = $key`,
    api_key_expired: `update api_key set expires_at = created_at + interval '1 microsecond'
      where public_id = $key`,
    invalid_api_key: `with gone as (select id from api_key where public_id = $key),
      scopes as (delete from api_key_scope where api_key_id in (select id from gone))
      delete from api_key where id in (select id from gone)`,
  };
  for (const [code, statement] of Object.entries(ended)) {
    const { status, text, headers } = await answerAfter(statement);
    t.equal(status, 401, code);
    t.match(JSON.parse(text), { code });
    t.ok(headers.get('www-authenticate'));
    t.notOk(headers.get('x-next-seq'));
  }
  t.same(service.failures(), []);
});

t.test('nor does one that lost a market', async (t) => {
  const { status, text } = await answerAfter(`delete from api_key_scope
    where scope = 'prices:nickel'
      and api_key_id = (select id from api_key where public_id = $key)`);
  t.equal(status, 403);
  t.match(JSON.parse(text), { code: 'insufficient_scope', detail: /prices:nickel/ });
});

t.test('a key that still stands gets it', async (t) => {
  const { status, changes } = await answerAfter('select $key');
  t.equal(status, 200);
  t.match(changes, [{ code: 'T-1', operation: 'published' }]);
});

t.test('a token whose time is over when the wait ends is refused', async (t) => {
  const { next } = await fetchChanges(service, '');
  const token = secretToken(goodClaims({ exp: nowSeconds() + 2 }));
  const answer = await fetch(`http://127.0.0.1:${service.port}/v3/changes?wait=3&after=${next}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  t.equal(answer.status, 401);
  t.match(await answer.json(), { code: 'token_expired' });
});
