import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { ownCluster } from '../support/cluster.ts';
import { byLength, failedOf, fault, within } from '../support/faults.ts';
import { givenUp } from '../support/given-up.ts';
import {
  type Answered,
  type Ask,
  codeOf,
  intolerable,
  openLoad,
  quantile,
  send,
} from '../support/load.ts';
import { OWN_TIMES, type Served, served } from '../support/served.ts';
import { until } from '../support/sockets.ts';
import { type Wire, wireTo } from '../support/tcp-proxy.ts';

type Test = typeof t;

const ASKS: readonly Ask[] = [
  { path: '/v3/prices/nickel', body: '{"filters":{"codes":["CP-NI-0001"]}}' },
  { path: '/v3/prices/copper', body: '{}' },
];
const CODES = ['database_unavailable', 'auth_unavailable', 'overloaded', 'query_timeout'];

const cluster = await ownCluster(t, { max_connections: '40' });

async function wired(test: Test): Promise<{ wire: Wire; service: Served }> {
  const wire = await wireTo(test, cluster.url);
  const service = await cluster.using((database) =>
    served(test, { ...database, url: wire.url }, { ...OWN_TIMES, PRICE_BOOK_BYTES: '0' }),
  );
  await until('it answers', () => answers(service));
  return { wire, service };
}

const answers = async (service: Served): Promise<boolean> =>
  (await send(false, service, ASKS[0] as Ask)).status === 200;

/** What must hold of all answers; returns how many were no answer. */
function tolerable(test: Test, all: readonly Answered[]): number {
  test.same(intolerable(all), []);
  const failed = all.filter(({ status }) => status !== 200);
  test.same(
    [...new Set(failed.map(codeOf))].filter((code) => !CODES.includes(String(code))),
    [],
  );
  return failed.length;
}

/** Waits until the service answers as many at once as it has connections. */
async function whole(service: Served): Promise<number> {
  const begun = performance.now();
  const each = (): Promise<void> => until('all connections are there', () => answers(service));
  await Promise.all(Array.from({ length: 8 }, each));
  const ready = (): Promise<Answered> => send(false, service, { path: '/ready' });
  await until('it is ready', async () => (await ready()).status === 200);
  return performance.now() - begun;
}

fault(
  'F5',
  'a database behind a line that swallows everything',
  '503 or 504 within 10 s, no hang; the pool is whole ≤ 15 s after',
  async (t) => {
    const { wire, service } = await wired(t);
    const load = openLoad(t, service, ASKS, byLength(20, 100));
    await until('it goes', () => load.answers.length >= 20);
    wire.freeze();
    await until('it is told', () => load.answers.some(({ status }) => status === 503));
    t.equal((await send(false, service, { path: '/live' })).status, 200);
    await pause(byLength(500, 60_000));
    wire.thaw();
    const back = await whole(service);
    const all = await load.stop();
    const failed = tolerable(t, all);
    return {
      requests: all.length,
      '503 and 504': failed,
      longest: within(quantile(all, 1), 10_000),
      'whole after': within(back, 15_000),
    };
  },
);

fault(
  'F6',
  'a slow database: 200 ms each way, 64 kB a second',
  'slow answers or 503; no connection is lost for good',
  async (t) => {
    const { wire, service } = await wired(t);
    wire.set({ latencyMs: 200, bytesPerSecond: 65_536, sliceBytes: 1_400 });
    const load = openLoad(t, service, ASKS, byLength(5, 10));
    await pause(byLength(3_000, 60_000, 600_000));
    const all = await load.stop();
    const failed = tolerable(t, all);
    wire.set({});
    const back = await whole(service);
    const good = all.filter(({ status }) => status === 200);
    return {
      requests: all.length,
      '503 and 504': failed,
      'p99 of answers': `${Math.round(quantile(good, 0.99))} ms`,
      'whole after': within(back, 15_000),
    };
  },
);

fault(
  'F5b',
  'a line that resets, half closes and cuts into pieces',
  '0 × 500; answers as before once it is mended',
  async (t) => {
    const { wire, service } = await wired(t);
    wire.set({ sliceBytes: 7 });
    await until('bytes may come in any pieces', () => answers(service));
    wire.set({});
    const load = openLoad(t, service, ASKS, 20);
    for (let round = 0; round < byLength(3, 20); round += 1) {
      const seen = load.answers.length;
      await until('it goes', () => load.answers.length >= seen + 20);
      if (round % 2 === 0) wire.reset();
      else wire.halfClose();
      await whole(service);
    }
    const all = await load.stop();
    t.same(givenUp(all, service.running.stderr()), [], 'what may pass is tried again');
    return { requests: all.length, failed: failedOf(t, tolerable(t, all)) };
  },
);

/** Takes connections until the server has none left. */
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

fault(
  'F8',
  'every connection of the server taken by others',
  'only 503 with Retry-After; answers as soon as some are free',
  async (t) => {
    const { service } = await wired(t);
    const load = openLoad(t, service, ASKS, byLength(20, 50));
    const taken = await fill(t);
    // The service has to come back for its own, and others are there first.
    await taken[0]?.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name like 'commodity-prices%'`);
    taken.push(...(await fill(t)));
    const seen = load.answers.length;
    await until('it goes on', () => load.answers.length >= seen + 20);
    await pause(byLength(0, 10_000));
    await Promise.all(taken.map((client) => client.end()));
    const back = await whole(service);
    const all = await load.stop();
    return {
      'taken by others': taken.length,
      requests: all.length,
      '503': tolerable(t, all),
      'whole after': within(back, 5_000),
    };
  },
);
