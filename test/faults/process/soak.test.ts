import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { type Cluster, ownCluster } from '../../support/database/cluster.ts';
import { counted, type Watched, WITH_METRICS } from '../../support/http/metrics.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { postText, RawConnection, until } from '../../support/http/sockets.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';
import { type Figures, within } from '../../support/process/figures.ts';
import {
  HEAP_SAMPLER,
  HEAP_SAMPLER_STABLE_CODE,
  type Heap,
  heapOf,
} from '../../support/process/heap.ts';
import {
  countsOf,
  type HttpRequest,
  type LoadAnswer,
  openLoad,
  quantile,
  sendAll,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const RATE = byLength(20, 50, 100);
const SAMPLES = byLength(3, 24, 120);
const APART_MS = byLength(1_000, 7_500, 30_000);
/** Samples after which PostgreSQL is restarted. */
const RESTART_EACH = byLength(2, 4, 10);

const post = (slug: string, body: object): HttpRequest => ({
  path: `/v3/prices/${slug}`,
  body: JSON.stringify(body),
});

/** A day's mix of valid and invalid requests. */
const MIXED: readonly HttpRequest[] = SPECIFIED.flatMap(({ slug }, at) => [
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
  { path: '/v3/search?q=nickel' },
]);

/** An hour measures the service as it is; minutes fix its compiled code to see growth. */
const TELLS = byLength<Readonly<Record<string, string>>>(
  HEAP_SAMPLER_STABLE_CODE,
  HEAP_SAMPLER_STABLE_CODE,
  HEAP_SAMPLER,
);

/** Warm-up rounds, and the further requests of each kind per round. */
const WARM_ROUNDS = byLength(2, 3, 8);
const WARM_ASKS = byLength(1, 30, 60);

type RequestOutcome = Pick<LoadAnswer, 'status' | 'ms' | 'ask'>;

interface SoakSample extends Heap {
  readonly hours: number;
}

/** System resources of a service that must not grow. */
const HELD = {
  files: { name: 'process_open_fds', labels: {} },
  handles: { name: 'nodejs_active_resources', labels: { type: /^(?!Timeout$|Immediate$)./ } },
  timers: { name: 'nodejs_active_resources', labels: { type: /^Timeout$/ } },
  connections: { name: 'prices_pool_connections', labels: {} },
} as const satisfies Record<string, Watched>;
const KINDS = Object.keys(HELD) as (keyof typeof HELD)[];

/** A resource that varies with the load: the connections of the pool. */
const MORE_MAX = 8;

/** Current counts of these resources. */
const heldOf = (service: ServiceProcess): Promise<number[]> =>
  Promise.all(KINDS.map((kind) => counted(service, HELD[kind])));

/** Waits until the counts are back at their former level; returns the excess. */
async function moreHeld(service: ServiceProcess, before: readonly number[]): Promise<number[]> {
  let more: number[] = [];
  await until('the process holds as many system resources as before', async () => {
    more = (await heldOf(service)).map((each, at) => each - (before[at] ?? 0));
    return more.every((each) => each <= MORE_MAX);
  });
  return more;
}

/** The growth of a part of the heap in MB per hour, with its 95 % confidence interval. */
function slopeOf(
  samples: readonly SoakSample[],
  part: keyof Heap,
): { slope: number; margin: number } {
  const count = samples.length;
  const mean = (pick: (each: SoakSample) => number): number =>
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

/**
 * The heap figures. An hour bounds the upper end of the confidence interval; minutes bound the
 * lower end, because their interval is wider than the bound.
 */
function growthOf(samples: readonly SoakSample[]): Figures {
  const [whole, data, code] = [
    slopeOf(samples, 'whole'),
    slopeOf(samples, 'data'),
    slopeOf(samples, 'code'),
  ];
  const atLeast = { 'heap grows by at least': within(whole.slope - whole.margin, 1, 'MB/h') };
  const atMost = { 'heap grows by at most': within(whole.slope + whole.margin, 1, 'MB/h') };
  const bounded = byLength<Figures>(atLeast, atLeast, atMost);
  const text = ({ slope, margin }: typeof whole): string =>
    `${slope.toFixed(2)} ± ${margin.toFixed(2)} MB/h`;
  return { ...bounded, heap: text(whole), 'of it data': text(data), 'compiled code': text(code) };
}

/** Requests a large answer and disconnects. */
async function leave(test: Test, service: ServiceProcess): Promise<void> {
  const connection = new RawConnection(test, service.port);
  connection.socket.write(postText(service, 'nickel', { options: { includeSeries: true } }));
  await pause(5);
  connection.socket.destroy();
}

/** A period of the soak with an event in its middle; it ends with no request in flight. */
async function stretch(
  test: Test,
  service: ServiceProcess,
  endsAt: number,
  happens: () => Promise<void> = async () => {},
): Promise<RequestOutcome[]> {
  const load = openLoad(test, service, MIXED, RATE);
  await until('requests are answered', () => load.answers.length >= RATE / 2);
  await happens();
  while (performance.now() < endsAt) {
    await leave(test, service);
    await pause(200);
  }
  const answers = await load.stop();
  test.same(unacceptable(answers), []);
  return answers.map(({ status, ms, ask }) => ({ status, ms, ask }));
}

/** Unexpected statuses: neither the normal one of a request nor that of a database outage. */
async function unexpectedOf(
  test: Test,
  service: ServiceProcess,
  answers: readonly RequestOutcome[],
) {
  const well = await sendAll(test, service, MIXED);
  const usual = new Map(MIXED.map((ask, at) => [ask, well[at]?.status]));
  return answers
    .filter(({ status, ask }) => status !== usual.get(ask) && status !== 503)
    .map(({ status, ask: { path, body } }) => `${status} ${path} ${body}`);
}

/** Runs the soak's requests faster to fill caches and compile code. */
async function warm(test: Test, service: ServiceProcess, cluster: Cluster): Promise<void> {
  const asks = Array.from({ length: WARM_ASKS }, () => MIXED).flat();
  for (let round = 0; round < WARM_ROUNDS; round += 1) {
    await sendAll(test, service, asks);
    await stretch(test, service, performance.now() + APART_MS, () => cluster.restart('fast'));
  }
}

fault(
  'F46',
  'a soak: all kinds of requests, errors, clients that disconnect, restarts of PostgreSQL',
  'the heap after collection grows by ≤ 1 MB an hour (95 %); RSS ≤ 1.2 ×; open files, ' +
    'handles, timers and connections of the pool are constant; no unexpected status',
  async (t) => {
    const cluster = await ownCluster(t);
    const env = { ...TELLS, ...WITH_METRICS };
    const service = await cluster.using((database) => startServiceProcess(t, database, env));
    await warm(t, service, cluster);
    const [warmMb, held] = [await service.memory(), await heldOf(service)];
    const samples: SoakSample[] = [];
    const answers: RequestOutcome[] = [];
    const begun = performance.now();
    for (let at = 0; at < SAMPLES; at += 1) {
      const restarts = at % RESTART_EACH === RESTART_EACH - 1;
      const happens = restarts ? () => cluster.restart('fast') : undefined;
      answers.push(...(await stretch(t, service, begun + (at + 1) * APART_MS, happens)));
      const hours = (performance.now() - begun) / 3_600_000;
      samples.push({ hours, ...(await heapOf(service)) });
    }
    const grown = (await service.memory()) / warmMb;
    const more = await moreHeld(service, held);
    const away = countsOf(answers)['503'] ?? 0;
    t.same(await unexpectedOf(t, service, answers), []);
    return {
      minutes: Number(((performance.now() - begun) / 60_000).toFixed(1)),
      requests: answers.length,
      '503 while PostgreSQL restarts': within((100 * away) / answers.length, 1, '%'),
      ...growthOf(samples),
      'RSS of that of the warm service': within(100 * grown, 120, '%'),
      'before it files, handles, timers, connections': held.join(', '),
      ...Object.fromEntries(
        KINDS.map((kind, at) => [`more ${kind}`, within(more[at] ?? Number.NaN, MORE_MAX, kind)]),
      ),
      p99: `${Math.round(quantile(answers, 0.99))} ms`,
    };
  },
);
