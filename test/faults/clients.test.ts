import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { BULK_MARKET, fill } from '../support/bulk.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { byLength, fault, within } from '../support/faults.ts';
import { flood } from '../support/flood.ts';
import { agentOf, quantile, send } from '../support/load.ts';
import { connectionsTo, loris } from '../support/loris.ts';
import { type Served, served } from '../support/served.ts';
import { Caller, listening, postText, until } from '../support/sockets.ts';

type Test = typeof t;

const SERIES = { options: { includeSeries: true } };
const HOST = 'Host: test\r\n';

/** What the log of a service holds for its own failures. */
const failuresIn = ({ running }: Served): string[] =>
  running
    .stderr()
    .split('\n')
    .filter((line) => /^\{"level":(50|60),/.test(line));

async function bulky(test: Test, prices: number, points: number): Promise<TestDatabase> {
  const database = await testDatabase(test);
  await fill(database, { prices, points });
  return database;
}

/** How many sessions of the database run a statement. */
async function active({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  );
  return rows[0].sessions;
}

fault(
  'F15',
  'clients that leave',
  'no statement runs ≤ 300 ms after the last left; the pool is whole; 0 × 500',
  async (t) => {
    const database = await bulky(t, 60, 500);
    const service = await listening(t, database, { PRICE_BOOK_BYTES: '0' });
    const text = postText(service, BULK_MARKET.slug, SERIES);
    const count = byLength(150, 1_000);
    let random = 7;
    for (let sent = 0; sent < count; sent += 10) {
      const callers = Array.from({ length: 10 }, () => new Caller(t, service.port));
      for (const { socket } of callers) socket.write(text);
      for (const { socket } of callers) {
        random = (random * 48_271) % 2_147_483_647;
        setTimeout(() => socket.destroy(), 5 + (random % 46));
      }
      await Promise.all(callers.map(({ closed }) => closed));
    }
    const left = performance.now();
    const { slots } = database.client.reads;
    await until('nothing runs', async () => slots.taken === 0 && (await active(database)) === 0);
    const afterwards = performance.now() - left;
    t.same(service.failures(), [], 'a client that leaves is no failure of the service');
    const last = await send(false, service, {
      path: `/v3/prices/${BULK_MARKET.slug}`,
      body: JSON.stringify(SERIES),
    });
    t.equal(last.status, 200);
    return { 'requests left': count, failures: 0, 'nothing runs after': within(afterwards, 300) };
  },
);

const TIMES = byLength(
  {
    HEADERS_TIMEOUT_MS: '500',
    REQUEST_TIMEOUT_MS: '1000',
    STALL_TIMEOUT_MS: '2000',
    KEEP_ALIVE_TIMEOUT_MS: '60000',
  },
  { STALL_TIMEOUT_MS: '15000' },
);
const [HEADERS_MS, REQUEST_MS, STALL_MS] = byLength([500, 1_000, 2_000], [10_000, 15_000, 15_000]);

/**
 * Readers who ask for much and take nothing of it, one after another: many largest answers at once
 * are F45. Returns how long the last of them is held after the last byte that went to any, and how
 * much lay there for each.
 */
async function readers(test: Test, service: Served, count: number, comeInMs: number) {
  const callers: Caller[] = [];
  for (let at = 0; at < count; at += 1) {
    const caller = new Caller(test, service.port);
    caller.socket.pause();
    caller.socket.write(postText(service, BULK_MARKET.slug, SERIES));
    callers.push(caller);
    await pause(comeInMs / count);
  }
  let most = 0;
  let since = performance.now();
  const held = async (): Promise<number> => {
    const known = await connectionsTo(service.port);
    const mine = callers.flatMap(({ socket }) => known.get(socket.localPort ?? 0) ?? []);
    const open = mine.filter(({ isOpen }) => isOpen);
    const unread = open.reduce((sum, each) => sum + each.unread, 0);
    if (unread > most) [most, since] = [unread, performance.now()];
    return open.length;
  };
  await until('they are connected', () => callers.every(({ socket }) => !socket.connecting));
  await until('they are dropped', async () => {
    await pause(250);
    return (await held()) === 0;
  });
  return { ms: performance.now() - since, unreadMb: most / 2 ** 20 / count };
}

/** Others, who ask all the time: a thread that asks, and what they waited for in a warm service. */
async function others(test: Test, service: Served) {
  const ask = { path: `/v3/prices/${BULK_MARKET.slug}`, body: '{}' };
  // What a client that stalled sends late must not find that its connections were idle.
  const load = flood(test, service, ask, byLength(false, true));
  const all = { ...ask, body: JSON.stringify(SERIES) };
  const answered = async () => (await send(false, service, all)).status === 200;
  await until('the longest is answered', answered);
  load.pace({ perSecond: byLength(10, 50), lines: 100 });
  const [from, to] = byLength([5, 10], [500, 2_000]) as [number, number];
  await until('others are answered', () => load.answers.length >= to);
  return { load, before: load.answers.slice(from) };
}

fault(
  'F16',
  'slow loris: headers, bodies, readers',
  'each is closed in its time and a second; others wait ≤ 2 × as long as without',
  async (t) => {
    const database = await bulky(t, 60, byLength(1_500, 3_000));
    const service = await served(t, database, TIMES);
    const count = byLength(20, 500);
    const { port } = service;
    const post =
      `POST /v3/prices/${BULK_MARKET.slug} HTTP/1.1\r\n${HOST}x-api-key: ${service.key}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{';
    // Slow clients come by and by: many at once are F17.
    const some = { port, count, comeInMs: byLength(400, 5_000) };
    const [withHeaders, withBodies] = await Promise.all([
      loris({ ...some, first: `GET /live HTTP/1.1\r\n${HOST}`, drip: 'X-A: b\r\n' }),
      loris({ ...some, first: post, drip: ' ' }),
    ]);
    const { load, before } = await others(t, service);
    const seen = load.answers.length;
    const [headers, bodies, held] = await Promise.all([
      withHeaders(),
      withBodies(),
      readers(t, service, Math.min(count, 100), some.comeInMs),
    ]);
    t.same([headers.statuses, bodies.statuses], [[408], [408]], 'who sends slowly is told 408');
    const meanwhile = (await load.stop()).slice(seen);
    // A connection on which nothing comes or goes for so long is one of those as well.
    t.same(
      meanwhile.filter(({ status, ms }) => status !== 200 && ms < HEADERS_MS),
      [],
      'all others were answered',
    );
    t.same(failuresIn(service), []);
    return {
      'sockets for headers and for bodies, each': count,
      'slow readers': Math.min(count, 100),
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
  'F17',
  'a flood of idle connections',
  'refused beyond CONNECTIONS_MAX; ≤ 60 MB more memory; who is inside is answered; a stop ' +
    'takes ≤ 25 s',
  async (t) => {
    const most = byLength(200, 2_000);
    const flood = byLength(500, 5_000);
    const service = await served(t, await testDatabase(t), {
      CONNECTIONS_MAX: String(most),
      HEADERS_TIMEOUT_MS: '120000',
      REQUEST_TIMEOUT_MS: '120000',
    });
    const agent = agentOf(t, 1);
    t.equal((await send(agent, service, { path: '/live' })).status, 200);
    const before = await service.memory();
    let closed = 0;
    const sockets: Socket[] = [];
    for (let at = 0; at < flood; at += 1) {
      const socket = connect({ port: service.port, host: '127.0.0.1' });
      socket.on('error', () => {});
      socket.on('close', () => {
        closed += 1;
      });
      socket.resume();
      sockets.push(socket);
      if (at % 100 === 99) await pause(1);
    }
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    await until('the rest is refused', () => closed >= flood - most + 1);
    t.equal((await send(agent, service, { path: '/live' })).status, 200, 'who is in is answered');
    const grew = (await service.memory()) - before;
    const begun = performance.now();
    service.running.child.kill('SIGTERM');
    t.equal(await service.running.ended, 0);
    return {
      connections: flood,
      refused: closed >= flood ? flood - most + 1 : closed,
      'memory grew': within(grew, 60, 'MB'),
      'stopped in': within(performance.now() - begun, 25_000),
    };
  },
);
