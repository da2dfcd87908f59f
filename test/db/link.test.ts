import { readFileSync } from 'node:fs';
import pg from 'pg';
import t from 'tap';
import { type Client, type ClientOptions, openClient } from '../../src/db/client.ts';
import type { LinkState } from '../../src/db/link/link.ts';
import { ReplicationMonitor } from '../../src/db/link/replication.ts';
import { numberOf } from '../../src/db/revisions.ts';
import { problemOf } from '../../src/http/problems.ts';
import { type Cluster, ownCluster } from '../support/database/cluster.ts';
import { failureOf, inRevision, inTransaction } from '../support/database/minimal-data.ts';
import { cutOff, standbyOf } from '../support/database/standby.ts';
import { tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { until } from '../support/http/sockets.ts';
import { sendSignal } from '../support/process/signals.ts';

type Test = Pick<typeof t, 'teardown' | 'ok' | 'same' | 'equal'>;

/** The table in the docstring of the link: `state: event` and the next state. */
const TABLE: ReadonlyMap<string, string> = new Map(
  [
    ...readFileSync(new URL('../../src/db/link/link.ts', import.meta.url), 'utf8').matchAll(
      /^ \* \| (up|away|down) \| ([^|]+) \| (up|away|down) \|/gm,
    ),
  ].map(([, state, event, next = '']) => [`${state}: ${event}`, next]),
);

const walked = new Set<string>();

/** However slow the machine is, it is no outage. */
const PATIENT = { silenceMs: 20_000, awayMs: 60_000 };

interface LinkChange {
  readonly from: LinkState;
  readonly to: LinkState;
  readonly atMs: number;
}

/** A client and the reports of its link. */
interface Linked {
  readonly client: Client;
  readonly changes: LinkChange[];
  readonly commits: (string | null)[];
  /** Changes of the state that were walked. */
  seen: number;
}

function linked(test: Test, url: string, more: Partial<ClientOptions> = {}): Linked {
  const changes: LinkChange[] = [];
  const client = openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
    readOnly: true,
    applicationName: 'linked',
    onChange: (to, from) => changes.push({ from, to, atMs: performance.now() }),
    ...PATIENT,
    ...more,
  });
  test.teardown(() => client.close());
  const commits: (string | null)[] = [];
  return { client, changes, commits, seen: 0 };
}

/** Starts the checks and notifications of the link. */
async function begin({ client, commits }: Linked): Promise<void> {
  client.link.onCommit((payload) => commits.push(payload));
  await client.link.firstCheck;
  await until('the link listens', () => client.link.reportsCommits);
}

/** Triggers the transition of a table row and waits for the next state. */
async function walk(
  test: Test,
  here: Linked,
  row: string,
  cause: () => unknown = () => {},
): Promise<void> {
  const [from] = row.split(':');
  const next = TABLE.get(row);
  test.ok(next, `the table has a row ${row}`);
  const { changes } = here;
  await cause();
  if (next === from) {
    test.same(changes.slice(here.seen), [], `${row}: the state stays`);
  } else {
    const at = () => changes.findIndex((each, index) => index >= here.seen && each.to === next);
    await until(`${row}: ${next}`, () => at() >= 0);
    test.equal(changes[at()]?.from, from);
    here.seen = at() + 1;
  }
  walked.add(row);
}

const commit = (writer: Cluster, name: string): Promise<number> =>
  writer.using(({ pool }) =>
    inRevision(pool, `update price set name = '${name}' where code = 'CP-NI-0001'`),
  );

const later = (ms: number): Promise<void> => {
  const begun = performance.now();
  return until('time passes', () => performance.now() - begun > ms);
};

const first = await ownCluster(t);
const second = await standbyOf(t, first);

t.test('the link to a server that stays', async (t) => {
  const here = linked(t, first.url, { connectionsMax: 1 });
  const { client, commits } = here;
  const pidOf = async () => (await client.reads.query({ text: 'select pg_backend_pid()' }))[0];
  await walk(t, here, 'up: first check', () => begin(here));
  t.equal((await first.sessions('linked link')).length, 2, 'two connections beside the pool');
  await walk(t, here, 'up: commit on a primary', async () => {
    const number = await commit(first, 'Told');
    await until('the commit is reported', () => commits.includes(String(number)));
  });
  const [session] = await first.sessions('linked link');
  const pool = await pidOf();
  const { epoch } = client.link;
  commits.length = 0;
  await walk(t, here, 'up: connection ends, server answers', async () => {
    await first.query(`select pg_terminate_backend(${session})`);
    await until('the link listens again', () => commits.length >= 2 && client.link.reportsCommits);
  });
  t.same(commits, [null, null], 'once when it was lost, once when it was made');
  t.not((await first.sessions('linked link'))[0], session);
  t.same([await pidOf(), client.link.epoch], [pool, epoch], 'the pool stays');
});

