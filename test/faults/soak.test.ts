import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { byLength, fault, within } from '../support/faults.ts';
import { type Heap, heapOf, TELLS_HEAP } from '../support/heap.ts';
import {
  type Answered,
  type Ask,
  countsOf,
  intolerable,
  openLoad,
  quantile,
  sendAll,
} from '../support/load.ts';
import { counted, TELLS_METRICS, type Watched } from '../support/metrics.ts';
import { type Served, served } from '../support/served.ts';
import { Caller, postText, until } from '../support/sockets.ts';
import { SPECIFIED } from '../support/specification.ts';

type Test = typeof t;

const RATE = byLength(20, 100);
const SAMPLES = byLength(3, 24, 120);
const APART_MS = byLength(1_000, 7_500, 30_000);
/** Samples after which the sessions of the service are ended. */
const RESTART_EACH = byLength(2, 4, 10);

const post = (slug: string, body: object): Ask => ({
  path: `/v3/prices/${slug}`,
  body: JSON.stringify(body),
});

/** What clients ask in a day, and what they get wrong. */
const MIXED: readonly Ask[] = SPECIFIED.flatMap(({ slug }, at) => [
  post(slug, {}),
  post(slug, { filters: { dateFrom: '2026-01-01' }, options: { includeSeries: true } }),
  post(slug, { options: { includeSummary: true, currency: 'EUR', decimals: at % 5 } }),
  post(slug, { filters: { regions: [`nowhere ${at}`] } }),
  post(slug, { filters: { nothing: [] } }),
  { path: `/v3/prices/${slug}?format=csv` },
  { path: `/v3/prices/${slug}/filters` },
  { path: `/v3/prices/${slug}`, headers: { 'x-api-key': 'nonsense' } },
  { path: '/v3/changes?limit=5' },
  { path: '/v3/prices' },
]);

/** Rounds in which a service gets warm, at most, and how often each kind is asked in one. */
const WARM_ROUNDS_MAX = byLength(2, 40);
const WARM_ASKS = byLength(1, 20);
/** It is warm when no more than so much, in MB, came on its heap in four rounds. */
const WARM_MB = 0.02;

type Outcome = Pick<Answered, 'status' | 'ms'>;

interface Sample extends Heap {
  readonly hours: number;
}

/** What a service holds of the system, and must not hold ever more of. */
const HELD = {
  files: { name: 'process_open_fds', labels: {} },
  handles: { name: 'nodejs_active_resources', labels: { type: /^(?!Timeout$|Immediate$)./ } },
  timers: { name: 'nodejs_active_resources', labels: { type: /^Timeout$/ } },
  connections: { name: 'prices_pool_connections', labels: {} },
} as const satisfies Record<string, Watched>;
const KINDS = Object.keys(HELD) as (keyof typeof HELD)[];

/** As many come and go with the load: the connections of the pool. */
const MORE_MAX = 8;

/** How much of each a service holds at the moment. */
const heldOf = (service: Served): Promise<number[]> =>
  Promise.all(KINDS.map((kind) => counted(service, HELD[kind])));

/** Waits until a service holds as much of each as before; returns how much more it is. */
async function moreHeld(service: Served, before: readonly number[]): Promise<number[]> {
  let more: number[] = [];
  await until('it holds as much of the system as before', async () => {
    more = (await heldOf(service)).map((each, at) => each - (before[at] ?? 0));
    return more.every((each) => each <= MORE_MAX);
  });
  return more;
}

/** By how much a part of the heap grows, in MB an hour, and how far off that may be (95 %). */
function slopeOf(samples: readonly Sample[], part: keyof Heap): { slope: number; margin: number } {
  const count = samples.length;
  const mean = (pick: (each: Sample) => number): number =>
    samples.reduce((sum, each) => sum + pick(each), 0) / count;
  const [meanX, meanY] = [mean(({ hours }) => hours), mean((each) => each[part])];
  const spread = samples.reduce((sum, { hours }) => sum + (hours - meanX) ** 2, 0);
  const slope =
    samples.reduce((sum, each) => sum + (each.hours - meanX) * (each[part] - meanY), 0) / spread;
  const rest = samples.reduce(
    (sum, each) => sum + (each[part] - meanY - slope * (each.hours - meanX)) ** 2,
    0,
  );
  return { slope, margin: 2 * Math.sqrt(rest / Math.max(1, count - 2) / spread) };
}

