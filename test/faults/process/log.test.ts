import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import { fillUp, makeRoom, mountTmpfs, unmount } from '../../support/database/small-disk.ts';
import { startLoadThread } from '../../support/http/load-thread.ts';
import { samplesAt } from '../../support/http/metrics.ts';
import { pipe } from '../../support/http/pipe.ts';
import { keyFor } from '../../support/http/service.ts';
import { memoryOf } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { type Figures, failedOf, within } from '../../support/process/figures.ts';
import { HEAP_SAMPLER } from '../../support/process/heap.ts';
import { startService } from '../../support/process/programs.ts';
import { sendSignal } from '../../support/process/signals.ts';
import { fault } from '../../support/run/faults.ts';
import { makeFolder } from '../../support/run/folders.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const database = await seededDatabase(t);
const key = await keyFor(database, ['prices:*']);

/** A free port: here the log, which usually contains the port, cannot be read. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Short runs fill the buffer sooner, with several lines a request. */
const LINES = byLength<Readonly<Record<string, string>>>({ LOG_LEVEL: 'trace' }, {});

/** Starts the service with its log on a file descriptor, and closes it in this process. */
async function loggingTo(test: Test, log: number, env: Readonly<Record<string, string>>) {
  const [port, metrics] = [await freePort(), await freePort()];
  const running = startService(
    test,
    {
      DATABASE_URL: database.url,
      PORT: String(port),
      METRICS_PORT: String(metrics),
      ...HEAP_SAMPLER,
      ...env,
    },
    [],
    log,
  );
  closeSync(log);
  const isLive = () =>
    fetch(`http://127.0.0.1:${port}/live`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('the service answers', isLive);
  const { child } = running;
  const linesLost = async (): Promise<number> =>
    (await samplesAt(`http://127.0.0.1:${metrics}/metrics`))
      .filter(({ name }) => name === 'prices_log_lines_lost_total')
      .reduce((sum, { value }) => sum + value, 0);
  /** Requests that the metrics count, also those that were refused before they were parsed. */
  const requestsCounted = async (): Promise<number> =>
    (await samplesAt(`http://127.0.0.1:${metrics}/metrics`))
      .filter(
        ({ name, labels }) =>
          name === 'prices_request_duration_seconds_count' ||
          (name === 'prices_refusals_total' && labels['code'] === 'malformed_request'),
      )
      .reduce((sum, { value }) => sum + value, 0);
  /** Memory of the process and its children after a garbage collection. */
  const memory = async (): Promise<number> => {
    const { pid = 0 } = child;
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    const pids = [pid, ...children.trim().split(' ').filter(Boolean).map(Number)];
    // Uncollected garbage does not count.
    for (const each of pids) sendSignal(each, 'SIGUSR2');
    await pause(500);
    const all = await Promise.all(pids.map(memoryOf));
    return all.reduce((sum, each) => sum + each, 0);
  };
  return { running, port, linesLost, requestsCounted, memory };
}

type Logging = Awaited<ReturnType<typeof loggingTo>>;

const ASK = { path: '/v3/prices/nickel', body: '{"filters":{"codes":["CP-NI-0001"]}}' };
const PER_SECOND = byLength(2_000, 400);

/** Runs a closed loop while the log is blocked; returns the effect on the service. */
async function underLoad(
  t: Test,
  { port, memory, linesLost }: Logging,
  { hinder, ms }: { readonly hinder: () => Promise<void>; readonly ms: number },
) {
  const load = startLoadThread(t, { port, key }, ASK);
  // Warm-up: the process grows to the memory of the load itself.
  load.pace({ perSecond: byLength(PER_SECOND, 1_500), lines: 16 });
  await pause(byLength(500, 25_000));
  load.pace({ perSecond: PER_SECOND, lines: 16 });
  await pause(byLength(0, 2_000));
  const before = await memory();
  const answeredBefore = load.answers.length;
  t.equal(await linesLost(), 0, 'a log that can be written loses nothing');
  await hinder();
  const begun = performance.now();
  let most = before;
  // Runs until lines are lost; the time depends on the machine.
  while (performance.now() - begun < ms || (await linesLost()) === 0) {
    most = Math.max(most, await memory());
    await pause(byLength(200, 5_000));
  }
  const answers = await load.stop();
  const failed = answers.filter(({ status }) => status !== 200);
  const grown = within(most - before, 20, 'MB');
  return {
    requests: answers.length,
    'of them meanwhile': answers.length - answeredBefore,
    failed: failedOf(failed.length),
    // A process that has just started still grows.
    'more memory': byLength<Figures[string]>(`${Math.round(most - before)} MB`, grown),
    'lines lost': await linesLost(),
  };
}

/** The complete lines of a log. */
const linesOf = (text: string) =>
  text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** Fills a file system despite concurrent writes, ignoring ENOSPC. */
const fillWholly = (mount: string): Promise<void> =>
  fillUp(mount).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC') throw error;
  });

const MUST = '0 exits, 0 failed requests, ≤ 20 MB more memory, lost lines are counted';

