import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { ownCluster } from '../support/cluster.ts';
import { byLength, fault } from '../support/faults.ts';
import { type Bounded, failedOf, within } from '../support/figures.ts';
import { givenUp } from '../support/given-up.ts';
import {
  type Answered,
  type Ask,
  codeOf,
  intolerable,
  type OpenLoad,
  openLoad,
  quantile,
  send,
} from '../support/load.ts';
import { OWN_TIMES, served } from '../support/served.ts';
import { until } from '../support/sockets.ts';
import { tell } from '../support/tell.ts';

type Test = typeof t;

const RATE = byLength(25, 50);
const QUESTIONS: readonly Ask[] = [
  { path: '/v3/prices/nickel', body: '{"filters":{"codes":["CP-NI-0001"]}}' },
  { path: '/v3/prices/copper', body: '{"filters":{"dateFrom":"2026-06-01"}}' },
  { path: '/v3/prices/cobalt/filters' },
  { path: '/v3/prices' },
];

const cluster = await ownCluster(t);
/** Every answer needs the database; the gate is what a service has by itself. */
const ENV = { ...OWN_TIMES, PRICE_BOOK_BYTES: '0', RUNNING_MAX: '64' };
const service = await cluster.using((database) => served(t, database, ENV));
const get = (path: string): Promise<Answered> => send(false, service, { path });
const ready = async (): Promise<boolean> => (await get('/ready')).status === 200;

/** Requests that go on, and what the service says of them. */
interface Loaded extends OpenLoad {
  /** Its log since they began. */
  log(): string;
}

/** Requests that go on at a rate; the service is in order when they begin. */
async function loaded(test: Test, rate = RATE): Promise<Loaded> {
  await until('the service is ready', ready);
  const before = service.running.stderr().length;
  const load = openLoad(test, service, QUESTIONS, rate);
  await until('they are answered', () => load.answers.length >= RATE);
  return { ...load, log: () => service.running.stderr().slice(before) };
}

/** Waits until so many more were answered. */
const more = (load: OpenLoad, count: number): Promise<void> => {
  const goal = load.answers.length + count;
  return until('more are answered', () => load.answers.length >= goal);
};

/** Waits until requests are answered as if nothing had been; returns how long after `since`. */
async function recovered(load: OpenLoad, since: number): Promise<number> {
  const good = ({ status, endedAt }: Answered): boolean => status === 200 && endedAt > since;
  await until('one is answered', () => load.answers.some(good));
  const first = Math.min(...load.answers.filter(good).map(({ endedAt }) => endedAt));
  await until('the service is ready', ready);
  return first - since;
}

/** What must hold of all answers, whatever happened: told, and worth another attempt. */
async function tolerable(test: Test, load: Loaded, codes: RegExp) {
  await more(load, RATE);
  await until('it is as it was', () =>
    load.answers.slice(-3).every(({ status }) => status === 200),
  );
  const answers = await load.stop();
  test.same(intolerable(answers), []);
  test.same(givenUp(answers, load.log()), [], 'what may pass is tried again');
  const failed = answers.filter(({ status }) => status !== 200);
  test.same(
    [...new Set(failed.map(codeOf))].filter((code) => !codes.test(String(code))),
    [],
  );
  return { requests: answers.length, failed: failed.length };
}

const longestOf = ({ answers }: OpenLoad, most: number): Bounded =>
  within(quantile(answers, 1), most);

const SILENT = /^(database_unavailable|auth_unavailable|overloaded|query_timeout)$/;
/** A machine that stalls is as silent as a database that does. */
const AWAY = byLength(SILENT, /^(database_unavailable|auth_unavailable|overloaded)$/);

const isUp = (): Promise<boolean> =>
  cluster.ask('select 1').then(
    () => true,
    () => false,
  );

fault(
  'F1',
  'a busy session killed with SIGKILL, again and again under load',
  '0 failed; longest request ≤ 1 s; 0 × 500',
  async (t) => {
    const rate = byLength(RATE, 200);
    const load = await loaded(t, rate);
    const rounds = byLength(2, 5);
    for (let round = 0; round < rounds; round += 1) {
      // PostgreSQL ends all other sessions as well then, and recovers.
      await cluster.killBusy('commodity-prices');
      await until('the server is back', isUp);
      await recovered(load, performance.now());
      await more(load, rate);
    }
    const { requests, failed } = await tolerable(t, load, AWAY);
    return {
      kills: rounds,
      requests,
      failed: failedOf(failed),
      longest: longestOf(load, 1_000),
    };
  },
);