t.test('a revision check that waits for a lock is no silence', async (t) => {
  const here = linked(t, first.url, { silenceMs: 1_000 });
  const { link } = here.client;
  await begin(here);
  const { check } = await first.using(({ pool }) =>
    inTransaction(pool, async (client) => {
      await client.query('lock table service in access exclusive mode');
      const check = link.newestRevision();
      await walk(t, here, 'up: revision check is slow, server answers', () => later(2_500));
      return { check };
    }),
  );
  t.ok(await check);
});

t.test('a session of the link that stands still', async (t) => {
  const here = linked(t, first.url, { silenceMs: 1_000, acquireTimeoutMs: 5_000 });
  const { client } = here;
  await begin(here);
  const [session = 0] = await first.sessions('linked link');
  const { epoch } = client.link;
  sendSignal(session, 'SIGSTOP');
  try {
    await walk(t, here, 'up: only this session times out', () =>
      until('another is made', async () => {
        await client.reads.query({ text: 'select 1' });
        return (await first.sessions('linked link')).some((pid) => pid !== session);
      }),
    );
  } finally {
    sendSignal(session, 'SIGCONT');
  }
  t.equal(client.link.epoch, epoch, 'the pool stays');
});

t.test('connections that the network forgets while the server answers on new ones', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  const here = linked(t, proxy.url, { silenceMs: 1_000, awayMs: 10_000 });
  const { link, reads } = here.client;
  await begin(here);
  await reads.query({ text: 'select 1' });
  const { epoch } = link;
  await walk(t, here, 'up: answers are lost, server answers on a new connection', async () => {
    proxy.freeze();
    const lost = [link.newestRevision(), reads.query({ text: 'select 1' })];
    proxy.thaw();
    const begun = performance.now();
    await Promise.all(lost);
    t.ok(performance.now() - begun < 15_000, 'no request waits for the timeout of its answer');
  });
  t.equal(link.epoch, epoch + 1, 'the connections of the pool are replaced');
});

t.test('a connection that is cut', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  const here = linked(t, proxy.url);
  const { client, commits } = here;
  await begin(here);
  await walk(t, here, 'up: connection ends, server refuses', () => proxy.cut(true));
  t.ok(client.link.queues.isAway);
  const waiting = Promise.all([
    client.reads.query({ text: 'select 1' }),
    client.link.newestRevision(),
  ]);
  const { epoch } = client.link;
  commits.length = 0;
  await walk(t, here, 'away: server answers', () => proxy.cut(false));
  await waiting;
  t.equal(client.link.epoch, epoch + 1);
  await until('the link listens again', () => client.link.reportsCommits);
  t.ok(commits.includes(null), 'commits may have been missed');
  t.equal(client.link.counts.outages, 0);
});

/** Stops a server for as long as work takes. */
async function whileStopped(server: Cluster, work: () => Promise<void>): Promise<void> {
  const pids = await server.processes();
  for (const pid of pids) sendSignal(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    for (const pid of pids) sendSignal(pid, 'SIGCONT');
  }
}

t.test('a server that stands still', async (t) => {
  const here = linked(t, first.url, { silenceMs: 500, awayMs: 1_500 });
  const { client } = here;
  await begin(here);
  await until('the link is up before the silence', () => client.link.state === 'up');
  here.seen = here.changes.length;
  await whileStopped(first, async () => {
    await walk(t, here, 'up: server times out');
    const waiting = [client.reads.query({ text: 'select 1' }), client.link.newestRevision()].map(
      failureOf,
    );
    await walk(t, here, 'away: `awayMs` passed');
    for (const each of await Promise.all(waiting)) t.match(each, { reason: 'unavailable' });
    const expected = { code: 'database_unavailable', headers: { 'retry-after': /^[1-5]$/ } };
    t.match(problemOf(await failureOf(client.reads.query({ text: 'select 1' }))), expected);
    t.match(problemOf(await failureOf(client.link.newestRevision())), expected);
    t.equal(client.link.counts.outages, 1);
  });
  await walk(t, here, 'down: server answers');
  t.same(await client.reads.query({ text: 'select 1 as one' }), [{ one: 1 }]);
  t.ok(await client.link.newestRevision());
});

t.test('the time of a silent database counts from the unanswered question', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  const here = linked(t, proxy.url, { silenceMs: 1_000, awayMs: 1_000 });
  await begin(here);
  proxy.freeze();
  await until('the link is down', () => here.client.link.state === 'down');
  const [away, down] = here.changes.slice(-2);
  t.same([away?.to, down?.to], ['away', 'down']);
  t.ok((down?.atMs ?? 0) - (away?.atMs ?? 0) < 500, 'the silence is part of it');
});

t.test('the cause of a refusal is the last error of the database', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  const here = linked(t, proxy.url, { silenceMs: 500, awayMs: 2_000 });
  const { link } = here.client;
  await begin(here);
  proxy.freeze();
  await until('the link is away', () => link.state === 'away');
  proxy.cut(true);
  await until('the link is down', () => link.state === 'down');
  const refusals = new Set<unknown>();
  for (let count = 0; count < 200; count += 1) {
    try {
      link.check();
    } catch (error) {
      const problem = problemOf(error);
      t.match(problem, { code: 'database_unavailable', cause: { message: /terminated/ } });
      refusals.add(problem.headers['retry-after']);
    }
  }
  t.same([...refusals].toSorted(), ['1', '2', '3', '4', '5'], 'they do not come back together');
});

