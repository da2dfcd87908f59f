import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { testDatabase } from '../../support/database/database.ts';
import type { ConnectionAnswer } from '../../support/http/load-connection.ts';
import { startLoadThread } from '../../support/http/load-thread.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { postText, RawConnection, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { quantile, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';
import { connectionsTo, slowLoris } from './slow-loris.ts';

type Test = typeof t;

const SERIES = { options: { includeSeries: true } };
const HOST = 'Host: test\r\n';

/** The log lines of a service at level error. */
const failuresIn = ({ running }: ServiceProcess): string[] =>
  running
    .stderr()
    .split('\n')
    .filter((line) => /^\{"level":(50|60),/.test(line));

const database = await testDatabase(t);
await fill(database, { prices: 60, points: byLength(1_500, 3_000) });

const TIMES = byLength(
  {
    HEADERS_TIMEOUT_MS: '500',
    REQUEST_TIMEOUT_MS: '1000',
    STALL_TIMEOUT_MS: '2000',
    KEEP_ALIVE_TIMEOUT_MS: '60000',
  },
  {},
);
const [HEADERS_MS, REQUEST_MS, STALL_MS] = byLength([500, 1_000, 2_000], [10_000, 15_000, 30_000]);

/**
 * Stalled readers of large answers, one after another (concurrent ones are F47). Returns the time
 * from the last byte sent to the last close, and the unread bytes of each.
 */
async function readers(test: Test, service: ServiceProcess, count: number, arrivalMs: number) {
  const connections: RawConnection[] = [];
  for (let at = 0; at < count; at += 1) {
    const connection = new RawConnection(test, service.port);
    connection.socket.pause();
    connection.socket.write(postText(service, BULK_MARKET.slug, SERIES));
    connections.push(connection);
    await pause(arrivalMs / count);
  }
  let most = 0;
  let since = performance.now();
  const held = async (): Promise<number> => {
    const known = await connectionsTo(service.port);
    const mine = connections.flatMap(({ socket }) => known.get(socket.localPort ?? 0) ?? []);
    const open = mine.filter(({ isOpen }) => isOpen);
    const unread = open.reduce((sum, each) => sum + each.unread, 0);
    if (unread > most) [most, since] = [unread, performance.now()];
    return open.length;
  };
  await until('they are connected', () => connections.every(({ socket }) => !socket.connecting));
  await until('they are dropped', async () => {
    await pause(250);
    return (await held()) === 0;
  });
  return { ms: performance.now() - since, unreadMb: most / 2 ** 20 / count };
}

/** Other clients: a load thread, and its latencies before the slow clients. */
async function others(test: Test, service: ServiceProcess) {
  const ask = { path: `/v3/prices/${BULK_MARKET.slug}`, body: '{}' };
  // The idle timeout must not close the connections of a client that stalls and sends late.
  const load = startLoadThread(test, service, ask, byLength(false, true));
  const all = { ...ask, body: JSON.stringify(SERIES) };
  const answered = async () => (await send(false, service, all)).status === 200;
  await until('the longest is answered', answered);
  load.pace({ perSecond: byLength(10, 50), lines: 100 });
  const [from, to] = byLength([5, 10], [250, 1_000]) as [number, number];
  await until('others are answered', () => load.answers.length >= to);
  return { load, before: load.answers.slice(from) };
}

/** Clients that send headers or a body slowly: a few bytes ten times a second. */
function slowClients({ port, key }: ServiceProcess, count: number, arrivalMs: number) {
  const post =
    `POST /v3/prices/${BULK_MARKET.slug} HTTP/1.1\r\n${HOST}x-api-key: ${key}\r\n` +
    'Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{';
  return slowLoris({ port, arrivalMs, dripMs: 100 }, [
    { count, first: `GET /live HTTP/1.1\r\n${HOST}`, drip: 'X-A: b\r\n' },
    { count, first: post, drip: ' ' },
  ]);
}

/** Asserts the bounds of other clients while slow clients are connected. */
function answered(
  test: Test,
  service: ServiceProcess,
  meanwhile: readonly ConnectionAnswer[],
): void {
  // The stall timeout also applies to connections without any traffic.
  test.same(
    meanwhile.filter(({ status, ms }) => status !== 200 && ms < HEADERS_MS),
    [],
    'all others were answered',
  );
  test.same(failuresIn(service), []);
}

fault(
  'F16',
  'slow loris: headers, bodies, readers',
  'each connection is closed within its timeout plus 1 s; others wait ≤ 2 × as long as without',
  async (t) => {
    const service = await startServiceProcess(t, database, TIMES);
    const count = byLength(20, 500);
    // Slow clients connect one after another; all at once they are F16b.
    const begin = await slowClients(service, count, byLength(400, 5_000));
    const { load, before } = await others(t, service);
    const seen = load.answers.length;
    const [[headers, bodies], held] = await Promise.all([
      begin(),
      readers(t, service, count, byLength(400, 45_000)),
    ]);
    t.same([headers.statuses, bodies.statuses], [[408], [408]], 'slow senders get 408');
    const meanwhile = (await load.stop()).slice(seen);
    answered(t, service, meanwhile);
    return {
      'sockets for headers and for bodies, each': count,
      'slow readers': count,
      headers: within(headers.ms, HEADERS_MS + 1_000),
      bodies: within(bodies.ms, REQUEST_MS + 1_000),
      readers: within(held.ms, 2 * STALL_MS + 1_000),
      'MB unread by each': Number(held.unreadMb.toFixed(1)),
      'other requests': meanwhile.length,
      'p99 of others': within(quantile(meanwhile, 0.99), 2 * quantile(before, 0.99)),
    };
  },
);

fault(
  'F16b',
  'slow loris, all connections at once: headers, bodies',
  'each connection is closed within its timeout plus 1 s; others wait ≤ 2 × as long as without',
  async (t) => {
    const service = await startServiceProcess(t, database, TIMES);
    const count = byLength(20, 500);
    const begin = await slowClients(service, count, 0);
    const { load, before } = await others(t, service);
    const seen = load.answers.length;
    const [headers, bodies] = await begin();
    t.same([headers.statuses, bodies.statuses], [[408], [408]], 'slow senders get 408');
    const meanwhile = (await load.stop()).slice(seen);
    answered(t, service, meanwhile);
    return {
      'sockets for headers and for bodies, each': count,
      headers: within(headers.ms, HEADERS_MS + 1_000),
      bodies: within(bodies.ms, REQUEST_MS + 1_000),
      'other requests': meanwhile.length,
      'p99 of others': within(quantile(meanwhile, 0.99), 2 * quantile(before, 0.99)),
      'longest of others': `${Math.round(quantile(meanwhile, 1))} ms`,
    };
  },
);