for (const [id, mode] of [
  ['F2', 'fast'],
  ['F2b', 'immediate'],
] as const) {
  fault(
    id,
    `PostgreSQL restarted, ${mode}`,
    mode === 'fast'
      ? '0 failed; longest request ≤ 1 s'
      : 'only 503 with Retry-After while it is down; answers ≤ 2 s after it is back',
    async (t) => {
      const load = await loaded(t);
      await cluster.restart(mode);
      const back = performance.now();
      const after = await recovered(load, back);
      const { requests, failed } = await tolerable(t, load, AWAY);
      const figures = { requests, 'recovered after': within(after, 2_000) };
      return mode === 'fast'
        ? { ...figures, failed: failedOf(failed), longest: longestOf(load, 1_000) }
        : { ...figures, '503': failed };
    },
  );
}

/** Waits until the service says that its database is away; returns how long it took. */
async function noticed(load: OpenLoad, begun = performance.now()): Promise<number> {
  await until('/ready says so', async () => (await get('/ready')).status === 503);
  const took = performance.now() - begun;
  await until('requests are told', () =>
    load.answers.some(({ status, endedAt }) => status === 503 && endedAt > begun),
  );
  return took;
}

fault(
  'F3',
  'the postmaster killed, and down for 10 s',
  '/live 200; /ready 503 ≤ 2 s; only 503 with Retry-After ≤ 2.5 s; answers ≤ 2 s after it is back',
  async (t) => {
    const load = await loaded(t);
    const memory = await service.memory();
    const killed = performance.now();
    await cluster.kill();
    const took = await noticed(load, killed);
    t.equal((await get('/live')).status, 200);
    await pause(byLength(500, 10_000));
    t.equal((await get('/live')).status, 200);
    const down = load.answers.filter(({ status }) => status === 503);
    await cluster.restart('fast');
    const after = await recovered(load, performance.now());
    const counted = await tolerable(t, load, AWAY);
    t.equal(service.running.child.exitCode, null, 'the service never ended');
    return {
      requests: counted.requests,
      '503': counted.failed,
      'noticed after': within(took, 2_000),
      'longest 503': within(quantile(down, 1), 2_500),
      'recovered after': within(after, 2_000),
      'memory grew': within((await service.memory()) - memory, 50, 'MB'),
    };
  },
);

/** Stops processes for as long as work takes; one that ended meanwhile needs nothing. */
async function whileStopped<T>(pids: readonly number[], work: () => Promise<T>): Promise<T> {
  const tellAll = (signal: NodeJS.Signals): void => {
    for (const pid of pids) tell(pid, signal);
  };
  tellAll('SIGSTOP');
  try {
    return await work();
  } finally {
    tellAll('SIGCONT');
  }
}

for (const [id, program, stoppedMs] of [
  ['F4', 'commodity-prices', 30_000],
  // No request waits for this one: so long is longer than any may take.
  ['F4b', 'commodity-prices pulse', 12_000],
] as const) {
  fault(
    id,
    `one session of "${program}" stopped with SIGSTOP`,
    '≤ 1 request fails: it is told, and what comes after it goes over another session',
    async (t) => {
      const load = await loaded(t);
      const [pid = 0] = await cluster.sessions(program);
      await whileStopped([pid], async () => {
        await more(load, 2 * RATE);
        await pause(byLength(0, stoppedMs));
      });
      const { requests, failed } = await tolerable(t, load, SILENT);
      return {
        requests,
        failed: failedOf(failed, 1),
        longest: longestOf(load, 10_000),
      };
    },
  );
}

fault(
  'F4c',
  'all of PostgreSQL stopped with SIGSTOP',
  '503 or 504 within 10 s, no hang; answers ≤ 2 s after it goes on',
  async (t) => {
    const load = await loaded(t);
    const took = await whileStopped(await cluster.processes(), async () => {
      const took = await noticed(load);
      t.equal((await get('/live')).status, 200);
      await pause(byLength(500, 30_000));
      return took;
    });
    const after = await recovered(load, performance.now());
    const { requests, failed } = await tolerable(t, load, SILENT);
    return {
      requests,
      '503 and 504': failed,
      'noticed after': within(took, 2_000),
      longest: longestOf(load, 10_000),
      'recovered after': within(after, 2_000),
    };
  },
);
