import t from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { createKey, revokeKey } from '../../src/auth/keys/keys.ts';
import { authApp, REQUEST_ID } from '../support/auth/auth-app.ts';
import { noDatabase } from '../support/auth/forgery.ts';
import { otherSecret } from '../support/auth/key-texts.ts';
import { testDatabase } from '../support/database/database.ts';

type App = Awaited<ReturnType<typeof authApp>>;

const get = (app: App, key: string, url = '/nickel') =>
  app.inject({ url, headers: { 'x-api-key': key, 'x-request-id': REQUEST_ID } });

t.test('a key opens what its scopes name, until it expires', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db });
  const expiresAt = new Date('2199-01-01T00:00:00Z');
  const created = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt });
  const answer = await get(app, created.key);
  t.equal(answer.statusCode, 200);
  t.same(answer.json().principal, {
    kind: 'key',
    id: created.id,
    scopes: ['prices:nickel'],
    expiresAt: '2199-01-01T00:00:00Z',
    limits: null,
  });
});

t.test(
  'an unknown id, a wrong secret and a bad checksum get one answer, to the byte',
  async (t) => {
    const { db } = await testDatabase(t);
    const app = await authApp(t, { db });
    const { key, id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
    const expired = await createKey(db, { name: 'b', scopes: ['prices:*'], expiresAt: null });
    await db
      .updateTable('api_key')
      .set({ revoked_at: '2026-01-01T00:00:00Z', revoked_reason: 'x' })
      .where('public_id', '=', expired.id)
      .execute();
    const typo = `${key.slice(0, 30)}${key[30] === 'a' ? 'b' : 'a'}${key.slice(31)}`;
    const bad = {
      'an unknown id': newKey().text,
      'a wrong secret': otherSecret(key),
      'a wrong secret of a revoked key': otherSecret(expired.key),
      'a bad checksum': typo,
      'the public id alone': id,
      'an empty key': '',
      'a word': 'hello',
    };
    const answers = new Set<string>();
    for (const [what, text] of Object.entries(bad)) {
      const answer = await get(app, text);
      t.equal(answer.statusCode, 401, what);
      const { date, ...headers } = answer.headers;
      answers.add(JSON.stringify([headers, answer.body]));
    }
    t.equal(answers.size, 1);
    const answer = await get(app, newKey().text);
    t.equal(answer.json().code, 'invalid_api_key');
    t.equal(
      answer.headers['www-authenticate'],
      'Bearer realm="prices", error="invalid_token", ApiKey realm="prices"',
    );
  },
);

t.test('the expiry of a key is reported only to a client that knows its secret', async (t) => {
  const { db, pool } = await testDatabase(t);
  const app = await authApp(t, { db });
  const { key, id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  await pool.query(`update api_key
    set created_at = now() - interval '2 days', expires_at = now() - interval '1 second'`);
  const answer = await get(app, key);
  t.equal(answer.statusCode, 401);
  t.equal(answer.json().code, 'api_key_expired');
  t.match(
    answer.json().detail,
    new RegExp(`^The API key ${id} expired at 2\\d{3}-.*: request a new one from the operator$`),
  );
  t.match(answer.headers['www-authenticate'], /^Bearer realm="prices", error="invalid_token", /);
  t.equal((await get(app, otherSecret(key))).json().code, 'invalid_api_key');
  await pool.query(`update api_key set expires_at = 'infinity'`);
  t.equal((await get(app, key)).json().principal.expiresAt, null);
});

t.test('a revoked key stops at the next request', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db });
  const { key, id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  t.equal((await get(app, key)).statusCode, 200);
  await revokeKey(db, id, 'lost');
  const answer = await get(app, key);
  t.equal(answer.statusCode, 401);
  t.equal(answer.json().code, 'api_key_revoked');
  t.match(answer.json().detail, /was revoked: request a new one from the operator$/);
  t.notMatch(answer.body, /lost/, 'the reason is for the operator');
  t.equal((await get(app, otherSecret(key))).json().code, 'invalid_api_key');
});

t.test('a database that fails is a 503 that says when to come back, never a 401', async (t) => {
  const { db } = await testDatabase(t);
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const app = await authApp(t, { db: noDatabase(t) });
  const answer = await get(app, key);
  t.equal(answer.statusCode, 503);
  t.equal(answer.json().code, 'auth_unavailable');
  t.match(answer.headers['retry-after'], /^[1-5]$/);
  t.equal(answer.headers['www-authenticate'], undefined);
  const typo = await get(app, `${key}x`);
  t.equal(typo.statusCode, 401, 'requests without the database are still answered');
  t.equal((await app.inject('/nickel')).statusCode, 401);
});

t.test('a database without the table is a 503 too', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  await pool.query('alter table api_key rename to gone');
  const app = await authApp(t, { db });
  const answer = await get(app, key);
  t.equal(answer.statusCode, 503);
  t.notMatch(answer.body, /api_key"|relation|select/);
});
