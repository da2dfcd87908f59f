import { sql } from 'kysely';
import t from 'tap';
import { type Client, type ClientOptions, openClient } from '../../src/db/client.ts';
import { problemOf } from '../../src/http/problems.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { failureOf } from '../support/database/minimal-data.ts';
import { tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { until } from '../support/http/sockets.ts';

type Test = Parameters<typeof testDatabase>[0];

/** Reads as the account of the service does, over two connections. */
function reader(test: Test, url: string, more: Partial<ClientOptions> = {}): Client {
  const address = new URL(url);
  address.searchParams.set('options', '-c client_connection_check_interval=200ms');
  const client = openClient({
    url: address.href,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: true,
    applicationName: 'reader',
    ...more,
  });
  test.teardown(() => client.close());
  return client;
}

/** The running statements of the reader. */
async function running({ pool }: TestDatabase): Promise<readonly string[]> {
  const { rows } = await pool.query(`select query from pg_stat_activity
    where datname = current_database() and application_name = 'reader' and state = 'active'`);
  return rows.map(({ query }) => query);
}

const LONG = sql`select pg_sleep(1000)`;
const LONG_COPY = 'copy (select pg_sleep(1000)) to stdout';

async function whole(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk.toString();
  return text;
}

for (const [kind, begin] of [
  ['a query', ({ reads }: Client, signal: AbortSignal) => LONG.execute(reads.db(signal))],
  ['a COPY', ({ reads }: Client, signal: AbortSignal) => reads.copy(LONG_COPY, whole, signal)],
] as const) {
  t.test(`${kind} whose reader leaves ends in the database, and its connection`, async (t) => {
    const database = await testDatabase(t);
    const client = reader(t, database.url);
    const leaving = new AbortController();
    const reading = failureOf(begin(client, leaving.signal));
    await until('the statement runs', async () => (await running(database)).length === 1);
    leaving.abort(new Error('the reader left'));
    t.match(await reading, { message: 'the reader left' });
    await until('the database has ended it', async () => (await running(database)).length === 0);
    await until('the pool has lost it', async () => client.pool.totalCount === 0);
    t.equal(client.reads.slots.inUse, 0);
    await sql`select 1`.execute(client.reads.db());
    t.equal(client.pool.totalCount, 1, 'the next one has a connection of its own');
  });
}

t.test('a connection is reused after an error that the server reported', async (t) => {
  const database = await testDatabase(t);
  const client = reader(t, database.url);
  const pid = async () => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
      client.reads.db(),
    );
    return rows[0]?.pid;
  };
  const first = await pid();
  const cancelled = async (work: Promise<unknown>) => {
    const failure = failureOf(work);
    await until('the statement runs', async () => (await running(database)).length === 1);
    await database.pool.query(`select pg_cancel_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'reader'`);
    return failure;
  };
  t.match(await cancelled(LONG.execute(client.reads.db())), { code: '57014' });
  t.match(await failureOf(sql`select 1 / 0`.execute(client.reads.db())), { code: '22012' });
  t.equal(await pid(), first);
  t.match(await cancelled(client.reads.copy(LONG_COPY, whole)), { code: '57014' });
  t.not(await pid(), first, 'but not after half of a COPY');
});

/** A reader with both of its connections busy, or one, until `end` is called. */
async function busyReader(
  test: Test,
  more: Partial<ClientOptions>,
  which: readonly number[] = [1, 2],
) {
  const database = await testDatabase(test);
  const client = reader(test, database.url, more);
  const ending = new AbortController();
  const busy = which.map(() => failureOf(LONG.execute(client.reads.db(ending.signal))));
  const count = which.length;
  await until('all run', async () => (await running(database)).length === count);
  const end = async (): Promise<void> => {
    ending.abort();
    await Promise.all(busy);
  };
  return { client, end };
}

t.test('a statement fails as busy if every connection is busy; a COPY waits', async (t) => {
  const { client, end } = await busyReader(t, { waitMs: 50 });
  let isOver = false;
  const copy = client.reads.copy('copy (select 1) to stdout', whole).finally(() => {
    isOver = true;
  });
  const refused = failureOf(sql`select 1`.execute(client.reads.db()));
  const expected = { code: 'overloaded', headers: { 'retry-after': /^[1-5]$/ } };
  t.match(problemOf(await refused), expected);
  t.notOk(isOver, 'the answer that it is for may have begun');
  await end();
  t.equal(await copy, '1\n');
});

t.test(
  'requests with an answered statement may always wait, and have priority; others are limited',
  async (t) => {
    const { client, end } = await busyReader(t, { waitMs: 600_000, waitingMax: 1 }, [1]);
    const [begun, fresh] = [new AbortController().signal, new AbortController().signal];
    await client.reads.query({ text: 'select 1' }, begun);
    const more = new AbortController();
    const holding = failureOf(LONG.execute(client.reads.db(more.signal)));
    await until('both are busy', () => client.reads.slots.inUse === 2);
    const order: string[] = [];
    const first = client.reads.query({ text: 'select 1' }, fresh);
    await until('one waits', () => client.reads.slots.waiting === 1);
    const tooMany = await failureOf(client.reads.query({ text: 'select 1' }, fresh));
    t.match(tooMany, { reason: 'busy' }, 'as many as may wait do so already');
    const asks = [
      ['new', first],
      ['points', client.reads.copy('copy (select 1) to stdout', whole, begun)],
      ['begun', client.reads.query({ text: 'select 1' }, begun)],
    ] as const;
    const all = asks.map(([name, asked]) => asked.then(() => order.push(name)));
    await until('all wait', () => client.reads.slots.waiting === 3);
    more.abort();
    await Promise.all([holding, ...all]);
    t.same(order, ['begun', 'new', 'points']);
    await end();
  },
);

