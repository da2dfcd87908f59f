import { createHash } from 'node:crypto';
import t from 'tap';
import { KeyError, listKeys, showKey } from '../../src/auth/keys/info.ts';
import { createKey, revokeKey } from '../../src/auth/keys/keys.ts';
import { UnknownScopeError } from '../../src/catalog/scopes.ts';
import { testDatabase } from '../support/database/database.ts';

const inDays = (days: number): Date => new Date(Date.now() + days * 86_400_000);

t.test('a made key can be shown again, all but its text', async (t) => {
  const { db } = await testDatabase(t);
  const { key, ...info } = await createKey(db, {
    name: 'Trading desk',
    owner: 'ops@example.test',
    scopes: ['prices:nickel', 'prices:copper', 'prices:nickel'],
    expiresAt: inDays(365),
  });
  t.ok(key.startsWith(`cps_live_${info.id}_`));
  t.same(info.scopes, ['prices:copper', 'prices:nickel']);
  t.equal(info.status, 'active');
  t.match(info.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  t.same(await showKey(db, info.id), info);
  const endless = await createKey(db, { name: 'b', scopes: ['prices:*'], expiresAt: null });
  t.equal(endless.expiresAt, null);
  t.equal(endless.owner, null);
  t.same(
    (await listKeys(db)).map((each) => each.id),
    [info.id, endless.id],
  );
});

t.test('the database holds the SHA-256 of a key and nothing of its secret', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { key, id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const { rows } = await pool.query('select digest from api_key where public_id = $1', [id]);
  t.equal(rows[0].digest.toString('hex'), createHash('sha256').update(key).digest('hex'));
  const secret = key.slice(20, 52);
  const { rows: all } = await pool.query(
    `select k::text from api_key k union all select s::text from api_key_scope s`,
  );
  t.equal(all.filter((row) => row.k.includes(secret)).length, 0);
});

t.test('a scope that does not exist is refused with the nearest one', async (t) => {
  const { db } = await testDatabase(t);
  const refusal = async (scope: string): Promise<string> => {
    const creation = createKey(db, {
      name: 'a',
      scopes: ['prices:copper', scope],
      expiresAt: null,
    });
    return creation.then(
      () => 'was made',
      (error) => (error instanceof UnknownScopeError ? error.message : String(error)),
    );
  };
  for (const near of ['prices:nikel', 'PRICES:NICKEL', 'prices:nickel ', 'nickel']) {
    t.equal(await refusal(near), `"${near}" is not a scope; did you mean "prices:nickel"?`);
  }
  t.match(await refusal('admin'), /"admin" is not a scope; the scopes are prices:lithium, /);
  for (const none of ['prices', 'prices:', '', 'prices:n*', '*']) {
    t.match(await refusal(none), /is not a scope/);
  }
  t.same(await listKeys(db), []);
});

t.test('a key needs a name, a scope, and an expiry that is still to come', async (t) => {
  const { db } = await testDatabase(t);
  const good = { name: 'a', scopes: ['prices:*'], expiresAt: null };
  for (const bad of [
    { ...good, name: ' ' },
    { ...good, name: 'x'.repeat(201) },
    { ...good, name: 'two\nlines' },
    { ...good, owner: '' },
    { ...good, scopes: [] },
    { ...good, expiresAt: inDays(-1) },
    { ...good, expiresAt: new Date('never') },
  ]) {
    await t.rejects(createKey(db, bad), KeyError, JSON.stringify(bad));
  }
  t.same(await listKeys(db), []);
});

t.test('a key is revoked once, for good, with a reason', async (t) => {
  const { db } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  await t.rejects(revokeKey(db, id, ' '), /the reason must not be empty/);
  const revoked = await revokeKey(db, id, 'left the company');
  t.equal(revoked.status, 'revoked');
  t.equal(revoked.revokedReason, 'left the company');
  t.type(revoked.revokedAt, 'string');
  t.same(await revokeKey(db, id, 'again'), revoked, 'the first revocation stays');
});

t.test('an unknown key is named as such, and a whole key never shows in a message', async (t) => {
  const { db } = await testDatabase(t);
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  await t.rejects(showKey(db, 'AAAAAAAAAA'), /there is no key with the id AAAAAAAAAA/);
  await t.rejects(revokeKey(db, 'AAAAAAAAAA', 'x'), KeyError);
  const error = await showKey(db, key).catch((caught) => caught);
  t.type(error, KeyError);
  t.notOk(error.message.includes(key.slice(20)), 'the secret is not repeated');
});
