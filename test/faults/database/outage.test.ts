import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { ownCluster } from '../../support/database/cluster.ts';
import {
  besideLoop,
  named,
  quotaOf,
  rateAt,
  SHARES,
  SHARES_AND_LOOP,
} from '../../support/database/quota.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { earlyRefusals } from '../../support/http/early-refusals.ts';
import {
  OWN_TIMES,
  peakGrowth,
  type ServiceProcess,
  startServiceProcess,
} from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { type Bounded, type Figures, failedOf, within } from '../../support/process/figures.ts';
import {
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  type OpenLoad,
  openLoad,
  quantile,
  send,
  unacceptable,
} from '../../support/process/load.ts';
import { sendSignal } from '../../support/process/signals.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength, LENGTH } from '../../support/run/length.ts';

type Test = typeof t;

const RATE = byLength(25, 50);
/** Requests with points, which no cache holds: every answer needs the database. */
const QUESTIONS: readonly HttpRequest[] = [
  {
    path: '/v3/prices/nickel',
    body: '{"filters":{"codes":["CP-NI-0001"]},"options":{"includeSeries":true}}',
  },
  {
    path: '/v3/prices/copper',
    body: '{"filters":{"dateFrom":"2026-06-01"},"options":{"includeSeries":true}}',
  },
  { path: '/v3/prices/cobalt/filters' },
  { path: '/v3/prices' },
];

/** The maximum body size. */
const LARGEST: readonly HttpRequest[] = [
  { path: '/v3/prices/nickel', body: '{"filters":{"codes":["CP-NI-0001"]}}'.padEnd(131_072) },
];

const cluster = await ownCluster(t);
/** Settings: every answer needs the database, with the default gate. */
const ENV = { ...OWN_TIMES, PRICE_BOOK_BYTES: '0', RUNNING_MAX: '64', WAITING_MAX: '128' };
const service = await cluster.using((database) => startServiceProcess(t, database, ENV));
/** The same behind a proxy that can be cut. */
const proxy = await tcpProxyTo(t, cluster.url);
const wired = await cluster.using((database) =>
  startServiceProcess(t, { ...database, url: proxy.url }, ENV),
);
const quota = quotaOf(t);
if (LENGTH !== 'short') {
  for (const { running } of [service, wired]) quota.add(running.child.pid ?? 0);
  await cluster.confine(quota);
}
const get = (path: string): Promise<HttpAnswer> => send(false, service, { path });
const isReady = async (target: ServiceProcess): Promise<boolean> =>
  (await send(false, target, { path: '/ready' })).status === 200;
const ready = (): Promise<boolean> => isReady(service);

/** A running load and the log of the service. */
interface RunningLoad extends OpenLoad {
  /** The log since the start of the load. */
  log(): string;
}

/** Starts a load at a rate on a healthy service. */
async function loaded(test: Test, rate = RATE): Promise<RunningLoad> {
  await until('the service is ready', ready);
  const before = service.running.stderr().length;
  const load = openLoad(test, service, QUESTIONS, rate);
  await until('they are answered', () => load.answers.length >= RATE);
  return { ...load, log: () => service.running.stderr().slice(before) };
}

/** Waits for this many more answers. */
const more = (load: OpenLoad, count: number): Promise<void> => {
  const goal = load.answers.length + count;
  return until('more are answered', () => load.answers.length >= goal);
};

/** Waits until requests are answered normally again; returns the time since `since`. */
async function recovered(load: OpenLoad, since: number): Promise<number> {
  const good = ({ status, endedAt }: HttpAnswer): boolean => status === 200 && endedAt > since;
  await until('one is answered', () => load.answers.some(good));
  const first = Math.min(...load.answers.filter(good).map(({ endedAt }) => endedAt));
  await until('the service is ready', ready);
  return first - since;
}