fault('F55', 'the disk of the log is full, under load', MUST, async (t) => {
  const mount = await mountTmpfs(32);
  const path = mount === null ? '/dev/full' : join(mount, 'log');
  const service = await loggingTo(t, openSync(path, 'a'), LINES);
  t.teardown(async () => {
    service.running.child.kill('SIGKILL');
    await service.running.ended;
    if (mount !== null) await unmount(mount);
  });
  const hinder = async () => (mount === null ? undefined : fillWholly(mount));
  const figures = await underLoad(t, service, { hinder, ms: byLength(0, 45_000) });
  t.equal(service.running.child.exitCode, null);
  if (mount !== null) {
    await makeRoom(mount);
    const dropped = () =>
      linesOf(readFileSync(path, 'utf8')).find(({ msg }) => /were dropped/.test(String(msg)));
    await until('the log continues', () => dropped() !== undefined);
    t.match(dropped(), { level: 40, count: await service.linesLost() });
    await fillWholly(mount);
  }
  service.running.child.kill('SIGTERM');
  t.equal(await service.running.ended, 0, 'the service stops');
  return { disk: mount === null ? '/dev/full' : 'tmpfs', ...figures };
});

fault('F55b', 'the reader of the log stalls, then closes, under load', MUST, async (t) => {
  const log = await pipe(t);
  const service = await loggingTo(t, log.writeEnd, LINES);
  let text = '';
  const reading = setInterval(() => {
    text += log.read();
  }, 20);
  t.teardown(() => clearInterval(reading));
  const hinder = async () => clearInterval(reading);
  const figures = await underLoad(t, service, { hinder, ms: byLength(0, 120_000) });
  text += log.read();
  const reported = (): number =>
    linesOf(text)
      .filter(({ msg }) => /were dropped/.test(String(msg)))
      .reduce((sum, { count }) => sum + Number(count), 0);
  await until('the service reports what it dropped', async () => {
    text += log.read();
    return reported() === (await service.linesLost());
  });
  log.closeReader();
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => fetch(`http://127.0.0.1:${service.port}/v3/nowhere`)),
  );
  t.ok(responses.every(({ status }) => status === 404));
  t.equal(service.running.child.exitCode, null);
  service.running.child.kill('SIGTERM');
  t.equal(await service.running.ended, 0, 'the service stops');
  return figures;
});

const LONG = `/${'nowhere'.repeat(40)}`;
/** Rejected requests of several kinds, and a health check. @param foreign another market's key */
const askedWith = (foreign: string): readonly string[] =>
  [
    ['GET /v3/prices'],
    ['POST /v3/prices/nickel', `x-api-key: ${foreign}`, 'content-length: 0'],
    [`GET ${LONG}`],
    ['PUT /v3/prices'],
    ['GET /v3/me', 'x-api-key: nonsense'],
    ['GET /health'],
    ['nonsense'],
  ].map(([line, ...headers]) => [`${line} HTTP/1.1`, 'host: a', ...headers, '', ''].join('\r\n'));

/** Sends requests in turn for a given time, over one connection until the service closes it. */
async function askAgain(port: number, asked: readonly string[], ms: number): Promise<number> {
  const end = performance.now() + ms;
  let count = 0;
  while (performance.now() < end) {
    const socket = connect(port, '127.0.0.1');
    let next = count;
    const ask = (): void => {
      socket.write(asked[next++ % asked.length] ?? '');
    };
    // Each answer is short and comes in one piece.
    socket.on('data', () => {
      count += 1;
      if (performance.now() < end) ask();
      else socket.end();
    });
    ask();
    await once(socket, 'close');
  }
  return count;
}

fault(
  'F55c',
  'refusals (401, 403, 404, 405, 429, 503, invalid HTTP) and health checks, as many as the ' +
    'machine can send, with and without a key',
  'the log grows by ≤ 40 lines and ≤ 0.02 MB a minute; each request is counted in the metrics',
  async (t) => {
    const folder = await makeFolder();
    t.teardown(folder.remove);
    const path = join(folder.path, 'log');
    const service = await loggingTo(t, openSync(path, 'a'), {
      FAILED_AUTH_PER_MINUTE: '30',
      // Addresses that do not exist are refused with 503 instead of waiting for their turn.
      WAITING_MS_MAX: '1',
    });
    const foreign = await keyFor(database, ['prices:copper']);
    await until('the checks of the start are logged', () => statSync(path).size > 0);
    const [bytesBefore, linesBefore] = [statSync(path).size, linesOf(readFileSync(path, 'utf8'))];
    const countedBefore = await service.requestsCounted();
    const begun = performance.now();
    const ms = byLength(1_500, 60_000);
    const all = await Promise.all(
      Array.from({ length: 8 }, () => askAgain(service.port, askedWith(foreign), ms)),
    );
    const minutes = Math.max(1, (performance.now() - begun) / 60_000);
    const count = all.reduce((sum, each) => sum + each, 0);
    const isCounted = async () => (await service.requestsCounted()) - countedBefore >= count;
    await until('all are counted', isCounted);
    const lines = linesOf(readFileSync(path, 'utf8')).slice(linesBefore.length);
    const codes = new Set(lines.map(({ code }) => code));
    for (const code of ['invalid_api_key', 'insufficient_scope', 'not_found', 'malformed_request'])
      t.ok(codes.has(code), `a line names ${code}`);
    return {
      requests: count,
      'lines a minute': within(lines.length / minutes, 40, 'lines'),
      'log grew a minute': within(
        (statSync(path).size - bytesBefore) / 2 ** 20 / minutes,
        0.02,
        'MB',
      ),
    };
  },
);
