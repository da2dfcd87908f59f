import t from 'tap';
import { headAt } from '../../src/db/newest.ts';
import { headOf } from '../../src/db/revisions.ts';
import { administer, type TestDatabase, testDatabase } from '../support/database.ts';
import { lockWaits } from '../support/lock-waits.ts';
import { until } from '../support/sockets.ts';
import { statementsSeen } from '../support/statements-seen.ts';
import { inRevision, inTransaction, writeWorld } from '../support/world.ts';

const worldOf = async (test: Parameters<typeof testDatabase>[0]): Promise<TestDatabase> => {
  const database = await testDatabase(test);
  await writeWorld(database.pool);
  return database;
};

const commit = ({ pool }: TestDatabase, name: string): Promise<number> =>
  inRevision(pool, `update price set name = '${name}'`);

/** The sessions that look; other files have theirs, in databases of their own. */
const SESSIONS = `select pid from pg_stat_activity
  where datname = current_database() and application_name like '%pulse'`;

/** Ends the sessions that look. */
const endLooks = ({ url }: TestDatabase): Promise<void> =>
  administer(url, `select pg_terminate_backend(pid) from (${SESSIONS}) as sessions`);

t.test('a look sees every commit before it, and tells the same head as the tables', async (t) => {
  const database = await worldOf(t);
  const { db, client } = database;
  let committed = 0;
  for (let round = 0; round < 200; round += 1) {
    if (round % 2 === 0) committed = await commit(database, `Round ${round}`);
    const newest = await client.pulse.look();
    if (newest.revision !== String(committed)) t.fail(`round ${round} saw ${newest.revision}`);
    if (round % 20 !== 0) continue;
    for (const scopes of [['nickel'], ['copper'], ['nickel', 'fx:TEST'], ['nowhere']]) {
      t.same(headAt(newest, scopes), await headOf(db, scopes), `${scopes} in round ${round}`);
    }
  }
  t.equal(await client.pulse.look(), await client.pulse.look(), 'nothing new is the same object');
});

t.test('a database without a revision has a head as well', async (t) => {
  const { db, client } = await testDatabase(t);
  t.same(headAt(await client.pulse.look(), ['nickel']), await headOf(db, ['nickel']));
});

t.test('all who ask while a look is under way share one that begins after it', async (t) => {
  const database = await worldOf(t);
  const { pulse } = database.client;
  await pulse.look();
  await until('the connection is there', async () => {
    const { rows } = await database.pool.query(`${SESSIONS} and state = 'idle'`);
    return rows.length === 1;
  });
  await pulse.look();
  const { looks } = pulse.counts;
  // The first look waits at the lock; what is committed meanwhile is not in it for sure.
  const [first, second] = await inTransaction(database.pool, async (client) => {
    await client.query("select open_revision('while a look waits')");
    await client.query("update price set name = 'New'");
    await client.query('lock table service in access exclusive mode');
    const waiting = pulse.look();
    const others = Array.from({ length: 100 }, () => pulse.look());
    return [waiting, Promise.all(others)] as const;
  });
  await first;
  const seen = await second;
  t.equal(new Set(seen).size, 1);
  t.equal(seen[0]?.revision, '2');
  t.equal(pulse.counts.looks - looks, 2);
});

t.test('a look that two servers may have answered begins again', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const seen = statementsSeen(database.pool);
  const looks = (): number => seen.filter((text) => text.includes('keys_version')).length;
  const { pulse } = database.client;
  // The first one has no connection of its own yet, and reads what was touched apart.
  const look = await inTransaction(database.pool, async (client) => {
    await client.query('lock table revision_scope in access exclusive mode');
    const waiting = pulse.look();
    await until('it waits', async () => (await lockWaits(database.pool)) === 1);
    t.equal(looks(), 1);
    pulse.move();
    return { waiting };
  });
  const newest = await look.waiting;
  t.equal(looks(), 2);
  t.equal(newest, await pulse.look(), 'and it is the one that is known');
});

t.test('a look goes on when its connection breaks, and another is made', async (t) => {
  const database = await worldOf(t);
  const { pulse } = database.client;
  const sessions = async () => {
    const { rows } = await database.pool.query(SESSIONS);
    return rows.map(({ pid }) => pid);
  };
  await pulse.look();
  for (let round = 1; round <= 3; round += 1) {
    let pids: number[] = [];
    await until('the connection is there', async () => {
      pids = await sessions();
      await pulse.look();
      return pids.length === 1;
    });
    const committed = await commit(database, `Round ${round}`);
    const [newest] = await Promise.all([pulse.look(), endLooks(database)]);
    t.equal(newest.revision, String(committed));
    t.equal((await pulse.look()).revision, String(committed));
    await until('it is another one', async () => {
      const others = await sessions();
      return others.length === 1 && others[0] !== pids[0];
    });
  }
});

t.test('what was known of another epoch is forgotten, also at a smaller number', async (t) => {
  const database = await worldOf(t);
  const { pool, client } = database;
  await commit(database, 'Two');
  await commit(database, 'Three');
  t.equal((await client.pulse.look()).revision, '3');
  await pool.query("update service set epoch = 'renewed'");
  const renewed = await client.pulse.look();
  t.match(renewed, { epoch: 'renewed', revision: '3' });
  // As after a restore of an older backup: no trigger may notice.
  await inTransaction(pool, async (session) => {
    await session.query('set local session_replication_role = replica');
    for (const table of ['revision_scope', 'change_segment']) {
      await session.query(`delete from ${table} where revision > 1`);
    }
    await session.query('delete from revision where number > 1');
  });
  const restored = await client.pulse.look();
  t.equal(restored.revision, '1');
  t.equal(restored.scopes.get('nickel')?.revision, '1');
});
