import { readdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { testDatabase } from '../support/database.ts';
import { byLength, fault, within } from '../support/faults.ts';
import { type Ask, countsOf, intolerable, openLoad, quantile, send } from '../support/load.ts';
import { type Served, served } from '../support/served.ts';
import { Caller, postText, until } from '../support/sockets.ts';
import { SPECIFIED } from '../support/specification.ts';

type Test = typeof t;

const TELLER = new URL('../support/heap-teller.ts', import.meta.url).href;
const RATE = byLength(20, 100);
const SAMPLES = byLength(3, 24, 120);
const APART_MS = byLength(1_000, 7_500, 30_000);
/** Samples after which the sessions of the service are ended, as a restart of PostgreSQL does. */
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

interface Sample {
  readonly hours: number;
  readonly heapMb: number;
}

/** The heap of a service after a collection, in MB. */
async function heapOf({ running }: Served): Promise<number> {
  const before = running.stderr().length;
  running.child.kill('SIGUSR2');
  const tellsHeap = (): RegExpExecArray | null =>
    /^heap (\d+)$/m.exec(running.stderr().slice(before));
  await until('it tells its heap', () => tellsHeap() !== null);
  return Number(tellsHeap()?.[1]) / 2 ** 20;
}

const filesOf = async ({ running }: Served): Promise<number> =>
  (await readdir(`/proc/${running.child.pid}/fd`)).length;

/** By how much the heap grows, in MB an hour, and how far off that may be (95 %). */
function slopeOf(samples: readonly Sample[]): { slope: number; margin: number } {
  const count = samples.length;
  const mean = (pick: (each: Sample) => number): number =>
    samples.reduce((sum, each) => sum + pick(each), 0) / count;
  const [meanX, meanY] = [mean(({ hours }) => hours), mean(({ heapMb }) => heapMb)];
  const spread = samples.reduce((sum, { hours }) => sum + (hours - meanX) ** 2, 0);
  const slope =
    samples.reduce((sum, { hours, heapMb }) => sum + (hours - meanX) * (heapMb - meanY), 0) /
    spread;
  const rest = samples.reduce(
    (sum, { hours, heapMb }) => sum + (heapMb - meanY - slope * (hours - meanX)) ** 2,
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

fault(
  'F46',
  'a soak: all kinds of requests, errors, clients that leave, sessions that end',
  'the heap after collection grows ≤ 1 MB an hour (95 %); RSS ≤ 1.2 ×; files constant; no ' +
    'unexpected status',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await served(t, database, { NODE_OPTIONS: `--import=${TELLER}` });
    for (const ask of MIXED) await send(false, service, ask);
    const load = openLoad(t, service, MIXED, RATE);
    const samples: Sample[] = [];
    let [warmMb, files] = [0, 0];
    const begun = performance.now();
    for (let at = 0; at < SAMPLES; at += 1) {
      const due = begun + (at + 1) * APART_MS;
      while (performance.now() < due) {
        await leave(t, service);
        await pause(200);
      }
      samples.push({
        hours: (performance.now() - begun) / 3_600_000,
        heapMb: await heapOf(service),
      });
      if (at === Math.floor(SAMPLES / 4)) {
        [warmMb, files] = [await service.memory(), await filesOf(service)];
      }
      if (at % RESTART_EACH === RESTART_EACH - 1) {
        await database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'commodity-prices%'
            and application_name not like '%test%'`);
      }
    }
    const grown = [(await service.memory()) / warmMb, (await filesOf(service)) - files] as const;
    const answers = await load.stop();
    t.same(intolerable(answers), []);
    const expected = ['200', '304', '400', '401', '503'];
    const counts = countsOf(answers);
    t.same(
      Object.keys(counts).filter((status) => !expected.includes(status)),
      [],
    );
    const { slope, margin } = slopeOf(samples.slice(Math.floor(SAMPLES / 4)));
    return {
      minutes: Number(((performance.now() - begun) / 60_000).toFixed(1)),
      requests: answers.length,
      '503': counts['503'] ?? 0,
      'heap grows by at least': within(slope - margin, 1, 'MB/h'),
      'by its regression': `${slope.toFixed(1)} ± ${margin.toFixed(1)} MB/h`,
      'RSS to that of the warm service': within(grown[0], 1.2, '×'),
      'more open files': within(grown[1], 32, 'files'),
      p99: `${Math.round(quantile(answers, 0.99))} ms`,
    };
  },
);
