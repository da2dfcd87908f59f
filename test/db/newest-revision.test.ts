import t from 'tap';
import { dataRevisionAt } from '../../src/db/newest-revision.ts';
import { numberOf, readDataRevision } from '../../src/db/revisions.ts';
import { administer, type TestDatabase, testDatabase } from '../support/database/database.ts';
import { inRevision, inTransaction, writeMinimalData } from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';

const worldOf = async (test: Parameters<typeof testDatabase>[0]): Promise<TestDatabase> => {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  return database;
};

const commit = ({ pool }: TestDatabase, name: string): Promise<number> =>
  inRevision(pool, `update price set name = '${name}'`);

/** The two sessions of the link, in this test's own database. */
const SESSIONS = `select pid from pg_stat_activity
  where datname = current_database() and application_name like '%link'`;

/** Terminates the sessions of the link. */
const endChecks = ({ url }: TestDatabase): Promise<void> =>
  administer(url, `select pg_terminate_backend(pid) from (${SESSIONS}) as sessions`);

t.test(
  'a revision check sees every earlier commit, and has the same head as the tables',
  async (t) => {
    const database = await worldOf(t);
    const { db, client } = database;
    let committed = 0;
    for (let round = 0; round < 200; round += 1) {
      if (round % 2 === 0) committed = await commit(database, `Round ${round}`);
      const newest = await client.link.newestRevision();
      if (numberOf(newest.revision) !== String(committed))
        t.fail(`round ${round} saw ${newest.revision}`);
      if (round % 20 !== 0) continue;
      for (const scopes of [['nickel'], ['copper'], ['nickel', 'fx:TEST'], ['nowhere']]) {
        t.same(
          dataRevisionAt(newest, scopes),
          await readDataRevision(db, scopes),
          `${scopes} in round ${round}`,
        );
      }
    }
    t.equal(
      await client.link.newestRevision(),
      await client.link.newestRevision(),
      'nothing new is the same object',
    );
  },
);

t.test('a database without a revision has a head as well', async (t) => {
  const { db, client } = await testDatabase(t);
  t.same(
    dataRevisionAt(await client.link.newestRevision(), ['nickel']),
    await readDataRevision(db, ['nickel']),
  );
});

t.test('all requests during a revision check share one that begins after it', async (t) => {
  const database = await worldOf(t);
  const { link } = database.client;
  await link.newestRevision();
  await until('the connections are there', async () => {
    const { rows } = await database.pool.query(`${SESSIONS} and state = 'idle'`);
    return rows.length === 2;
  });
  await link.newestRevision();
  const { checks, requests } = link.counts;
  // The first revision check waits for the lock and may miss commits made meanwhile.
  const [first, second] = await inTransaction(database.pool, async (client) => {
    await client.query("select open_revision('while a check waits')");
    await client.query("update price set name = 'New'");
    await client.query('lock table service in access exclusive mode');
    const waiting = link.newestRevision();
    const others = Array.from({ length: 100 }, () => link.newestRevision());
    return [waiting, Promise.all(others)] as const;
  });
  await first;
  const seen = await second;
  t.equal(new Set(seen).size, 1);
  t.equal(numberOf(seen[0]?.revision ?? ''), '2');
  t.same([link.counts.requests - requests, link.counts.checks - checks], [101, 2]);
});

t.test('a revision check continues on a new connection if its connection breaks', async (t) => {
  const database = await worldOf(t);
  const { link } = database.client;
  const sessions = async () => {
    const { rows } = await database.pool.query(SESSIONS);
    return rows.map(({ pid }) => pid);
  };
  await link.newestRevision();
  for (let round = 1; round <= 3; round += 1) {
    let pids: number[] = [];
    await until('the connections are there', async () => {
      pids = await sessions();
      await link.newestRevision();
      return pids.length === 2;
    });
    const committed = await commit(database, `Round ${round}`);
    const [newest] = await Promise.all([link.newestRevision(), endChecks(database)]);
    t.equal(numberOf(newest.revision), String(committed));
    t.equal(numberOf((await link.newestRevision()).revision), String(committed));
    await until('the sessions are others', async () => {
      const others = await sessions();
      return others.length === 2 && !others.some((pid) => pids.includes(pid));
    });
  }
});

/** Deletes the revisions after one, like a failover to a standby that lacks them. */
const loseAfter = ({ pool }: TestDatabase, number: number): Promise<void> =>
  inTransaction(pool, async (session) => {
    await session.query('set local session_replication_role = replica');
    for (const table of ['revision_scope', 'change_segment']) {
      await session.query(`delete from ${table} where revision > ${number}`);
    }
    await session.query(`delete from revision where number > ${number}`);
  });

t.test('data of another epoch are dropped, also at a smaller number', async (t) => {
  const database = await worldOf(t);
  const { pool, client } = database;
  await commit(database, 'Two');
  await commit(database, 'Three');
  t.equal(numberOf((await client.link.newestRevision()).revision), '3');
  await pool.query("update service set epoch = 'renewed'");
  const renewed = await client.link.newestRevision();
  t.match(renewed, { epoch: 'renewed', revision: /^3\./ });
  await loseAfter(database, 1);
  const restored = await client.link.newestRevision();
  t.match(restored.revision, /^1\./);
  t.match(restored.scopes.get('nickel')?.revision, /^1\./);
});

t.test('a number that comes back with another commit is another revision', async (t) => {
  const database = await worldOf(t);
  const { link } = database.client;
  const copper = inRevision(database.pool, "update price set name = 'Copper' where code = 'T-3'");
  t.equal(await copper, 2);
  const lost = await link.newestRevision();
  await loseAfter(database, 1);
  t.equal(await inRevision(database.pool, "update price set name = 'B' where code = 'T-1'"), 2);
  const same = await link.newestRevision();
  t.not(same.revision, lost.revision);
  t.ok(same.history > lost.history);
  t.match(same.scopes.get('copper')?.revision, /^1\./, 'the lost commit of the scope is gone');
  await loseAfter(database, 1);
  for (const name of ['B again', 'C']) {
    await inRevision(database.pool, `update price set name = '${name}' where code = 'T-1'`);
  }
  const later = await link.newestRevision();
  t.match([later.revision, later.history], [/^3\./, same.history + 1], 'also at a greater number');
  const { history } = await link.newestRevision();
  await commit(database, 'D');
  t.equal((await link.newestRevision()).history, history, 'a later commit continues the history');
});

t.test('a change of keys whose number comes back is another version of the keys', async (t) => {
  const database = await worldOf(t);
  const { link } = database.client;
  const { keysVersion } = await link.newestRevision();
  const change = `insert into api_key (public_id, name, digest)
    values ('0123456789', 'A', sha256('a'))`;
  const versions = new Set([keysVersion]);
  for (let round = 0; round < 2; round += 1) {
    await database.pool.query(change);
    versions.add((await link.newestRevision()).keysVersion);
    await inTransaction(database.pool, async (session) => {
      await session.query('set local session_replication_role = replica');
      await session.query('delete from api_key');
      await session.query('update service set keys_version = keys_version - 1');
    });
  }
  t.equal(versions.size, 3);
});
