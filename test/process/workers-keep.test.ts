import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { keyFor } from '../support/http/service.ts';
import { exchange, postText, RawConnection, until } from '../support/http/sockets.ts';
import { type Running, startService } from '../support/process/programs.ts';

type Test = Pick<typeof t, 'teardown'>;

const LIVE = 'GET /live HTTP/1.1\r\nHost: test\r\n\r\n';
const HALF = 20;

const database = await testDatabase(t);

async function ofWorkers(test: Test, count: number, env: Readonly<Record<string, string>> = {}) {
  const service = startService(test, {
    DATABASE_URL: database.url,
    WORKERS: String(count),
    PRICE_BOOK_BYTES: '0',
    HEADERS_TIMEOUT_MS: '120000',
    REQUEST_TIMEOUT_MS: '120000',
    ...env,
  });
  const log = await service.until('stderr', /workers? answers? at [^"]+/);
  const port = Number(/workers? answers? at http:\/\/[\d.]+:(\d+)/.exec(log)?.[1]);
  const connections = (many: number): RawConnection[] =>
    Array.from({ length: many }, () => {
      const connection = new RawConnection(test, port);
      connection.socket.resume();
      return connection;
    });
  return { service, port, connections };
}

const wasToldToClose = ({ text }: RawConnection): boolean => /^connection: close/im.test(text);

const answers = ({ text }: RawConnection): number => text.match(/HTTP\/1\.1 200 /g)?.length ?? 0;

/** Sends a request over each, or a part of one, and waits until each has so many answers. */
async function ask(
  connections: readonly RawConnection[],
  count: number,
  text = LIVE,
): Promise<void> {
  for (const { socket } of connections) socket.write(text);
  await until(`${count} answers`, () => connections.every((each) => answers(each) === count));
}

async function replaced(service: Running, times: number): Promise<void> {
  const all = (): number => service.stderr().match(/workers? (was|were) replaced/g)?.length ?? 0;
  await until('all are replaced', () => all() === times);
}

/** The processes that have answered so far. */
const answerers = ({ stderr }: Running): Set<string | undefined> =>
  new Set([...stderr().matchAll(/"pid":(\d+),.*"request completed"/g)].map(([, pid]) => pid));

/** The pid that answered a client; 0 until the log contains it. */
function answererOf({ stderr }: Running, { text }: RawConnection): number {
  const [, id] = /^x-request-id: (\S+)/im.exec(text) ?? [];
  const line = stderr()
    .split('\n')
    .find((each) => each.includes(`"${id}"`) && each.includes('"request completed"'));
  return line ? JSON.parse(line).pid : 0;
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

t.test('connections without a request outlive the workers that they were with', async (t) => {
  const { service, connections } = await ofWorkers(t, 2);
  const used = connections(20);
  const unused = connections(20);
  await ask(used, 1);
  // Simulates requests sent at the moment when the worker closes idle connections.
  for (const times of [1, 2]) {
    service.child.kill('SIGHUP');
    await replaced(service, times);
    await Promise.all([ask(used, times + 1), ask(unused, times)]);
  }
  // All may have come to one of two at first.
  await until('each generation has answered', () => answerers(service).size >= 3);
  t.notOk([...used, ...unused].some(({ socket, text }) => socket.closed || /: close/.test(text)));
  service.child.kill('SIGTERM');
  t.equal(await service.ended, 0);
});

t.test('a request that has come in part is answered by the worker that it came to', async (t) => {
  const env = { STOP_GRACE_MS: '60000', SHUTDOWN_TIMEOUT_MS: '120000' };
  const { service, connections } = await ofWorkers(t, 1, env);
  const half = connections(4);
  const idle = connections(4);
  await ask(half, 1, LIVE + LIVE.slice(0, HALF));
  await ask(idle, 1);
  service.child.kill('SIGHUP');
  await until('it has left its connections', async () => {
    // One at a time: one that is under way is answered and closed.
    const [connection] = idle as [RawConnection];
    await ask([connection], answers(connection) + 1);
    if (wasToldToClose(connection)) idle.shift();
    return answerers(service).size > 1;
  });
  await ask(half, 2, LIVE.slice(HALF));
  t.ok(half.every(wasToldToClose), 'they were answered by the one that ends');
  await replaced(service, 1);
});

t.test('a connection whose answer takes longer than the grace outlives its worker', async (t) => {
  const { service, connections } = await ofWorkers(t, 1, { STOP_GRACE_MS: '1' });
  const key = await keyFor(database, ['prices:*']);
  const [slow, half] = connections(2) as [RawConnection, RawConnection];
  await ask([half], 1, LIVE + LIVE.slice(0, HALF));
  await whileLocked(database, async () => {
    slow.socket.write(postText({ key }, 'nickel', {}));
    await until('it waits', async () => (await lockWaits(database.pool)) === 1);
    service.child.kill('SIGHUP');
    // A connection with a part of a request is closed when the grace is over.
    await half.closed;
  });
  await until('it is answered', () => answers(slow) === 1);
  await replaced(service, 1);
  await ask([slow], 2);
  await until('each worker has answered', () => answerers(service).size === 2);
  t.notOk(slow.socket.closed);
});

t.test('a connection left to a worker that is killed goes to another one', async (t) => {
  const { service, connections } = await ofWorkers(t, 2);
  // Each starts after the one before it: they end in the order of their numbers.
  service.child.kill('SIGHUP');
  await replaced(service, 1);
  const used: RawConnection[] = [];
  let pids: number[] = [];
  const withThe = (pid: number): RawConnection[] =>
    used.filter((each) => answererOf(service, each) === pid);
  await until('each worker has four connections', async () => {
    const [connection] = connections(1) as [RawConnection];
    await ask([connection], 1);
    used.push(connection);
    await until('it is in the log', () => answererOf(service, connection) !== 0);
    pids = [...new Set(used.map((each) => answererOf(service, each)))].sort((a, b) => a - b);
    return pids.length === 2 && pids.every((pid) => withThe(pid).length >= 4);
  });
  const [ending, stopped] = pids as [number, number];
  const left = withThe(ending);
  process.kill(stopped, 'SIGSTOP');
  service.child.kill('SIGHUP');
  // It has left its connections by turns to the one that is stopped and to the new one.
  await until('the first has ended', () => hasEnded(ending));
  process.kill(stopped, 'SIGKILL');
  await replaced(service, 2);
  await ask(left, 2);
  t.notOk(left.some(({ socket }) => socket.closed));
});

t.test('a connection goes to a worker that has room for it', async (t) => {
  const { service, connections } = await ofWorkers(t, 2, { CONNECTIONS_MAX: '20' });
  const used: RawConnection[] = [];
  await until('36 are with a worker', async () => {
    const [connection] = connections(1) as [RawConnection];
    connection.socket.write(LIVE);
    // One that came to a worker without room is closed, and another one comes.
    await until('an answer or none', () => answers(connection) === 1 || connection.socket.closed);
    if (answers(connection) === 1) used.push(connection);
    return used.length === 36;
  });
  // The one that stays has room for a few at most, and the new one for the rest.
  service.child.kill('SIGHUP');
  await replaced(service, 1);
  await ask(used, 2);
  t.notOk(used.some(({ socket }) => socket.closed));
});

t.test('a connection that was used waits for its next request as before', async (t) => {
  const { service, connections } = await ofWorkers(t, 1, { HEADERS_TIMEOUT_MS: '8000' });
  const used = connections(3);
  await ask(used, 1);
  service.child.kill('SIGHUP');
  await replaced(service, 1);
  const [late] = connections(1);
  await until('the time for headers is over', () => late?.text.includes(' 408 ') === true);
  await ask(used, 2);
  t.notOk(used.some(({ socket }) => socket.closed));
});

t.test('a worker that is replaced gives no notice, and one that stops does', async (t) => {
  const { service, port, connections } = await ofWorkers(t, 1, { STOP_NOTICE_MS: '120000' });
  await ask(connections(1), 1);
  service.child.kill('SIGHUP');
  await replaced(service, 1);
  t.notMatch(service.stderr(), /the listener closes/);
  service.child.kill('SIGTERM');
  await service.until('stderr', 'the listener closes in 120000 ms');
  const answer = await exchange(t, port, 'GET /ready HTTP/1.1\r\nHost: test\r\n\r\n');
  t.match(answer, { status: 503, json: { checks: { service: 'shutting_down' } } });
  await until('another signal ends it at once', () => {
    service.child.kill('SIGTERM');
    return service.child.exitCode !== null;
  });
  t.equal(await service.ended, 1);
});
