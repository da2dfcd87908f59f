import type pg from 'pg';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { newKey } from '../../src/auth/keys/format.ts';
import { readAudit } from '../../src/auth/keys/info.ts';
import { createKey, revokeKey } from '../../src/auth/keys/keys.ts';
import { KeyUse } from '../../src/auth/keys/use.ts';
import { configOf } from '../../src/config/config.ts';
import { otherSecret } from '../support/auth/key-texts.ts';
import { testDatabase } from '../support/database/database.ts';
import { type RoledDatabase, roledDatabase } from '../support/database/roles.ts';
import { NO_LIMITS } from '../support/http/no-limits.ts';

type App = Awaited<ReturnType<typeof buildApp>>;
type Db = Parameters<typeof readAudit>[0];

const useOf = (pool: pg.Pool, deniedBurst: number, onFailure: (error: Error) => void) =>
  new KeyUse(pool, { deniedBurst, onUsedFailure: onFailure, onDeniedFailure: onFailure });

const FOREVER = { expiresAt: null };

/** The audit entries of keys without their action, oldest first. */
const actsOf = async (db: Db) =>
  (await readAudit(db, { limit: 100 }))
    .filter(({ action }) => action === 'first-used' || action === 'denied-burst')
    .reverse();

t.test('the audit records the first use of a key, and no later one', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], ...FOREVER });
  await createKey(db, { name: 'never used', scopes: ['prices:*'], ...FOREVER });
  for (const instant of ['2026-03-05T16:10:00Z', '2026-03-05T16:11:00Z', '2026-03-05T16:09:00Z']) {
    const used = useOf(pool, 0, (error) => t.error(error));
    used.recordUse(id, Date.parse(instant));
    await used.close();
  }
  const expected = { action: 'first-used', id, before: null, reason: null };
  const acts = await actsOf(db);
  t.match(acts, [expected]);
  t.equal(acts.length, 1);
  t.equal((await readAudit(db, { limit: 100 })).length, 5, 'use is no change of a key');
  t.match(acts[0]?.after, { last_used_at: /^2026-03-05T16:10:00/ });
  const others = useOf(pool, 0, (error) => t.error(error));
  others.recordUse('nosuchidxx', Date.now());
  await others.close();
  t.same((await pool.query('select public_id from key_use')).rows, [{ public_id: id }]);
});

/** A service that notes bursts of three; what it counted is written when it ends. */
function noting({ client, as }: RoledDatabase): Promise<App> {
  const config = configOf({ ...NO_LIMITS, KEY_DENIED_BURST: '3' });
  return buildApp({ config, client, usagePool: as('usage').pool });
}

/** Asks with each key so often. */
async function ask(app: App, url: string, keys: Readonly<Record<string, number>>): Promise<void> {
  for (const [key, count] of Object.entries(keys)) {
    for (let at = 0; at < count; at += 1) {
      await app.inject({ method: 'POST', url, headers: { 'x-api-key': key }, payload: {} });
    }
  }
}

t.test('the audit records a burst of refusals of a key once an hour', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { db, pool } = database;
  const make = (name: string) => createKey(db, { name, scopes: ['prices:nickel'], ...FOREVER });
  const [guessed, revoked, narrow, quiet] = await Promise.all(
    ['guessed', 'revoked', 'narrow', 'quiet'].map(make),
  );
  if (!guessed || !revoked || !narrow || !quiet) throw new Error('no keys');
  await revokeKey(db, revoked.id, 'left');
  const [unknown, typo] = [newKey().text, `${guessed.key.slice(0, -1)}!`];
  const burst = async (): Promise<void> => {
    const app = await noting(database);
    const guess = otherSecret(guessed.key);
    await ask(app, '/v3/prices/nickel', { [guess]: 2, [otherSecret(guessed.key)]: 2 });
    await ask(app, '/v3/prices/nickel', { [revoked.key]: 3, [unknown]: 9, [typo]: 9 });
    await ask(app, '/v3/prices/nickel', { [quiet.key]: 9, [otherSecret(quiet.key)]: 2 });
    await ask(app, '/v3/prices/copper', { [narrow.key]: 4 });
    const headers = { 'x-api-key': narrow.key };
    const feed = await app.inject({ url: '/v3/changes?market=copper', headers });
    t.equal(feed.statusCode, 403, 'the feed of a market that is not open counts as well');
    await app.close();
  };
  const bursts = async () =>
    (await actsOf(db))
      .filter(({ action }) => action === 'denied-burst')
      .map(({ id, after, reason }) => [id, after, reason]);
  await burst();
  const burstOf = (count: number) => [
    { denied: count },
    `${count} requests were refused within a minute`,
  ];
  const expected = new Map([
    [guessed.id, burstOf(4)],
    [revoked.id, burstOf(3)],
    [narrow.id, burstOf(5)],
  ]);
  const first = await bursts();
  t.same(new Map(first.map(([id, ...rest]) => [id, rest])), expected);
  t.equal(first.length, 3);
  t.match((await actsOf(db)).at(-1)?.actor, /_usage$/, 'by the account that may do this');
  await burst();
  t.equal((await bursts()).length, 3, 'none again within the hour');
  // Simulates that an hour passed; only the owner can, with the trigger disabled.
  await pool.query(`alter table key_audit disable trigger key_audit_frozen;
    update key_audit set at = at - interval '61 minutes' where action = 'denied-burst'`);
  await burst();
  t.equal((await bursts()).length, 6, 'and again after it');
});

t.test('thousands of random ids hide no burst and fill no memory', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], ...FOREVER });
  const denied = useOf(pool, 3, (error) => t.error(error));
  for (let round = 0; round < 3; round += 1) {
    denied.countDenied(id);
    for (let at = 0; at < 9_999; at += 1) denied.countDenied(newKey().publicId);
  }
  await denied.close();
  const acts = await actsOf(db);
  t.match(acts, [{ id, action: 'denied-burst', after: { denied: 3 } }]);
  t.equal(acts.length, 1);
  for (let round = 0; round < 3; round += 1) {
    denied.countDenied(id);
    for (let at = 0; at < 10_000; at += 1) denied.countDenied(newKey().publicId);
  }
  await pool.query(`alter table key_audit disable trigger all; delete from key_audit`);
  await denied.close();
  t.same(await actsOf(db), [], 'one that is refused more rarely is evicted');
});

t.test('a burst that cannot be noted fails nothing but itself', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], ...FOREVER });
  await pool.query('alter function note_denied rename to elsewhere');
  const errors: Error[] = [];
  const denied = useOf(pool, 2, (error) => errors.push(error));
  const burst = async () => {
    for (const _ of [1, 2]) denied.countDenied(id);
    await denied.close();
  };
  await burst();
  t.match(errors, [{ message: /note_denied/ }]);
  await pool.query('alter function elsewhere rename to note_denied');
  await burst();
  t.equal(errors.length, 1);
  const acts = await actsOf(db);
  t.same(
    acts.map((each) => each.after),
    [{ denied: 2 }],
    'lost counts are not reported later',
  );
});
