import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { exchange, RawConnection, until } from '../support/http/sockets.ts';
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

t.test(
  'a replaced worker answers on its idle connections for the grace, and closes them',
  async (t) => {
    const { service, connections } = await ofWorkers(t, 1, { STOP_GRACE_MS: '60000' });
    const asking = connections(4);
    await ask(asking, 1);
    service.child.kill('SIGHUP');
    await service.until('stderr', /Server listening[\s\S]*Server listening/);
    await until('the worker closes its connections', async () => {
      const [connection] = asking as [RawConnection];
      await ask([connection], answers(connection) + 1);
      if (wasToldToClose(connection)) asking.shift();
      return asking.length < 4;
    });
    await ask(asking, 2);
    t.ok(asking.every(wasToldToClose));
    await replaced(service, 1);
    const closing = await ofWorkers(t, 1, { STOP_GRACE_MS: '1' });
    const idle = closing.connections(4);
    await ask(idle, 1);
    closing.service.child.kill('SIGHUP');
    await replaced(closing.service, 1);
    await until('they are closed', () => idle.every(({ socket }) => socket.closed));
  },
);

t.test('a request that has come in part is answered by the worker that it came to', async (t) => {
  const env = { STOP_GRACE_MS: '60000', SHUTDOWN_TIMEOUT_MS: '120000' };
  const { service, connections } = await ofWorkers(t, 1, env);
  const half = connections(4);
  await ask(half, 1, LIVE + LIVE.slice(0, HALF));
  service.child.kill('SIGHUP');
  await until('another worker answers', async () => {
    await ask(connections(1), 1);
    return answerers(service).size > 1;
  });
  await ask(half, 2, LIVE.slice(HALF));
  t.ok(half.every(wasToldToClose), 'they were answered by the one that ends');
  await replaced(service, 1);
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
