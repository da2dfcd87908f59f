import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { roledDatabase, serviceClient } from '../../support/database/roles.ts';
import { counted, WITH_METRICS } from '../../support/http/metrics.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { postText, RawConnection, startListening, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { agentOf, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

const SERIES = { options: { includeSeries: true } };

/** Counts the database sessions that run a statement. */
async function active({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  );
  return rows[0].sessions;
}

fault(
  'F15',
  'clients that disconnect',
  'no statement runs 300 ms after the last client disconnected; the pool is complete; 0 × 500',
  async (t) => {
    const database = await roledDatabase(t);
    await fill(database, { prices: 60, points: 500 });
    // Its account has the interval after which PostgreSQL ends statements of closed connections.
    const client = serviceClient(t, database);
    const service = await startListening(t, { ...database, client }, { PRICE_BOOK_BYTES: '0' });
    const text = postText(service, BULK_MARKET.slug, SERIES);
    const count = byLength(150, 1_000);
    let random = 7;
    for (let sent = 0; sent < count; sent += 10) {
      const connections = Array.from({ length: 10 }, () => new RawConnection(t, service.port));
      for (const { socket } of connections) socket.write(text);
      for (const { socket } of connections) {
        random = (random * 48_271) % 2_147_483_647;
        setTimeout(() => socket.destroy(), 5 + (random % 46));
      }
      await Promise.all(connections.map(({ closed }) => closed));
    }
    const left = performance.now();
    const { slots } = client.reads;
    await until('nothing runs', async () => slots.inUse === 0 && (await active(database)) === 0);
    const afterwards = performance.now() - left;
    t.same(service.failures(), [], 'a client that leaves is no failure of the service');
    const last = await send(false, service, {
      path: `/v3/prices/${BULK_MARKET.slug}`,
      body: JSON.stringify(SERIES),
    });
    t.equal(last.status, 200);
    return {
      'abandoned requests': count,
      failures: within(service.failures().length, 0, 'answers'),
      'no statement runs after': within(afterwards, 300),
    };
  },
);

fault(
  'F17',
  'a flood of idle connections',
  'rejected beyond CONNECTIONS_MAX; ≤ 60 MB more memory; accepted connections are answered; a ' +
    'stop takes ≤ 25 s',
  async (t) => {
    const most = byLength(200, 2_000);
    const flood = byLength(500, 5_000);
    const service = await startServiceProcess(t, await testDatabase(t), {
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
      // One network has a quarter of the connections.
      const localAddress = `127.0.0.${2 + (at % 8)}`;
      const socket = connect({ port: service.port, host: '127.0.0.1', localAddress });
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
    t.equal(
      (await send(agent, service, { path: '/live' })).status,
      200,
      'accepted connections are answered',
    );
    const grew = (await service.memory()) - before;
    const begun = performance.now();
    service.running.child.kill('SIGTERM');
    t.equal(await service.running.ended, 0);
    return {
      connections: flood,
      rejected: closed >= flood ? flood - most + 1 : closed,
      'memory grew': within(grew, 60, 'MB'),
      'stopped in': within(performance.now() - begun, 25_000),
    };
  },
);

fault(
  'F64',
  'one network opens as many connections as the service takes, and sends nothing',
  '75 of 75 new connections of another network are answered; those beyond a quarter are closed',
  async (t) => {
    const most = byLength(200, 2_000);
    const service = await startServiceProcess(t, await testDatabase(t), {
      ...WITH_METRICS,
      CONNECTIONS_MAX: String(most),
      HEADERS_TIMEOUT_MS: '120000',
      REQUEST_TIMEOUT_MS: '120000',
    });
    let closed = 0;
    const sockets = Array.from({ length: most }, () => {
      const localAddress = '127.0.0.2';
      const socket = connect({ port: service.port, host: '127.0.0.1', localAddress });
      socket.on('error', () => {});
      socket.on('close', () => {
        closed += 1;
      });
      return socket.resume();
    });
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    await until('three quarters are closed', () => closed === (most * 3) / 4);
    const statuses: unknown[] = [];
    for (let at = 0; at < 75; at += 1) {
      const answer = send(false, service, { path: '/live' });
      statuses.push(await answer.then(({ status }) => status).catch(({ code }) => code));
    }
    const refused = { name: 'prices_connections_refused_total', labels: {} };
    t.equal(await counted(service, refused), closed, 'each is counted');
    const lines = service.running.stderr().match(/"msg":"connections? refused"/g) ?? [];
    return {
      'idle connections': most,
      closed,
      'log lines': within(lines.length, 1, 'lines'),
      'new connections not answered': within(
        statuses.filter((status) => status !== 200).length,
        0,
        'connections',
      ),
    };
  },
);