for (const [when, last] of [
  ['go ahead of those of one until the backlog of an interruption is gone', 'own'],
  ['wait like those of one at other times', 'shared too'],
] as const) {
  t.test(`statements that several requests share ${when}`, async (t) => {
    const one = { connectionsMax: 1, waitMs: 600_000, waitingMax: 3 };
    const { client, end } = await busyReader(t, one, [1]);
    if (last === 'own') {
      client.link.queues.pause();
      client.link.queues.recover(new Promise(() => {}));
      client.link.queues.resume();
    }
    const order: string[] = [];
    const asks = [
      ['own', client.reads.query({ text: 'select 1' }, new AbortController().signal)],
      ['shared', client.reads.query({ text: 'select 1' })],
      ['shared too', client.reads.query({ text: 'select 1' })],
    ] as const;
    const all = asks.map(([name, asked]) => asked.then(() => order.push(name)));
    await until('all wait', () => client.reads.slots.waiting === 3);
    await end();
    await Promise.all(all);
    t.equal(order.at(-1), last);
  });
}

t.test(
  'the first statement of a request is refused in time, also if it reads points',
  async (t) => {
    const { client, end } = await busyReader(t, { waitMs: 50 });
    const { signal } = new AbortController();
    const copy = failureOf(client.reads.copy('copy (select 1) to stdout', whole, signal));
    const rows = failureOf(client.reads.query({ text: 'select 1' }, signal, true));
    t.match(await copy, { reason: 'busy' });
    t.match(await rows, { reason: 'busy' });
    await end();
  },
);

t.test('points that wait as long as it takes leave room for others to wait', async (t) => {
  const { client, end } = await busyReader(t, { waitMs: 600_000, waitingMax: 1 });
  const points = [1, 2, 3].map(() => client.reads.copy('copy (select 1) to stdout', whole));
  await until('the points wait', () => client.reads.slots.waiting === 3);
  for (const _ of [1, 2]) {
    const leaving = new AbortController();
    const other = client.reads.query({ text: 'select 1' }, leaving.signal);
    await until('another waits', () => client.reads.slots.waiting === 4);
    const { signal } = new AbortController();
    const tooMany = failureOf(client.reads.query({ text: 'select 1' }, signal));
    t.match(await tooMany, { reason: 'busy' }, 'one more does not');
    leaving.abort(new Error('the reader left'));
    t.match(await failureOf(other), { message: 'the reader left' });
  }
  await end();
  t.same(await Promise.all(points), ['1\n', '1\n', '1\n']);
});

t.test('a request aborted while every connection is busy takes none', async (t) => {
  const { client, end } = await busyReader(t, { waitMs: 600_000 });
  const leaving = new AbortController();
  const waiting = failureOf(client.reads.query({ text: 'select 1' }, leaving.signal));
  await until('the statement waits', () => client.reads.slots.waiting === 1);
  leaving.abort(new Error('the reader left'));
  t.match(await waiting, { message: 'the reader left' });
  t.same([client.reads.slots.inUse, client.reads.slots.waiting], [2, 0]);
  await end();
  t.same(await client.reads.query({ text: 'select 1 as one' }), [{ one: 1 }]);
});

t.test(
  'a database that does not respond delays no request beyond the statement timeout',
  async (t) => {
    const database = await testDatabase(t);
    const proxy = await tcpProxyTo(t, database.url);
    const client = reader(t, proxy.url, { statementTimeoutMs: 100 });
    const answers = (): Promise<boolean> =>
      client.reads.query({ text: 'select 1' }).then(
        () => true,
        () => false,
      );
    await until('the database answers', answers);
    proxy.freeze();
    t.match(await failureOf(client.reads.query({ text: 'select 1' })), { code: 'ETIMEDOUT' });
    t.equal(client.pool.totalCount, 0);
    proxy.cut(false);
    await until('the database answers again', answers);
  },
);

t.test('a reader who left long ago asks nothing', async (t) => {
  const database = await testDatabase(t);
  const client = reader(t, database.url);
  const gone = AbortSignal.abort(new Error('the reader left'));
  const copy = client.reads.copy('nonsense', whole, gone);
  for (const asking of [copy, LONG.execute(client.reads.db(gone))]) {
    t.match(await failureOf(asking), { message: 'the reader left' });
  }
  t.equal(client.pool.totalCount, 0);
});

t.test('a statement that runs again is prepared once in its connection', async (t) => {
  const database = await testDatabase(t);
  const { reads } = reader(t, database.url, { connectionsMax: 1 });
  const prepared = async (): Promise<readonly object[]> => {
    const rows = await reads.query<{ runs: number; name: string }>({
      text: `select generic_plans + custom_plans as runs, name from pg_prepared_statements
        where statement like 'select % + $1::int as sum'`,
    });
    return rows;
  };
  const add = async (one: number, other: number): Promise<number | undefined> => {
    const { signal } = new AbortController();
    const sum = sql<{ sum: number }>`select ${sql.lit(one)} + ${other}::int as sum`;
    return (await sum.execute(reads.db(signal))).rows[0]?.sum;
  };
  t.equal(await add(1, 1), 2);
  t.same(await prepared(), [], 'one that ran once is not');
  t.equal(await add(1, 2), 3);
  t.equal(await add(1, 3), 4);
  const [statement, ...others] = await prepared();
  t.match(statement, { runs: '2' });
  t.same(others, []);
  for (let one = 2; one <= 100; one += 1) {
    t.equal(await add(one, 1), one + 1);
    t.equal(await add(one, 2), one + 2);
  }
  const all = await prepared();
  t.ok(all.length > 50 && all.length <= 64, `${all.length} are prepared at most`);
});
