import type { KyselyPlugin } from 'kysely';
import t from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { createKey, revokeKey } from '../../src/auth/keys/keys.ts';
import { cachedKeys, digestOf } from '../../src/auth/keys/verify.ts';
import type { Scope } from '../../src/catalog/scopes.ts';
import { authApp } from '../support/auth/auth-app.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';

type Tested = Parameters<typeof testDatabase>[0];

async function withCachedKeys(test: Tested) {
  const database = await testDatabase(test);
  const { db, client } = database;
  const app = await authApp(test, { db, link: client.link });
  const ask = async (key: string) => {
    const answer = await app.inject({ url: '/nickel', headers: { 'x-api-key': key } });
    return [answer.statusCode, answer.json().code];
  };
  const make = (scopes: readonly Scope[], expiresAt: Date | null = null) =>
    createKey(db, { name: 'a', scopes, expiresAt });
  return { database, ask, make };
}

t.test('a key is refused by the first request after its revocation, every time', async (t) => {
  const { database, ask, make } = await withCachedKeys(t);
  let wrong = 0;
  for (let round = 0; round < 150; round += 1) {
    const { id, key } = await make(['prices:nickel']);
    const before = await Promise.all([ask(key), ask(key)]);
    await revokeKey(database.db, id, 'over');
    const after = await Promise.all([ask(key), ask(key)]);
    if (before.some(([status]) => status !== 200)) wrong += 1;
    if (after.some(([, code]) => code !== 'api_key_revoked')) wrong += 1;
  }
  t.equal(wrong, 0);
});

t.test('scopes that are given and taken count at once', async (t) => {
  const { database, ask, make } = await withCachedKeys(t);
  const { id, key } = await make(['prices:copper']);
  const held = `(select id from api_key where public_id = '${id}')`;
  for (let round = 0; round < 50; round += 1) {
    t.same(await ask(key), [403, 'insufficient_scope']);
    await database.pool.query(`insert into api_key_scope values (${held}, 'prices:nickel')`);
    t.same(await ask(key), [200, undefined]);
    await database.pool.query(
      `delete from api_key_scope where api_key_id = ${held} and scope = 'prices:nickel'`,
    );
  }
});

t.test('a cached key expires at its time', async (t) => {
  const { database, ask, make } = await withCachedKeys(t);
  const { id, key } = await make(['prices:nickel'], new Date(Date.now() + 3_600_000));
  t.same(await ask(key), [200, undefined]);
  await database.pool.query(
    `update api_key set created_at = now() - interval '2 days',
       expires_at = now() - interval '1 day' where public_id = '${id}'`,
  );
  t.same(await ask(key), [401, 'api_key_expired']);
});

t.test('a key is not read again before it changes, nor because it was used', async (t) => {
  const { database, ask, make } = await withCachedKeys(t);
  const { id, key } = await make(['prices:nickel']);
  t.same(await ask(key), [200, undefined]);
  // A change that the database does not count, as no real one can be, is not seen.
  await inTransaction(database.pool, async (session) => {
    await session.query('set local session_replication_role = replica');
    await session.query(`update api_key set revoked_at = now(), revoked_reason = 'unseen'
      where public_id = '${id}'`);
  });
  t.same(await ask(key), [200, undefined]);
  await database.pool.query(`select note_used('{${id}}', array[now()])`);
  t.same(await ask(key), [200, undefined]);
  await database.pool.query("update api_key set name = 'renamed'");
  t.same(await ask(key), [401, 'api_key_revoked']);
});

t.test('a secret that is not the key’s is refused, cached or not', async (t) => {
  const { ask, make } = await withCachedKeys(t);
  const [one, other] = [await make(['prices:nickel']), await make(['prices:nickel'])];
  for (const { key } of [one, other]) t.same(await ask(key), [200, undefined]);
  // The id of one with the secret of the other breaks the checksum; an unknown one does not.
  t.same(await ask(one.key.slice(0, 20) + other.key.slice(20)), [401, 'invalid_api_key']);
});

/** Caches keys and counts the database lookups. */
async function counted({ db, client }: TestDatabase) {
  let lookups = 0;
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      lookups += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const keysAt = cachedKeys(db.withPlugin(counting), 10);
  const newest = await client.link.newestRevision();
  const lookupsOf = async (publicId: string, digest: Buffer, times = 1): Promise<number> => {
    const before = lookups;
    const asking = Array.from({ length: times }, () => keysAt(newest, publicId, digest));
    await Promise.all(asking);
    return lookups - before;
  };
  return lookupsOf;
}

t.test('many who come with one key at once look it up once', async (t) => {
  const { database, make } = await withCachedKeys(t);
  const { id, key } = await make(['prices:nickel']);
  const lookupsOf = await counted(database);
  const other = newKey();
  t.equal(await lookupsOf(id, digestOf(key), 20), 1);
  t.equal(await lookupsOf(id, digestOf(other.text), 20), 1);
  t.equal(await lookupsOf(id, digestOf(other.text), 20), 1, 'a lookup that ended is not shared');
  t.equal(await lookupsOf(other.publicId, digestOf(other.text), 20), 1);
});

t.test('a wrong secret of a cached key is looked up as an unknown id is', async (t) => {
  const { database, make } = await withCachedKeys(t);
  const { id, key } = await make(['prices:nickel']);
  const lookupsOf = await counted(database);
  t.equal(await lookupsOf(id, digestOf(key)), 1);
  t.equal(await lookupsOf(id, digestOf(key)), 0, 'the key is cached');
  const other = newKey();
  for (const _ of [1, 2]) {
    t.equal(await lookupsOf(id, digestOf(other.text)), 1);
    t.equal(await lookupsOf(other.publicId, digestOf(other.text)), 1);
  }
});