/** Asks for much and leaves. */
async function leave(test: Test, service: Served): Promise<void> {
  const caller = new Caller(test, service.port);
  caller.socket.write(postText(service, 'nickel', { options: { includeSeries: true } }));
  await pause(5);
  caller.socket.destroy();
}

/** Ends the sessions of the service, as a restart of PostgreSQL does. */
async function endSessions({ pool }: TestDatabase): Promise<void> {
  await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like 'commodity-prices%'
      and application_name not like '%test%'`);
}

/** A stretch of the soak; nothing is under way after it. */
async function stretch(test: Test, service: Served, until: number): Promise<Outcome[]> {
  const load = openLoad(test, service, MIXED, RATE);
  while (performance.now() < until) {
    await leave(test, service);
    await pause(200);
  }
  const answers = await load.stop();
  test.same(intolerable(answers), []);
  return answers.map(({ status, ms }) => ({ status, ms }));
}

/** Does all that the soak does until the heap no longer grows, since its caches are full. */
async function warm(test: Test, service: Served, database: TestDatabase): Promise<number> {
  const asks = Array.from({ length: WARM_ASKS }, () => MIXED).flat();
  const heaps: number[] = [];
  while (heaps.length < WARM_ROUNDS_MAX) {
    await sendAll(test, service, asks);
    await stretch(test, service, performance.now() + APART_MS);
    heaps.push((await heapOf(service)).data);
    await endSessions(database);
    const [before, , , , now] = heaps.slice(-5);
    if (before !== undefined && now !== undefined && now - before < WARM_MB) break;
  }
  return heaps.length;
}

fault(
  'F46',
  'a soak: all kinds of requests, errors, clients that leave, sessions that end',
  'the heap after collection grows ≤ 1 MB an hour (95 %); RSS ≤ 1.2 ×; open files, ' +
    'handles, timers and connections of the pool constant; no unexpected status',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await served(t, database, { ...TELLS_HEAP, ...TELLS_METRICS });
    const rounds = await warm(t, service, database);
    const [warmMb, held] = [await service.memory(), await heldOf(service)];
    const samples: Sample[] = [];
    const answers: Outcome[] = [];
    const begun = performance.now();
    for (let at = 0; at < SAMPLES; at += 1) {
      answers.push(...(await stretch(t, service, begun + (at + 1) * APART_MS)));
      const hours = (performance.now() - begun) / 3_600_000;
      samples.push({ hours, ...(await heapOf(service)) });
      if (at % RESTART_EACH === RESTART_EACH - 1) await endSessions(database);
    }
    const grown = (await service.memory()) / warmMb;
    const more = await moreHeld(service, held);
    const expected = ['200', '304', '400', '401', '503'];
    const counts = countsOf(answers);
    t.same(
      Object.keys(counts).filter((status) => !expected.includes(status)),
      [],
    );
    const { slope, margin } = slopeOf(samples, 'whole');
    const code = slopeOf(samples, 'code');
    return {
      'rounds until warm': rounds,
      minutes: Number(((performance.now() - begun) / 60_000).toFixed(1)),
      requests: answers.length,
      '503': counts['503'] ?? 0,
      'heap grows by at least': within(slope - margin, 1, 'MB/h'),
      'by its regression': `${slope.toFixed(1)} ± ${margin.toFixed(1)} MB/h`,
      'of it compiled code': `${code.slope.toFixed(1)} ± ${code.margin.toFixed(1)} MB/h`,
      'RSS to that of the warm service': within(grown, 1.2, '×'),
      'before it files, handles, timers, connections': held.join(', '),
      ...Object.fromEntries(
        KINDS.map((kind, at) => [`more ${kind}`, within(more[at] ?? Number.NaN, MORE_MAX, kind)]),
      ),
      p99: `${Math.round(quantile(answers, 0.99))} ms`,
    };
  },
);
