import { readdir, readFile } from 'node:fs/promises';
import type t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import { keyFor } from '../../support/http/service.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { type HttpRequest, openLoad, quantile, send } from '../../support/process/load.ts';
import { type Running, startService } from '../../support/process/programs.ts';
import { sendSignal } from '../../support/process/signals.ts';
import { byLength, fault } from '../../support/run/faults.ts';

const RATE = byLength(10, 250);
const CYCLES = byLength(1, 15);

/**
 * Nine of ten requests need no statement, so that slow machines keep up; one needs three. Each is
 * repeatable: a replaced worker closes connections that are idle for `STOP_GRACE_MS`, and a client
 * that writes at that moment gets no answer.
 */
const QUESTIONS: readonly HttpRequest[] = [
  ...Array.from({ length: 9 }, (_, at) => ({
    path: '/v3/prices/nickel',
    body: at % 2 === 0 ? '{"filters":{"codes":["CP-NI-0001"]}}' : '{}',
    isRepeatable: true as const,
  })),
  { path: '/v3/reference/rates?base=USD&quote=EUR', isRepeatable: true },
];

type Test = typeof t;

/** A service with two workers. */
async function ofTwoWorkers(test: Test, env: Readonly<Record<string, string>> = {}) {
  const database = await seededDatabase(test);
  const key = await keyFor(database, ['prices:*']);
  const running = startService(test, { DATABASE_URL: database.url, WORKERS: '2', ...env });
  const log = await running.until('stderr', /workers answer at http:\/\/[\d.]+:\d+/);
  const port = Number(/workers answer at http:\/\/[\d.]+:(\d+)/.exec(log)?.[1]);
  return { running, port, key };
}

/** Counts the occurrences of a message in the log. */
const times = ({ stderr }: Running, what: RegExp): number => stderr().match(what)?.length ?? 0;

/** Counts a message in the log incrementally, because the log of a long load is long. */
function counted({ child }: Running, what: RegExp): () => number {
  let count = 0;
  let rest = '';
  child.stderr?.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    count += lines.filter((line) => what.test(line)).length;
  });
  return () => count;
}

/** The living children of a process. */
async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
  );
  return pids
    .filter((_, at) => {
      const stat = stats[at] ?? '';
      const [state = 'Z', of] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return /[^ZX]/.test(state) && Number(of) === parent;
    })
    .map(Number);
}

fault(
  'F36',
  'workers replaced one by one, under load over kept-alive and new connections',
  '0 of ≥ 5,000 requests fail over 15 replacements (a request that meets the close of an idle ' +
    'connection is repeated); the stop after them takes ≤ 2 s',
  async (t) => {
    const { running, port, key } = await ofTwoWorkers(t);
    const replaced = counted(running, /all 2 workers were replaced/);
    const dropped = counted(running, /"status":(499|"broken")/);
    const loads = [true, false].map((keepAlive) =>
      openLoad(t, { port, key }, QUESTIONS, RATE, keepAlive),
    );
    const more = (count: number): Promise<void> => {
      const goals = loads.map(({ answers }) => answers.length + count);
      return until('requests are answered', () =>
        loads.every(({ answers }, at) => answers.length >= (goals[at] ?? 0)),
      );
    };
    await more(RATE);
    for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
      running.child.kill('SIGHUP');
      await until('all are replaced', () => replaced() === cycle);
      // Thousands of requests are answered during the replacements.
      await more(byLength(RATE, 50));
    }
    const answers = (await Promise.all(loads.map((load) => load.stop()))).flat();
    const failed = answers.filter(({ status }) => status !== 200);
    t.same(
      failed.map(({ status, text }) => `${status} ${text.slice(0, 100)}`),
      [],
    );
    const begun = performance.now();
    running.child.kill('SIGTERM');
    t.equal(await running.ended, 0);
    t.equal(dropped(), 0, 'each request that a worker has received is answered');
    return {
      replacements: CYCLES,
      requests: answers.length,
      failed: failed.length,
      repeated: answers.filter(({ isRepeated }) => isRepeated).length,
      'longest request': `${Math.round(quantile(answers, 1))} ms`,
      'stopped in': within(performance.now() - begun, 2_000),
    };
  },
);

fault(
  'F36b',
  'workers killed with SIGKILL while they are replaced; the primary process killed',
  'the number of workers is restored each time; no worker outlives the primary process',
  async (t) => {
    const { running, port, key } = await ofTwoWorkers(t);
    const { pid: first = 0 } = running.child;
    const isWhole = async (): Promise<boolean> => (await childrenOf(first)).length === 2;
    const answers = async (): Promise<boolean> =>
      (await send(false, { port, key }, { path: '/v3/prices' })).status === 200;
    const rounds = byLength(2, 10);
    let struck = 0;
    for (let round = 0; struck < rounds; round += 1) {
      const before = await childrenOf(first);
      running.child.kill('SIGHUP');
      const isNew = (pid: number): boolean => !before.includes(pid);
      await until('a new one starts', async () => (await childrenOf(first)).some(isNew));
      // The worker to be replaced and its replacement.
      const now = await childrenOf(first);
      const victim = struck % 2 === 0 ? before[0] : now.find(isNew);
      // An already exited worker was not killed: the round proves nothing.
      if (victim !== undefined && sendSignal(victim, 'SIGKILL')) struck += 1;
      await until('the round is over', () => {
        // The worker that was killed last is excluded.
        const over = /workers? (was|were) replaced|a new worker could not start/g;
        return times(running, over) === round + 1;
      });
      await until('there are two', isWhole);
      await until('they answer', answers);
    }

    const workers = await childrenOf(first);
    sendSignal(first, 'SIGKILL');
    const killed = performance.now();
    await running.ended;
    const left = async (): Promise<string[]> => {
      const all = await Promise.all(
        workers.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
      );
      return all.filter((stat) => /^\d+ \(.*\) [^ZX]/.test(stat));
    };
    await until('no worker is left', async () => (await left()).length === 0);
    return {
      'killed during a replacement': rounds,
      'workers gone after': within(performance.now() - killed, 2_000),
    };
  },
);
