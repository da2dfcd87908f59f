import { once } from 'node:events';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import {
  getText,
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;
const LAST = 'GET /live HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n';

/** The statuses of the answers that a connection sent, in order. */
const statusesIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status);

/** Counts the parsed requests of a service, from the call on until no more come. */
function parsedOf({ server }: ListeningService['app']): () => Promise<number> {
  let parsed = 0;
  server.on('request', () => {
    parsed += 1;
  });
  return async () => {
    let [seen, calm] = [-1, 0];
    await until('nothing more is read', () => {
      calm = parsed === seen ? calm + 1 : 0;
      seen = parsed;
      return calm > 40;
    });
    return parsed;
  };
}

/** The most that Node reads of a connection at once. */
const CHUNK_BYTES = 65_536;

t.test('a client that reads nothing is not read, and has all its answers later', async (t) => {
  const { app, port } = await startListening(t, await testDatabase(t));
  const unread = parsedOf(app);
  const connection = new RawConnection(t, port);
  connection.socket.pause();
  // More bytes than the system buffers for a connection.
  const large = 24;
  const small = 8_000;
  connection.socket.write(get('/openapi.json').repeat(large) + get('/live').repeat(small) + LAST);
  const parsed = await unread();
  const perChunk = Math.ceil(CHUNK_BYTES / get('/live').length);
  t.ok(parsed <= large + 16 + 2 * perChunk, `${parsed} of ${large + small} were parsed`);
  connection.socket.resume();
  const statuses = statusesIn(await connection.ended());
  t.equal(statuses.length, large + small + 1);
  t.ok(statuses.every((status) => status === '200'));
});

t.test(
  'requests of one connection begin one after another, and are answered in order',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, { PRICE_BOOK_BYTES: '0' });
    const connection = new RawConnection(t, service.port);
    const ask = postText(service, 'nickel', {});
    await whileLocked(database, async () => {
      connection.socket.write(ask + get('/nowhere') + ask + LAST);
      await until('the first waits', async () => (await lockWaits(database.pool)) >= 1);
      t.equal(await lockWaits(database.pool), 1, 'the other has not begun');
    });
    t.same(statusesIn(await connection.ended()), ['200', '404', '200', '200']);
  },
);

t.test('a connection that breaks leaves nothing of its requests behind', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, {
    PRICE_BOOK_BYTES: '0',
    RUNNING_MAX: '1',
    WAITING_MAX: '0',
  });
  const ask = postText(service, 'nickel', {});
  await whileLocked(database, async () => {
    const broken = new RawConnection(t, service.port);
    broken.socket.write(ask.repeat(3));
    await until('the first waits', async () => (await lockWaits(database.pool)) === 1);
    broken.socket.destroy();
    await broken.closed;
  });
  const again = async (): Promise<boolean> => {
    const connection = new RawConnection(t, service.port);
    connection.socket.write(postText(service, 'nickel', {}, 'Connection: close\r\n'));
    return statusesIn(await connection.ended())[0] === '200';
  };
  await until('its slot is free', again);
});

t.test('a connection with too many waiting requests is closed, others are answered', async (t) => {
  const { port } = await startListening(t, await testDatabase(t), {
    PIPELINED_MAX: '4',
    PIPELINED_ALL_MAX: '8',
  });
  const modest = new RawConnection(t, port);
  modest.socket.write(get('/live').repeat(4) + LAST);
  const greedy = new RawConnection(t, port);
  greedy.socket.write(get('/live').repeat(200));
  t.ok(statusesIn(await greedy.ended()).length < 200);
  t.same(statusesIn(await modest.ended()), Array(5).fill('200'));
  const next = new RawConnection(t, port);
  next.socket.write(get('/live').repeat(8) + LAST);
  t.equal(statusesIn(await next.ended()).length, 9, 'slots of the closed connection are free');
});

t.test('open addresses are refused beyond their own bound, health addresses never', async (t) => {
  const { port } = await startListening(t, await testDatabase(t), { OPEN_WAITING_MAX: 2 });
  for (const [path, statuses] of [
    ['/docs/problems', ['200', '503']],
    ['/live', ['200']],
  ] as const) {
    const connections = Array.from({ length: 40 }, () => new RawConnection(t, port));
    for (const { socket } of connections) socket.write(get('/live'));
    await Promise.all(connections.map(({ socket }) => once(socket, 'data')));
    // In one turn of the event loop, so that they arrive in one as well.
    for (const { socket } of connections) socket.write(getText(path, ''));
    const answers = await Promise.all(connections.map((each) => each.ended()));
    t.same([...new Set(answers.flatMap(statusesIn))].sort(), statuses, path);
  }
});

t.test('a client that leaves its refusals unread takes no slot from others', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, { RUNNING_MAX: '1', WAITING_MAX: '0' });
  const unread = parsedOf(service.app);
  const connection = new RawConnection(t, service.port);
  connection.socket.pause();
  // Their answers are more bytes than the system buffers for a connection.
  const count = 12_000;
  connection.socket.write(get('/v3/me').repeat(count) + LAST);
  t.ok((await unread()) < count, 'an answer is stuck');
  const other = new RawConnection(t, service.port);
  other.socket.write(postText(service, 'nickel', {}, 'Connection: close\r\n'));
  t.same(statusesIn(await other.ended()), ['200']);
  connection.socket.resume();
  const statuses = statusesIn(await connection.ended());
  t.equal(statuses.filter((status) => status === '401').length, count);
});

t.test(
  'a request is not too late while an earlier one of its connection is answered',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, {
      PRICE_BOOK_BYTES: '0',
      HEADERS_TIMEOUT_MS: '300',
      REQUEST_TIMEOUT_MS: '300',
    });
    let late = 0;
    service.app.server.on('clientError', () => {
      late += 1;
    });
    const ask = postText(service, 'nickel', {});
    const others = Array.from({ length: 200 }, () => getText('/v3/me', service.key));
    const kept = others.map((text) => text.replace('Connection: close\r\n', ''));
    /** Sends the first part while an answer is held up for too long, and the rest after it. */
    const sent = async (part: string, rest: string): Promise<string[]> => {
      const connection = new RawConnection(t, service.port);
      const before = late;
      await whileLocked(database, async () => {
        connection.socket.write(ask + part);
        await until('the timeout of the request has passed', () => late > before);
      });
      connection.socket.write(rest);
      return statusesIn(await connection.ended());
    };
    // The parser stops within one of them.
    t.same(await sent(kept.join('') + LAST, ''), Array(202).fill('200'));
    const [head = '', body = ''] = ask.split(/(?<=\r\n\r\n)/);
    t.same(await sent(`${head}${body.slice(0, 1)}`, body.slice(1) + LAST), ['200', '200', '200']);
    t.same(
      await sent(head.slice(0, 40), ''),
      ['200', '408'],
      'a request that never completes is refused then',
    );
    t.same(await sent(`${head}${body.slice(0, 1)}`, ''), ['200', '408']);
  },
);
