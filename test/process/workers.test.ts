import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { NODE_FLAGS } from '../../src/process/workers.ts';
import { seededDatabase } from '../support/database/database.ts';
import { startClosedLoop } from '../support/http/closed-loop-load.ts';
import { keyFor } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { startService } from '../support/process/programs.ts';
import { sendSignal } from '../support/process/signals.ts';

const PATH = '/v3/prices/nickel';
const QUESTIONS = [
  [PATH, { options: { includeSeries: true } }],
  [PATH, {}],
] as const;

const database = await seededDatabase(t);
const key = await keyFor(database, ['prices:*']);

const service = startService(t, {
  DATABASE_URL: database.url,
  WORKERS: '2',
  METRICS_PORT: '0',
  PRICE_BOOK_BYTES: '0',
});
const log = await service.until('stderr', /workers answer at [^"]+/);
const port = Number(/workers answer at http:\/\/[\d.]+:(\d+)/.exec(log)?.[1]);
const metrics = /metrics are at ([^"]+)/.exec(log)?.[1] ?? '';
const at = { port, key };

/** Counts the occurrences of a message in the log. */
const times = (what: RegExp): number => service.stderr().match(what)?.length ?? 0;

/** The processes that have answered so far. */
const answerers = (): Set<string> =>
  new Set(
    [...service.stderr().matchAll(/"pid":(\d+),.*"request completed"/g)].map(([, pid = '']) => pid),
  );

/** A metric of all processes together, by its name. */
async function metricOf(name: string): Promise<number> {
  const text = await (await fetch(metrics)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

t.test('no request fails while workers are replaced one by one', async (t) => {
  const files = await metricOf('process_max_fds');
  const kept = startClosedLoop(t, at, QUESTIONS, 1);
  const fresh = startClosedLoop(t, at, QUESTIONS, 1, false);
  await Promise.all([kept.next(20), fresh.next(20)]);
  service.child.kill('SIGHUP');
  await until('all are replaced', () => times(/all 2 workers were replaced/g) === 1);
  await Promise.all([kept.next(20), fresh.next(20)]);
  const tallies = await Promise.all([kept.stop(), fresh.stop()]);
  t.same(
    tallies.flatMap(({ failed }) => failed),
    [],
  );
  const sent = tallies.reduce((sum, each) => sum + each.sent, 0);
  t.ok(sent >= 80, `${sent} requests`);
  await until('two times two processes have answered', () => answerers().size === 4);
  // The worker counts a request shortly after its client has the answer.
  await until('the metrics are of all workers, also of those that are gone', async () => {
    const text = await (await fetch(metrics)).text();
    const counts = [...text.matchAll(/^prices_request_duration_seconds_count\{.*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0) === sent;
  });
  t.ok(files > 0);
  t.equal(await metricOf('process_max_fds'), files, 'gauges of ended workers are gone');
});

t.test('workers that cannot start end the service, with what is wrong', async (t) => {
  const second = startService(t, {
    DATABASE_URL: database.url,
    WORKERS: '1',
    PORT: String(port),
  });
  t.equal(await second.ended, 2);
  t.match(
    second.stderr(),
    /PORT: \d+ on 127\.0\.0\.1 is in use by another program; PORT=0 selects a free port/,
  );
});

t.test('workers run with the Node options of the primary process', async (t) => {
  const shown = encodeURIComponent("console.error('runs with', process.execArgv.join(' '))");
  const repeated = ['--import', 'data:text/javascript,0', '--import', 'data:text/javascript,1'];
  const own = ['--max-semi-space-size=8', ...repeated, `--import=data:text/javascript,${shown}`];
  const third = startService(t, { DATABASE_URL: database.url, WORKERS: '1' }, own);
  await third.until('stderr', '1 worker answers at');
  const flags = [...NODE_FLAGS, ...own].join(' ');
  const lines = third.stderr().split('\n');
  t.equal(lines.filter((line) => line === `runs with ${flags}`).length, 2, 'each of them once');
  third.child.kill('SIGTERM');
  t.equal(await third.ended, 0);
});

t.test('a worker that is killed is replaced, and a stop ends them all', async (t) => {
  const victim = [...answerers()].at(-1);
  t.ok(sendSignal(Number(victim), 'SIGKILL'));
  await service.until('stderr', `worker ${victim} exited (SIGKILL) and is replaced`);
  await until('another listens', () => times(/Server listening/g) === 5);
  const asking = startClosedLoop(t, at, QUESTIONS, 1, false);
  await asking.next(4);
  t.same((await asking.stop()).failed, []);
  service.child.kill('SIGTERM');
  t.equal(await service.ended, 0);
});

/** Counts the children of a process. */
function childrenOf(pid: number): number {
  const parentOf = (process: string): number => {
    try {
      return Number(
        readFileSync(`/proc/${process}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1],
      );
    } catch {
      // The process has exited.
      return 0;
    }
  };
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.filter((each) => parentOf(each) === pid).length;
}

t.test('a stop while workers are replaced is no failure of the new one', async (t) => {
  const other = startService(t, {
    DATABASE_URL: database.url,
    WORKERS: '1',
    PRICE_BOOK_BYTES: '0',
  });
  await other.until('stderr', /1 worker answers at [^"]+/);
  let rolls = 0;
  await until('the new one runs beside the old one', () => {
    // One that was missed is over, and another one begins.
    if (rolls === (other.stderr().match(/the worker was replaced/g) ?? []).length) {
      rolls += 1;
      other.child.kill('SIGHUP');
    }
    return childrenOf(other.child.pid ?? 0) === 2;
  });
  other.child.kill('SIGTERM');
  t.equal(await other.ended, 0);
  t.notMatch(other.stderr(), /could not start/);
});