/** Asserts that every failed answer is a documented problem that invites a retry. */
async function tolerable(test: Test, load: RunningLoad, codes: RegExp) {
  await more(load, RATE);
  await until('requests are answered as before', () =>
    load.answers.slice(-3).every(({ status }) => status === 200),
  );
  const answers = await load.stop();
  test.same(unacceptable(answers), []);
  test.same(earlyRefusals(answers, load.log()), [], 'transient failures are retried');
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
/** Codes of an outage. In short runs a stalled machine may look like a silent database. */
const DOWN_CODES = byLength(SILENT, /^(database_unavailable|auth_unavailable|overloaded)$/);

const isUp = (): Promise<boolean> =>
  cluster.query('select 1').then(
    () => true,
    () => false,
  );

/**
 * Runs a fault at each CPU share, under 60 % of the capacity there. Only at half a core may a
 * request take longer than a second, because PostgreSQL itself does.
 */
async function atShares(test: Test, work: (load: RunningLoad, rate: number) => Promise<void>) {
  let figures: Figures = {};
  for (const share of SHARES) {
    const rate = await rateAt(test, quota, share, service, QUESTIONS, RATE);
    const load = await loaded(test, rate.perSecond);
    await work(load, rate.perSecond);
    const { requests, failed } = await tolerable(test, load, DOWN_CODES);
    const longest = quantile(load.answers, 1);
    figures = {
      ...figures,
      ...rate.figures,
      [named('requests', share)]: requests,
      [named('failed', share)]: failedOf(failed),
      [named('longest', share)]:
        share === SHARES[1] ? `${Math.round(longest)} ms` : within(longest, 1_000),
    };
  }
  quota.cores(null);
  return figures;
}

fault(
  'F1',
  'a busy session killed with SIGKILL repeatedly, under load',
  '0 failed requests, with one core and with half a core; longest request ≤ 1 s with one ' +
    'core; 0 × 500',
  async (t) => {
    const rounds = byLength(2, 5);
    const figures = await atShares(t, async (load, rate) => {
      for (let round = 0; round < rounds; round += 1) {
        // PostgreSQL then terminates all other sessions and recovers.
        await cluster.killBusy('commodity-prices');
        await until('the server is back', isUp);
        await recovered(load, performance.now());
        await more(load, rate);
      }
    });
    return { kills: rounds, ...figures };
  },
);

fault(
  'F2',
  'PostgreSQL restarted in fast mode',
  '0 failed requests, with one core and with half a core; longest request ≤ 1 s with one core',
  (t) =>
    atShares(t, async (load) => {
      await cluster.restart('fast');
      await recovered(load, performance.now());
    }),
);

fault(
  'F2b',
  'PostgreSQL restarted in immediate mode',
  'only 503 with Retry-After while PostgreSQL is down; answers ≤ 2 s after it is up again',
  async (t) => {
    const load = await loaded(t);
    await cluster.restart('immediate');
    const after = await recovered(load, performance.now());
    const { requests, failed } = await tolerable(t, load, DOWN_CODES);
    return { requests, 'recovered after': within(after, 2_000), '503': failed };
  },
);

/** The ways in which the database goes down and comes back. */
const KINDS = {
  cut: [() => proxy.cut(true), () => proxy.cut(false)],
  silent: [() => proxy.freeze(), () => proxy.thaw()],
} as const;

type OutageKind = keyof typeof KINDS;

/** Stops the database for a given time; returns the times of stop and return. */
async function away(kind: OutageKind, ms: number): Promise<{ went: number; back: number }> {
  const [take, give] = KINDS[kind];
  const went = performance.now();
  take();
  await pause(ms - (performance.now() - went));
  give();
  return { went, back: performance.now() };
}

/** Waits for the answers to all earlier requests and to one more second of load. */
async function calm(load: OpenLoad, perSecond: number): Promise<void> {
  const goal = load.sent() + perSecond;
  await until('requests are answered', () => load.answers.length >= goal);
  await until('the service is ready', () => isReady(wired));
}

const failedIn = (answers: readonly HttpAnswer[]): readonly HttpAnswer[] =>
  answers.filter(({ status }) => status !== 200);

/** Durations of interruptions that no request may notice, in milliseconds. */
const MOMENTS = byLength([500], [500, 1_000, 2_000]);

/**
 * Interrupts the database briefly under load; returns failed and total requests and figures.
 * @param codes the codes that may reject requests
 */
async function interrupted(
  test: Test,
  kind: OutageKind,
  { asks, perSecond }: { readonly asks: readonly HttpRequest[]; readonly perSecond: number },
  moments = MOMENTS,
  codes: readonly string[] = [],
) {
  let memory = 0;
  const load = openLoad(test, wired, asks, perSecond);
  await until('requests are answered', () => load.answers.length >= perSecond);
  for (const ms of moments) {
    const grown = await peakGrowth(wired.running.child.pid ?? 0, async () => {
      await away(kind, ms);
      await calm(load, perSecond);
    });
    memory = Math.max(memory, grown);
  }
  const answers = await load.stop();
  const failed = failedIn(answers);
  test.same(unacceptable(answers), []);
  test.same(
    [...new Set(failed.map((each) => `${codeOf(each)}`))].filter((code) => !codes.includes(code)),
    [],
  );
  return { requests: answers.length, failed: failed.length, memory, longest: quantile(answers, 1) };
}

/** The time at which a second of answers is all good, with its former p99. */
function asBeforeAt(answers: readonly HttpAnswer[], p99: number, back: number): number {
  const since = answers.filter(({ endedAt }) => endedAt > back);
  const ends = [...new Set(since.map(({ endedAt, ms }) => endedAt - ms))].toSorted((a, b) => a - b);
  for (const from of ends) {
    if (from < back) continue;
    const seen = since.filter(({ endedAt, ms }) => {
      const due = endedAt - ms;
      return due >= from && due < from + 1_000;
    });
    if (seen.every(({ status }) => status === 200) && quantile(seen, 0.99) <= p99) return from;
  }
  return Number.POSITIVE_INFINITY;
}

/** An interruption longer than the wait of a request. */
async function outage(test: Test, perSecond: number) {
  const load = openLoad(test, wired, QUESTIONS, perSecond);
  await until('requests are answered', () => load.answers.length >= 3 * perSecond);
  const before = quantile(load.answers.slice(-2 * perSecond), 0.99);
  const { went, back } = await away('cut', byLength(3_000, 10_000));
  await calm(load, perSecond);
  await pause(byLength(0, 2_000));
  const answers = await load.stop();
  test.same(unacceptable(answers), []);
  const due = ({ endedAt, ms }: HttpAnswer): number => endedAt - ms;
  const failed = failedIn(answers);
  const first = failed.filter((each) => due(each) - went < 2_500);
  const later = failed.filter((each) => due(each) - went >= 2_500 && each.endedAt < back);
  const codesOf = (some: readonly HttpAnswer[], known: RegExp) =>
    [...new Set(some.map(codeOf))].filter((code) => !known.test(`${code}`));
  // Until the outage is known, more requests may arrive than the backlog of a short one has.
  test.same(codesOf(failed, /^(database_unavailable|auth_unavailable|overloaded)$/), []);
  test.same(codesOf(later, /^(database|auth)_unavailable$/), []);
  const good = answers.filter(({ status, endedAt }) => status === 200 && endedAt > back);
  return {
    refused: failed.length,
    first: quantile(first, 1),
    later: quantile(later, 1),
    answered: Math.min(...good.map(({ endedAt }) => endedAt)) - back,
    p99: before,
    again: asBeforeAt(answers, 2 * before, back) - back,
  };
}

fault(
  'F5',
  'a connection to the database that transmits nothing for 0.5, 1 and 2 s',
  '0 failed requests, with one core, half a core, and half a core beside a loop that takes a ' +
    'third of the machine',
  async (t) => {
    let figures: Figures = {};
    for (const share of SHARES_AND_LOOP) {
      const [rate, done] = await besideLoop(t, share, async () => {
        const measured = await rateAt(t, quota, share, wired, QUESTIONS, RATE);
        const load = { asks: QUESTIONS, perSecond: measured.perSecond };
        return [measured, await interrupted(t, 'silent', load)] as const;
      });
      figures = {
        ...figures,
        ...rate.figures,
        [named('requests', share)]: done.requests,
        [named('failed', share)]: failedOf(done.failed),
        [named('longest', share)]: `${Math.round(done.longest)} ms`,
      };
    }
    quota.cores(null);
    return figures;
  },
);

for (const [at, share] of SHARES_AND_LOOP.entries()) {
  const [name] = share;
  fault(
    ['F56', 'F56b'][at] ?? 'F56c',
    `a short outage of the database, under 60 % of the load that it sustains ${name}`.trim(),
    'for 0.5, 1 and 2 s: 0 failed requests, ≤ 32 MB more memory, ≤ 80 MB with the largest ' +
      'bodies; for 10 s: 503 after ≤ 2.5 s each, later ones after ≤ 50 ms, the first answer ≤ ' +
      '0.5 s after the database is up again, and within 2 s a p99 ≤ 2 × that before',
    (t) =>
      besideLoop(t, share, async () => {
        const { perSecond, figures } = await rateAt(t, quota, share, wired, QUESTIONS, RATE);
        const usual = await interrupted(t, 'cut', { asks: QUESTIONS, perSecond });
        const long = await outage(t, perSecond);
        const rate = await rateAt(t, quota, share, wired, LARGEST, 10);
        const load = { asks: LARGEST, perSecond: rate.perSecond };
        // The bodies of two seconds may exceed the bound of what they hold.
        const largest = await interrupted(t, 'cut', load, MOMENTS.slice(-1), ['overloaded']);
        quota.cores(null);
        return {
          ...figures,
          interruptions: MOMENTS.length + 2,
          requests: usual.requests,
          failed: failedOf(usual.failed),
          longest: `${Math.round(usual.longest)} ms`,
          'memory grew': within(usual.memory, 32, 'MB'),
          'largest bodies a second': rate.perSecond,
          'of their requests rejected': `${largest.failed} of ${largest.requests}`,
          'memory grew with them': within(largest.memory, 80, 'MB'),
          'rejected in 10 s': long.refused,
          'longest 503': within(long.first, 2_500),
          'longest later 503': within(long.later, 50),
          'answers after': within(long.answered, 500),
          'p99 before': `${long.p99.toFixed(1)} ms`,
          'as fast as before after': within(long.again, 2_000),
        };
      }),
  );
}

/** Waits until the service logs that its database is down; returns the time. */
async function noticed(load: OpenLoad, begun = performance.now()): Promise<number> {
  await until('/ready says so', async () => (await get('/ready')).status === 503);
  const took = performance.now() - begun;
  await until('requests fail with 503', () =>
    load.answers.some(({ status, endedAt }) => status === 503 && endedAt > begun),
  );
  return took;
}

fault(
  'F3',
  'the postmaster killed, and down for 10 s',
  '/live 200; /ready 503 after ≤ 2 s; only 503 with Retry-After, each after ≤ 2.5 s; answers ' +
    '≤ 2 s after the server is up again',
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
    const counted = await tolerable(t, load, DOWN_CODES);
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

/** Suspends processes while work runs; exited processes are ignored. */
async function whileStopped<T>(pids: readonly number[], work: () => Promise<T>): Promise<T> {
  const signalAll = (signal: NodeJS.Signals): void => {
    for (const pid of pids) sendSignal(pid, signal);
  };
  signalAll('SIGSTOP');
  try {
    return await work();
  } finally {
    signalAll('SIGCONT');
  }
}

for (const [id, program, stoppedMs] of [
  ['F4', 'commodity-prices', 30_000],
  // Longer than any request may take.
  ['F4b', 'commodity-prices link', 12_000],
] as const) {
  fault(
    id,
    `one session of "${program}" stopped with SIGSTOP`,
    '≤ 1 request fails, with an error response; later requests use another session',
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
  'all processes of PostgreSQL stopped with SIGSTOP',
  '503 or 504 within 10 s, no hang; answers ≤ 2 s after PostgreSQL continues',
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
