import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import {
  getText,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

/** The statuses of the answers that a connection sent, in order. */
const statusesIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status);

t.test(
  'a second request before the reply to the first closes the connection after it',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, { PRICE_BOOK_BYTES: '0' });
    const connection = new RawConnection(t, service.port);
    const ask = postText(service, 'nickel', {});
    let arrived = 0;
    service.app.server.on('request', () => {
      arrived += 1;
    });
    await whileLocked(database, async () => {
      connection.socket.write(ask);
      await until('the first waits', async () => (await lockWaits(database.pool)) === 1);
      connection.socket.write(ask);
      await until('the second is there', () => arrived === 2);
      t.equal(await lockWaits(database.pool), 1, 'it has not begun');
    });
    const text = await connection.ended();
    t.same(statusesIn(text), ['200']);
    t.match(text, /^connection: close\r$/im);
  },
);

t.test(
  'a second request that is late or no HTTP does not cut the reply to the first',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, {
      PRICE_BOOK_BYTES: '0',
      HEADERS_TIMEOUT_MS: '300',
      REQUEST_TIMEOUT_MS: '300',
    });
    const { server } = service.app;
    let rejected = 0;
    server.on('clientError', () => {
      rejected += 1;
    });
    for (const rest of [get('/live').slice(0, 20), 'GARBAGE\r\n\r\n']) {
      const connection = new RawConnection(t, service.port);
      const before = rejected;
      await whileLocked(database, async () => {
        connection.socket.write(postText(service, 'nickel', {}) + rest);
        await until('the rest is rejected', () => rejected > before);
      });
      t.same(statusesIn(await connection.ended()), ['200'], rest);
    }
  },
);

t.test('a third request before the first reply ends the connection at once', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, {
    PRICE_BOOK_BYTES: '0',
    RUNNING_MAX: '1',
    WAITING_MAX: '0',
    STALL_TIMEOUT_MS: '600000',
  });
  const ask = postText(service, 'nickel', {});
  await whileLocked(database, async () => {
    const greedy = new RawConnection(t, service.port);
    greedy.socket.write(ask.repeat(3));
    t.same(statusesIn(await greedy.ended()), []);
  });
  const again = async (): Promise<boolean> => {
    const connection = new RawConnection(t, service.port);
    connection.socket.write(postText(service, 'nickel', {}, 'Connection: close\r\n'));
    return statusesIn(await connection.ended())[0] === '200';
  };
  await until('its slot is free', again);
});

t.test('a kept connection answers requests that each follow a reply', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database);
  const connection = new RawConnection(t, service.port);
  const asks = [postText(service, 'nickel', {}), get('/openapi.json'), get('/nowhere')];
  for (let at = 0; at < 60; at += 1) {
    connection.socket.write(asks[at % asks.length] ?? '');
    await until('it is answered', () => {
      const last = connection.text.slice(connection.text.lastIndexOf('HTTP/1.1 '));
      const [head = '', body] = last.split('\r\n\r\n');
      const length = Number(/^content-length: (\d+)\r?$/im.exec(head)?.[1]);
      return body?.length === length && statusesIn(connection.text).length === at + 1;
    });
  }
  connection.socket.destroy();
});

t.test('a client that leaves its refusals unread takes no slot from others', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, { RUNNING_MAX: '1', WAITING_MAX: '0' });
  const connection = new RawConnection(t, service.port);
  connection.socket.pause();
  let refused = 0;
  const wrong = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`wrong${at}`, at]));
  const ask = () => connection.socket.write(postText(service, 'nickel', wrong));
  // Each request comes when the service has handed the refusal before it to the system.
  const onRequest: RequestListener = (_request, reply) =>
    reply.once('close', () => {
      refused += 1;
      ask();
    });
  service.app.server.on('request', onRequest);
  ask();
  let [seen, calm] = [-1, 0];
  await until('a refusal is stuck', () => {
    calm = refused === seen ? calm + 1 : 0;
    seen = refused;
    return calm > 40;
  });
  service.app.server.off('request', onRequest);
  t.ok(refused > 10, `${refused} refusals went out before`);
  const other = new RawConnection(t, service.port);
  other.socket.write(postText(service, 'nickel', {}, 'Connection: close\r\n'));
  t.same(statusesIn(await other.ended()), ['200']);
  t.notOk(connection.socket.destroyed, 'the other connection is still open');
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

t.test('a next request with the last byte of a large answer is answered', async (t) => {
  const bulk = await testDatabase(t);
  await fill(bulk, { prices: 60, points: 1_500 });
  const { port, key } = await startServiceProcess(t, bulk);
  const text = postText({ key }, BULK_MARKET.slug, { options: { includeSeries: true } });
  const socket = connect(port, '127.0.0.1');
  let [answers, left, tail] = [0, 0, ''];
  socket.on('data', (bytes) => {
    tail = (tail + bytes.toString('latin1', Math.max(0, bytes.length - 7))).slice(-7);
    if (left === 0) {
      const head = bytes.toString('latin1').split('\r\n\r\n', 1)[0] ?? '';
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      // Only kept answers have a length.
      left = length > 0 ? head.length + 4 + length : Number.POSITIVE_INFINITY;
    }
    left -= bytes.length;
    const isWhole = left === 0 || tail === '\r\n0\r\n\r\n';
    if (!isWhole) return;
    left = 0;
    answers += 1;
    if (answers === 300) socket.end();
    else socket.write(text);
  });
  socket.write(text);
  await new Promise((resolve) => socket.once('close', resolve));
  t.equal(answers, 300);
});

t.test('CONNECT before the reply to a request closes the connection after it', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await startListening(t, database, { PRICE_BOOK_BYTES: '0' });
  const connection = new RawConnection(t, service.port);
  let arrived = 0;
  service.app.server.on('connect', () => {
    arrived += 1;
  });
  await whileLocked(database, async () => {
    connection.socket.write(postText(service, 'nickel', {}));
    await until('the request waits', async () => (await lockWaits(database.pool)) === 1);
    connection.socket.write('CONNECT test:1 HTTP/1.1\r\nHost: test:1\r\n\r\n');
    await until('CONNECT is there', () => arrived === 1);
  });
  t.same(statusesIn(await connection.ended()), ['200']);
});
