import t from 'tap';
import { openClient } from '../../src/db/client.ts';
import { type Notices, noticesOf } from '../../src/db/link/notices.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { until } from '../support/sockets.ts';
import { wireTo } from '../support/tcp-proxy.ts';
import { inRevision, insertOf, pointRow, writeWorld } from '../support/world.ts';

const HEARTBEAT_MS = 50;
/** Longer than a machine stalls: a line that lives is not given up because of that. */
const LONG_MS = 60_000;

interface Heard {
  readonly notices: Notices;
  readonly told: (string | null)[];
  readonly errors: string[];
}

type Test = Pick<typeof t, 'teardown'>;

/** Notices through an address, and what they told. */
function listen(test: Test, url: string, timeoutMs = LONG_MS, answerMs = LONG_MS): Heard {
  const errors: string[] = [];
  const notices = noticesOf({
    connection: () => ({
      connectionString: url,
      connectionTimeoutMillis: timeoutMs,
      application_name: 'ear',
    }),
    onError: ({ message }) => errors.push(message),
    heartbeatMs: HEARTBEAT_MS,
    answerMs,
  });
  test.teardown(() => notices.close());
  const told: (string | null)[] = [];
  notices.onNotice('news', (payload) => told.push(payload));
  return { notices, told, errors };
}

const send = ({ pool }: TestDatabase, payload: string, channel = 'news') =>
  pool.query('select pg_notify($1, $2)', [channel, payload]);

const ears = async ({ pool }: TestDatabase): Promise<number> => {
  const { rows } = await pool.query(`select count(*)::int as ears from pg_stat_activity
    where datname = current_database() and application_name in ('ear', 'a test notices')`);
  return rows[0].ears;
};

t.test('notices of a channel are heard in order, until one listens no more', async (t) => {
  const database = await testDatabase(t);
  const { notices, told } = listen(t, database.url);
  t.notOk(notices.isHeard('news'), 'the connection is made in the background');
  await until('it listens', () => notices.isHeard('news'));
  t.same(told, [null], 'what was sent before may have been missed');
  const others: (string | null)[] = [];
  const stop = notices.onNotice('Other "news"', (payload) => others.push(payload));
  await until('it listens to both', () => notices.isHeard('Other "news"'));
  for (const payload of ['a', 'b', 'c']) await send(database, payload);
  await send(database, 'd', 'Other "news"');
  await until('all has come', () => told.length === 4 && others.length === 2);
  t.same(told, [null, 'a', 'b', 'c']);
  t.same(others, [null, 'd']);
  stop();
  await send(database, 'e', 'Other "news"');
  await send(database, 'f');
  await until('the last has come', () => told.includes('f'));
  t.same(others, [null, 'd']);
  t.equal(await ears(database), 1, 'over one connection');
});