t.test('a listener that throws harms no other', async (t) => {
  const errors: string[] = [];
  const here = linked(t, first.url, { onError: ({ message }) => errors.push(message) });
  const { link } = here.client;
  const stop = link.onCommit((payload) => {
    if (payload !== null) throw new Error(`no use for ${payload}`);
  });
  await begin(here);
  const number = await commit(first, 'For both');
  await until('the commit is reported', () => here.commits.includes(String(number)));
  t.same(errors, [`no use for ${number}`]);
  stop();
  const next = await commit(first, 'For one');
  await until('the commit is reported', () => here.commits.includes(String(next)));
  t.equal(errors.length, 1, 'one that has ended is not called');
});

t.test('a standby', async (t) => {
  const here = linked(t, second.url);
  const { link } = here.client;
  await begin(here);
  await link.newestRevision();
  here.commits.length = 0;
  await walk(t, here, 'up: commit on a standby', async () => {
    await commit(first, 'Read from a standby');
    await until('the commit is reported', () => here.commits.length > 0);
  });
  await second.query('select pg_wal_replay_pause()');
  await commit(first, 'Not replayed');
  await until('the lag grows', () => link.lagMs > 1_000);
  t.same(here.changes, [], 'a standby that is behind is up');
  await second.query('select pg_wal_replay_resume()');
  await until('it has caught up', () => link.lagMs < 500);
});

t.test('a standby that receives more slowly than its primary writes is behind', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  const { rows } = await second.query('show primary_conninfo');
  const direct: string = rows[0].primary_conninfo;
  const slow = direct.replace(/port=\d+/, `port=${new URL(proxy.url).port}`);
  const { link } = linked(t, second.url).client;
  link.start();
  await link.firstCheck;
  await cutOff(first, second);
  // Small records: replay cannot pass a part of one.
  await first.query(
    `select count(pg_logical_emit_message(true, 'test', repeat('x', 4000)))
     from generate_series(1, 1000)`,
  );
  proxy.set({ bytesPerSecond: 500_000 });
  await second.query(`alter system set primary_conninfo = '${slow}'`);
  await second.query('select pg_reload_conf()');
  await until('it receives', async () => {
    const { rows: receivers } = await second.query('select from pg_stat_wal_receiver');
    return receivers.length > 0;
  });
  await later(3_000);
  t.ok(link.lagMs > 1_500, 'although it has replayed nearly all that it has received');
  proxy.set({});
  await until('it has caught up', () => link.lagMs < 500);
  await second.query(`alter system set primary_conninfo = '${direct}'`);
  await second.query('select pg_reload_conf()');
  await until('it receives', async () => {
    const { rows: found } = await second.query('select conninfo from pg_stat_wal_receiver');
    return found.some(({ conninfo }) => !conninfo.includes(new URL(proxy.url).port));
  });
});

t.test('a standby does not wait for WAL that no server has any more', async (t) => {
  const client = new pg.Client(second.url);
  await client.connect();
  t.teardown(() => client.end());
  // The position that an earlier primary had named before it failed.
  const query = (text: string, [mark]: readonly unknown[]) =>
    client.query(text, [mark === null ? null : 'FF/0']);
  const monitor = new ReplicationMonitor();
  for (let count = 0; count < 3; count += 1) {
    const sentMs = performance.now();
    const { isStandby, currentAsOfMs } = await monitor.check({ query } as pg.Client);
    t.ok(isStandby && currentAsOfMs >= sentMs);
  }
});

t.test('a standby that lacks commits takes the address, and is promoted', async (t) => {
  const proxy = await tcpProxyTo(t, first.url);
  await cutOff(first, second);
  const here = linked(t, proxy.url, { awayMs: 4_000 });
  const { link } = here.client;
  await begin(here);
  const lost = await commit(first, 'Lost');
  const known = await link.newestRevision();
  t.equal(numberOf(known.revision), String(lost));
  const alone = linked(t, second.url);
  await begin(alone);
  await alone.client.link.newestRevision();
  proxy.redirectTo(second.url);
  await until('the link is back', () => link.state === 'up' && link.isStandby);
  const found = await link.newestRevision();
  t.same([found.order, found.history], [known.order + 1, known.history + 1]);
  await walk(t, alone, 'up: standby promoted', async () => {
    alone.commits.length = 0;
    await second.query('select pg_promote()');
    await until('the link listens', () => alone.commits.includes(null));
    t.ok(alone.client.link.queues.isCatchingUp, 'its slow start is no overload');
    const number = await commit(second, 'Written after a promotion');
    await until('the commit is reported', () => alone.commits.includes(String(number)));
  });
});

t.test('every row of the table was walked', async (t) => {
  t.ok(TABLE.size > 0);
  t.same([...walked].toSorted(), [...TABLE.keys()].toSorted());
});
