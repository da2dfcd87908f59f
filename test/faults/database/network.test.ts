import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { ownCluster } from '../../support/database/cluster.ts';
import { type TcpProxy, tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { earlyRefusals } from '../../support/http/early-refusals.ts';
import { counted, poolAtRest, type Watched, WITH_METRICS } from '../../support/http/metrics.ts';
import {
  OWN_TIMES,
  type ServiceProcess,
  startServiceProcess,
} from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { failedOf, within } from '../../support/process/figures.ts';
import {
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  openLoad,
  quantile,
  send,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

/** Requests with points, which no cache holds: every answer needs the database. */
const ASKS: readonly HttpRequest[] = [
  {
    path: '/v3/prices/nickel',
    body:
      '{"filters":{"codes":["CP-NI-0001"],"dateFrom":"2026-06-25"},' +
      '"options":{"includeSeries":true}}',
  },
  {
    path: '/v3/prices/copper',
    body: '{"filters":{"dateFrom":"2026-06-25"},"options":{"includeSeries":true}}',
  },
];
const CODES = ['database_unavailable', 'auth_unavailable', 'overloaded', 'query_timeout'];

const cluster = await ownCluster(t, { max_connections: '40' });

async function wired(
  test: Test,
  env: Record<string, string> = {},
): Promise<{ proxy: TcpProxy; service: ServiceProcess }> {
  const proxy = await tcpProxyTo(test, cluster.url);
  const service = await cluster.using((database) =>
    startServiceProcess(
      test,
      { ...database, url: proxy.url },
      { ...OWN_TIMES, PRICE_BOOK_BYTES: '0', ...env },
    ),
  );
  await until('the service answers', () => answers(service));
  return { proxy, service };
}

const answers = async (service: ServiceProcess): Promise<boolean> =>
  (await send(false, service, ASKS[0] as HttpRequest)).status === 200;

/** Asserts the rules of all answers; returns the number of requests without an answer. */
function tolerable(test: Test, all: readonly HttpAnswer[]): number {
  test.same(unacceptable(all), []);
  const failed = all.filter(({ status }) => status !== 200);
  test.same(
    [...new Set(failed.map(codeOf))].filter((code) => !CODES.includes(String(code))),
    [],
  );
  return failed.length;
}

/** Waits until the service uses all its connections concurrently. */
async function whole(service: ServiceProcess): Promise<number> {
  const begun = performance.now();
  const each = (): Promise<void> => until('all connections are there', () => answers(service));
  await Promise.all(Array.from({ length: 8 }, each));
  const ready = (): Promise<HttpAnswer> => send(false, service, { path: '/ready' });
  await until('the service is ready', async () => (await ready()).status === 200);
  return performance.now() - begun;
}

fault(
  'F5c',
  'a connection to the database that transmits nothing for 60 s',
  '503 or 504 within 10 s, no hang; the pool is complete ≤ 15 s afterwards',
  async (t) => {
    const { proxy, service } = await wired(t);
    const load = openLoad(t, service, ASKS, byLength(20, 100));
    await until('requests are answered', () => load.answers.length >= 20);
    proxy.freeze();
    await until('a request gets 503', () => load.answers.some(({ status }) => status === 503));
    t.equal((await send(false, service, { path: '/live' })).status, 200);
    await pause(byLength(500, 60_000));
    proxy.thaw();
    const back = await whole(service);
    const all = await load.stop();
    const failed = tolerable(t, all);
    return {
      requests: all.length,
      '503 and 504': failed,
      longest: within(quantile(all, 1), 10_000),
      'pool complete after': within(back, 15_000),
    };
  },
);

/** State that must return to its baseline once the load has stopped. */
const IN_USE: readonly Watched[] = [
  { name: 'prices_statements_running', labels: {} },
  { name: 'prices_statements_waiting', labels: {} },
  { name: 'prices_requests_running', labels: {} },
  { name: 'prices_requests_waiting', labels: {} },
];

/** Runs a load for a minimum time and until some requests were answered and some rejected. */
async function paced(test: Test, service: ServiceProcess, rate: number, needs: readonly number[]) {
  const load = openLoad(test, service, ASKS, rate);
  await pause(byLength(1_000, 15_000, 200_000));
  const all = (): boolean =>
    needs.every((status) => load.answers.some((each) => each.status === status));
  await until(`there are ${needs}`, all);
  const answers = await load.stop();
  const good = answers.filter(({ status }) => status === 200);
  return { answers, p99: quantile(good, 0.99) };
}

fault(
  'F6',
  'a slow connection to the database: 200 ms each way, 64 kB a second',
  'slow answers or 503; p99 of successful answers grows no more than the load; excess load is ' +
    'shed with 503 overloaded; no connection leaks: 0 in use afterwards',
  async (t) => {
    const { proxy, service } = await wired(t, WITH_METRICS);
    proxy.set({ latencyMs: 200, bytesPerSecond: 65_536, sliceBytes: 1_400 });
    const half = await paced(t, service, 5, [200]);
    const full = await paced(t, service, 10, [200]);
    const more = await paced(t, service, 40, [200, 503]);
    const all = [half, full, more].flatMap(({ answers }) => answers);
    const failed = tolerable(t, all);
    const shed = all.filter((each) => codeOf(each) === 'overloaded').length;
    t.ok(shed > 0, 'excess load is shed');
    const inUse = async (): Promise<number> => {
      const each = await Promise.all(IN_USE.map((watched) => counted(service, watched)));
      return each.reduce((sum, count) => sum + count, 0);
    };
    await until('nothing is in use', async () => (await inUse()) === 0);
    proxy.set({});
    const back = await whole(service);
    const pool = await poolAtRest(service);
    t.ok(pool.all <= 8, 'the pool is no larger than it was');
    return {
      requests: all.length,
      '503 and 504': failed,
      'of them overloaded': shed,
      'p99 at 5 a second': `${Math.round(half.p99)} ms`,
      'p99 at 10 a second': within(full.p99 / half.p99, 2, '×'),
      'p99 at 40 a second': within(more.p99 / half.p99, 8, '×'),
      'in use afterwards': within(pool.inUse, 0, 'connections'),
      'pool complete after': within(back, 15_000),
    };
  },
);

fault(
  'F5b',
  'a connection that resets, half-closes and fragments its bytes',
  '0 × 500; answers as before once the connection works again',
  async (t) => {
    const { proxy, service } = await wired(t);
    proxy.set({ sliceBytes: 7 });
    await until('bytes may come in any pieces', () => answers(service));
    proxy.set({});
    const load = openLoad(t, service, ASKS, 20);
    for (let round = 0; round < byLength(3, 20); round += 1) {
      const seen = load.answers.length;
      await until('requests are answered', () => load.answers.length >= seen + 20);
      if (round % 2 === 0) proxy.reset();
      else proxy.halfClose();
      await whole(service);
    }
    const all = await load.stop();
    t.same(earlyRefusals(all, service.running.stderr()), [], 'transient failures are retried');
    return { requests: all.length, failed: failedOf(tolerable(t, all)) };
  },
);

/** Opens connections until the server has none left. */
async function fill(test: Test): Promise<pg.Client[]> {
  const taken: pg.Client[] = [];
  for (;;) {
    const client = new pg.Client({ connectionString: cluster.url });
    client.on('error', () => {});
    test.teardown(() => client.end().catch(() => {}));
    try {
      await client.connect();
      taken.push(client);
    } catch (error) {
      test.equal((error as { code?: string }).code, '53300');
      return taken;
    }
  }
}

/** Terminates the sessions of the service. */
const END_SESSIONS = `select pg_terminate_backend(pid) from pg_stat_activity
  where application_name like 'commodity-prices%'`;

/** Takes all connections of the server, including those of the service, which then reconnects. */
async function takeAll(test: Test): Promise<pg.Client[]> {
  const taken = await fill(test);
  await until('the service has none', async () => {
    const ended = await taken[0]?.query(END_SESSIONS);
    const more = await Promise.all(Array.from({ length: 4 }, () => fill(test)));
    taken.push(...more.flat());
    return ended?.rowCount === 0;
  });
  return taken;
}

/** The number of log lines of the most frequent cause; each rejection logs its error. */
function causesIn(log: string): number {
  const whole = log.slice(0, log.lastIndexOf('\n') + 1).split('\n');
  const lines = whole.filter((line) => /^\{.*"err":/.test(line)).map((line) => JSON.parse(line));
  const kinds = Map.groupBy(lines, ({ code, err }) => `${code} ${err.message}`);
  return Math.max(0, ...[...kinds.values()].map(({ length }) => length));
}

fault(
  'F8',
  'every connection of the server used by other clients',
  'only 503 with Retry-After; the log reports each cause at most once a second; answers as ' +
    'soon as connections are free',
  async (t) => {
    const { service } = await wired(t);
    const load = openLoad(t, service, ASKS, byLength(20, 50));
    const [begun, before] = [performance.now(), service.running.stderr().length];
    const taken = await takeAll(t);
    const refused = (): HttpAnswer[] =>
      load.answers.filter((each) => /_unavailable$/.test(codeOf(each) ?? ''));
    const log = (): string => service.running.stderr().slice(before);
    await until('60 requests are refused', () => refused().length >= 60);
    await until(
      'the log names the cause',
      () => /too many clients/.test(log()) && causesIn(log()) > 0,
    );
    await pause(byLength(0, 10_000));
    const [told, causes] = [refused().length, causesIn(log())];
    const seconds = (performance.now() - begun) / 1_000;
    await Promise.all(taken.map((client) => client.end()));
    const back = await whole(service);
    const all = await load.stop();
    // Plus one at the start of the first second.
    const most = Math.ceil(seconds) + 1;
    t.ok(causes > 0 && causes <= most, `${causes} lines tell why; at most ${most} may`);
    return {
      'used by other clients': taken.length,
      requests: all.length,
      '503': tolerable(t, all),
      'lines with the cause': within(causes, most, 'lines'),
      'rejected meanwhile': told,
      'pool complete after': within(back, 5_000),
    };
  },
);