t.test('a connection that the server ends is made again, and all are told', async (t) => {
  const database = await testDatabase(t);
  const { notices, told, errors } = listen(t, database.url);
  await until('it listens', () => notices.isHeard('news'));
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'ear'`,
  );
  await until('it listens again', () => told.length === 3 && notices.isHeard('news'));
  t.same(told, [null, null, null], 'once when it was lost, once when it was made');
  t.equal(errors.length, 1);
  t.match(errors[0], 'terminat');
  await send(database, 'again');
  await until('the next is heard', () => told.at(-1) === 'again');
});

t.test('a statement is answered over the connection that hears, or not at all', async (t) => {
  const database = await testDatabase(t);
  const { notices, told, errors } = listen(t, database.url);
  const who = () =>
    notices.ask<{ pid: number; name: string }>({
      name: 'who',
      text: "select pg_backend_pid() as pid, current_setting('application_name') as name",
      values: [],
    });
  t.equal(await who(), null, 'the connection is not there yet');
  await until('it listens', () => notices.isHeard('news'));
  const [all, refused] = await Promise.all([
    Promise.all([who(), who(), who()]),
    notices.ask({ text: 'select 1 / 0' }),
  ]);
  t.same(all, [all[0], all[0], all[0]], 'several at once, one after the other');
  t.equal(all[0]?.[0]?.name, 'ear');
  t.equal(refused, null);
  t.same(errors, [], 'a statement that is refused says nothing against the connection');
  await send(database, 'still');
  await until('it still hears', () => told.includes('still'));
  const ended = notices.ask({ text: 'select pg_terminate_backend(pg_backend_pid())' });
  t.equal(await ended, null);
  t.equal(await who(), null, 'the connection is lost');
  await until('it listens again', () => notices.isHeard('news'));
  t.not((await who())?.[0]?.pid, all[0]?.[0]?.pid);
});

t.test('a database that is down at the start is waited for, and complained of once', async (t) => {
  const database = await testDatabase(t);
  const wire = await wireTo(t, database.url);
  wire.cut(true);
  const { notices, told, errors } = listen(t, wire.url);
  await until('it has tried some times', () => told.length > 3);
  t.notOk(notices.isHeard('news'));
  t.equal(errors.length, 1);
  wire.cut(false);
  await until('it listens', () => notices.isHeard('news'));
  await send(database, 'up');
  await until('the first is heard', () => told.at(-1) === 'up');
});

t.test('a line that has gone dead without a word is found out', async (t) => {
  const database = await testDatabase(t);
  const wire = await wireTo(t, database.url);
  // What is begun while the line is dead ends with its time.
  const { notices, told, errors } = listen(t, wire.url, 2_000, 2_000);
  await until('it listens', () => notices.isHeard('news'));
  wire.freeze();
  await until('the silence is noticed', () => !notices.isHeard('news'));
  // Where a machine stalls, it may have been silent before.
  t.same([...new Set(errors)], ['Query read timeout']);
  wire.cut(false);
  await until('it listens again', () => notices.isHeard('news'));
  await send(database, 'alive');
  await until('the next is heard', () => told.at(-1) === 'alive');
});

t.test('a line that lives is not given up, and a listener that fails harms no other', async (t) => {
  const database = await testDatabase(t);
  const { notices, told, errors } = listen(t, database.url);
  notices.onNotice('news', (payload) => {
    if (payload !== null) throw new Error(`no use for ${payload}`);
  });
  const second: (string | null)[] = [];
  notices.onNotice('news', (payload) => second.push(payload));
  await until('it listens', () => notices.isHeard('news'));
  const { rows } = await database.pool.query(
    `select pid from pg_stat_activity
      where datname = current_database() and application_name = 'ear'`,
  );
  const last = `select query_start > $1 as later, pid from pg_stat_activity
    where datname = current_database() and application_name = 'ear' and query = 'select 1'`;
  const beats = async () => (await database.pool.query(last, [new Date(Date.now() - 20)])).rows;
  await until('the heart has beaten', async () => (await beats())[0]?.later === true);
  t.same((await beats())[0]?.pid, rows[0].pid, 'on the same connection');
  await send(database, 'x');
  await until('both were told', () => told.includes('x') && second.includes('x'));
  t.same(errors, ['no use for x']);
});

t.test(
  'nobody listens, no connection: before the first, after the last, once closed',
  async (t) => {
    const database = await testDatabase(t);
    const client = openClient({
      url: database.url,
      connectionsMax: 1,
      acquireTimeoutMs: LONG_MS,
      statementTimeoutMs: 0,
      readOnly: true,
      applicationName: 'a test',
    });
    t.teardown(() => client.close());
    const { notices } = client;
    t.equal(await ears(database), 0);
    const heard: (string | null)[] = [];
    const stop = notices.onNotice('revision', (payload) => heard.push(payload));
    await until('it listens', () => notices.isHeard('revision'));
    await writeWorld(database.pool);
    await inRevision(database.pool, insertOf('series', pointRow()));
    await until('the commits are heard', () => heard.length === 3);
    t.same(heard, [null, '1', '2']);
    stop();
    await until('the connection is gone', async () => (await ears(database)) === 0);
    notices.onNotice('revision', () => {});
    await until('it listens again', () => notices.isHeard('revision'));
    t.equal(await ears(database), 1);
    await client.close();
    await until('the connection is gone for good', async () => (await ears(database)) === 0);
    notices.onNotice('revision', () => {});
    t.notOk(notices.isHeard('revision'));
  },
);
