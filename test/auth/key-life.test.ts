import type pg from 'pg';
import t from 'tap';
import { KeyError, listKeys, readAudit, showKey } from '../../src/auth/keys/info.ts';
import { createKey, revokeKey, rotateKey } from '../../src/auth/keys/keys.ts';
import { KeyUse } from '../../src/auth/keys/use.ts';
import { findKey, type KeyLookup, verifyKey } from '../../src/auth/keys/verify.ts';
import { testDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';

const HOUR_MS = 3_600_000;
/** Writes the last use of keys alone. */
const useOf = (pool: pg.Pool, onFailure: (error: Error) => void): KeyUse =>
  new KeyUse(pool, onFailure);

const inDays = (days: number): Date => new Date(Date.now() + days * 24 * HOUR_MS);

t.test(
  'a rotated key hands on its name, scopes and limits, and works until the grace ends',
  async (t) => {
    const { db } = await testDatabase(t);
    const limits = { perMinute: 30, burst: 3, concurrent: 2 };
    const old = await createKey(db, {
      name: 'desk',
      owner: 'ops',
      scopes: ['prices:nickel'],
      expiresAt: inDays(90),
      limits,
    });
    const replacement = await rotateKey(db, old.id, { graceMs: HOUR_MS, expiresAt: inDays(365) });
    t.match(replacement, {
      name: 'desk',
      owner: 'ops',
      scopes: ['prices:nickel'],
      limits,
      status: 'active',
    });
    t.not(replacement.key, old.key);
    const { expiresAt, replacedBy } = await showKey(db, old.id);
    t.equal(replacedBy, replacement.id);
    const left = Date.parse(String(expiresAt)) - Date.now();
    t.ok(left > HOUR_MS - 60_000 && left <= HOUR_MS, 'an hour is left');
    const find = (id: string) => findKey(db, id);
    t.match(await verifyKey(find, old.key), { id: old.id });
    t.match(await verifyKey(find, replacement.key), { id: replacement.id, limits });
    const atEnd: KeyLookup = async (id) => {
      const record = await findKey(db, id);
      const readAt = { databaseMs: Date.parse(String(expiresAt)), ownMs: performance.now() };
      return record && { ...record, readAt };
    };
    await t.rejects(verifyKey(atEnd, old.key), {
      code: 'api_key_expired',
    });
    await t.rejects(
      rotateKey(db, old.id, { graceMs: 0, expiresAt: null }),
      new RegExp(`already replaced by ${replacement.id}: .*\`keys revoke ${old.id}\``),
    );
  },
);

t.test(
  'a key that is rotated without a word lives as long as the old one was made for',
  async (t) => {
    const { db } = await testDatabase(t);
    const spans = { '30': inDays(30), '90': inDays(90), '365': null };
    for (const [days, expiresAt] of Object.entries(spans)) {
      const old = await createKey(db, { name: days, scopes: ['prices:*'], expiresAt });
      const replacement = await rotateKey(db, old.id, {
        graceMs: HOUR_MS,
        expiresAt: 'same-lifetime',
      });
      const span = Date.parse(String(replacement.expiresAt)) - Date.parse(replacement.createdAt);
      // Slack for the difference between the two clocks and the two statements.
      t.ok(Math.abs(span / (24 * HOUR_MS) - Number(days)) < 0.1, `${days} days`);
    }
  },
);

t.test('grace never lengthens a life, and none ends it at once', async (t) => {
  const { db } = await testDatabase(t);
  const soon = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: inDays(1) });
  await rotateKey(db, soon.id, { graceMs: 48 * HOUR_MS, expiresAt: null });
  t.equal((await showKey(db, soon.id)).expiresAt, soon.expiresAt);
  const gone = await createKey(db, { name: 'b', scopes: ['prices:*'], expiresAt: null });
  await rotateKey(db, gone.id, { graceMs: 0, expiresAt: null });
  t.match(await showKey(db, gone.id), {
    status: 'revoked',
    revokedReason: 'rotated without grace',
  });
  await t.rejects(rotateKey(db, gone.id, { graceMs: 0, expiresAt: null }), KeyError);
  await t.rejects(
    createKey(db, {
      name: 'c',
      scopes: ['prices:*'],
      expiresAt: null,
      limits: { perMinute: 1, burst: null, concurrent: null },
    }),
    /api_key_rate_is_whole/,
  );
});

t.test('a key that is revoked while it is rotated has no replacement', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const revoking = await pool.connect();
  await revoking.query(`begin; update api_key set revoked_at = now(), revoked_reason = 'leaked'`);
  const rotating = rotateKey(db, id, { graceMs: HOUR_MS, expiresAt: null });
  rotating.catch(() => {});
  await until('the rotation waits for the revocation', async () => {
    const { rows } = await pool.query(`select from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`);
    return rows.length > 0;
  });
  await revoking.query('commit');
  revoking.release();
  await t.rejects(rotating, { name: 'KeyError', message: /revoked meanwhile/ });
  t.match(await listKeys(db), [{ id, status: 'revoked', replacedBy: null }]);
  t.equal((await listKeys(db)).length, 1);
});

t.test(
  'every change of a key is recorded, whichever account makes it, and the record cannot be changed',
  async (t) => {
    const { db, pool } = await testDatabase(t);
    const by = { actor: 'anna', reason: 'new desk' };
    const created = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null }, by);
    await revokeKey(db, created.id, 'left', { actor: 'ben' });
    await pool.query(
      `update api_key set expires_at = '2100-01-01' where public_id = '${created.id}'`,
    );
    const events = await readAudit(db, { id: created.id, limit: 10 });
    t.match(
      events.toReversed().map(({ actor, action, reason }) => [actor, action, reason]),
      [
        ['anna', 'created', 'new desk'],
        ['anna', 'changed', 'new desk'],
        ['ben', 'revoked', 'left'],
        [/./, 'expiry-changed', /.*/],
      ],
    );
    const text = JSON.stringify(events);
    t.notMatch(text, created.key);
    t.notMatch(text, 'digest');
    for (const statement of [
      "update key_audit set actor = 'x'",
      'delete from key_audit',
      'truncate key_audit',
      'truncate api_key, api_key_scope cascade',
      'truncate api_key_scope',
      `update api_key set digest = sha256('x') where public_id = '${created.id}'`,
      `update api_key set digest = sha256('x'), name = 'x' where public_id = '${created.id}'`,
      `update api_key set public_id = 'BBBBBBBBBB' where public_id = '${created.id}'`,
    ]) {
      await t.rejects(pool.query(statement), /refused|never changes/, statement);
    }
    t.equal((await readAudit(db, { limit: 10 })).length, 4, 'a refused change is not recorded');
    await pool.query('delete from api_key_scope');
    await pool.query('delete from api_key');
    t.match(await readAudit(db, { limit: 2 }), [
      { action: 'deleted', id: created.id, before: { name: 'a' }, after: null },
      { action: 'changed', id: created.id, before: { scope: 'prices:*' }, after: null },
    ]);
  },
);

t.test('the last use of a key is written to the minute, and only ever grows', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const use = async (instant: string) => {
    const used = useOf(pool, (error) => t.error(error));
    used.recordUse(id, Date.parse(instant));
    await used.close();
    return (await showKey(db, id)).lastUsedAt;
  };
  t.equal(await use('2026-03-05T16:10:59.999Z'), '2026-03-05T16:10:00Z');
  t.equal(await use('2026-03-05T16:09:00Z'), '2026-03-05T16:10:00Z');
  t.equal(await use('2026-03-05T16:11:00Z'), '2026-03-05T16:11:00Z');
});

t.test('a use that could not be written is reported, and written later', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const errors: Error[] = [];
  const failing = Object.assign(Object.create(pool), {
    query: (...args: Parameters<typeof pool.query>) =>
      errors.length === 0 ? Promise.reject(new Error('no database')) : pool.query(...args),
  });
  const used = useOf(failing, (error) => errors.push(error));
  used.recordUse(id, Date.parse('2026-03-05T16:10:00Z'));
  await used.close();
  t.equal(errors.length, 1);
  await used.close();
  t.equal((await showKey(db, id)).lastUsedAt, '2026-03-05T16:10:00Z');
});
