import { once } from 'node:events';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  answerOf,
  exchange,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const HOST = 'Host: test\r\n';

/** Short timeouts for fast tests; Node checks them once a second. */
const HASTY = { HEADERS_TIMEOUT_MS: '200', REQUEST_TIMEOUT_MS: '400' };

t.test('a client that sends slowly, or nothing, is refused and let go', async (t) => {
  const { port, key, failures } = await startListening(t, await testDatabase(t), HASTY);
  const post = `POST /v3/prices/nickel HTTP/1.1\r\n${HOST}x-api-key: ${key}\r\n`;
  const json = `${post}Content-Type: application/json\r\n`;
  const slow = {
    'nothing at all': '',
    'half a request line': 'GET /li',
    'headers without an end': `GET /live HTTP/1.1\r\n${HOST}`,
    'half a body': `${json}Content-Length: 20\r\n\r\n{"filters"`,
    'chunks without an end': `${json}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`,
  };
  const connections = Object.entries(slow).map(([what, text]) => {
    const connection = new RawConnection(t, port);
    connection.socket.write(text);
    return [what, connection] as const;
  });
  const drip = new RawConnection(t, port);
  drip.socket.write(`GET /live HTTP/1.1\r\n${HOST}`);
  const dripping = setInterval(() => drip.socket.write('X-A: b\r\n'), 50);
  t.teardown(() => clearInterval(dripping));
  for (const [what, connection] of [...connections, ['a header now and then', drip] as const]) {
    const { status, headers, json } = answerOf(await connection.ended());
    t.equal(status, 408, what);
    t.match(headers['content-type'], /^application\/problem\+json/);
    t.equal(json.code, 'request_timeout');
  }
  t.same(failures(), []);
});

t.test('a request completed after its timeout has exactly one answer', async (t) => {
  // Some are in time, and keep their connection after the answer.
  const env = { ...HASTY, KEEP_ALIVE_TIMEOUT_MS: '300' };
  const { port, key, failures } = await startListening(t, await testDatabase(t), env);
  const json = `POST /v3/prices/nickel HTTP/1.1\r\n${HOST}x-api-key: ${key}\r\n`;
  const post = `${json}Content-Type: application/json\r\nContent-Length: 2\r\n`;
  const kinds = {
    'the end of the headers': [`GET /live HTTP/1.1\r\n${HOST}`, '\r\n', /^(200|408)$/],
    'the end of the body': [`${post}\r\n{`, '}', /^(200|408)$/],
    'a body that is wrong': [`${post}\r\n{`, '{', /^(400|408)$/],
    'an address that is wrong': [`GET /%zz HTTP/1.1\r\n${HOST}`, '\r\n', /^(400|408)$/],
    'the headers without the body': [post, '\r\n', /^408$/],
  } as const;
  for (const [what, [first, rest, one]] of Object.entries(kinds)) {
    const connections = Array.from({ length: 200 }, () => new RawConnection(t, port));
    const responses = connections.map(({ socket }) => once(socket, 'data'));
    for (const { socket } of connections) socket.write(first);
    // The first abort arrives while almost all others are pending.
    await Promise.race(responses);
    for (const { socket } of connections) if (socket.writable) socket.write(rest);
    const texts = await Promise.all(connections.map((connection) => connection.ended()));
    const answers = texts.map((text) => text.match(/(?<=HTTP\/1\.1 )\d+/g)?.join());
    const others = answers.filter((each) => !one.test(String(each)));
    t.same([...new Set(others)], [], what);
  }
  t.same(failures(), []);
});

t.test('a connection that asks no more is closed after its time', async (t) => {
  const { port } = await startListening(t, await testDatabase(t), { KEEP_ALIVE_TIMEOUT_MS: '300' });
  const connection = new RawConnection(t, port);
  connection.socket.write(`GET /live HTTP/1.1\r\n${HOST}\r\n`);
  const { status, headers } = answerOf(await connection.ended());
  t.equal(status, 200);
  t.match(headers['connection'], /keep-alive/i);
});

t.test('a reader that reads nothing is disconnected, and delays no other', async (t) => {
  const database = await testDatabase(t);
  await fill(database, { prices: 24, points: 3_000 });
  const env = { STALL_TIMEOUT_MS: '1000', SERIES_PRICES_PER_STATEMENT: 1 };
  const { app, port, key, failures } = await startListening(t, database, env);
  const ask = postText({ key }, BULK_MARKET.slug, { options: { includeSeries: true } });
  const stuck = Array.from({ length: 12 }, () => new RawConnection(t, port));
  for (const { socket } of stuck) {
    socket.pause();
    socket.write(ask);
  }
  await until('the answers begin', () => stuck.every(({ socket }) => socket.bytesWritten > 0));
  const other = `GET /v3/prices HTTP/1.1\r\n${HOST}x-api-key: ${key}\r\nConnection: close\r\n\r\n`;
  await until(
    'others are answered meanwhile',
    async () => (await exchange(t, port, other)).status === 200,
  );
  const open = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await until('the service drops them', async () => (await open()) === 0);
  const { pool } = database;
  await until('every connection is back', () => pool.idleCount === pool.totalCount);
  t.equal(pool.waitingCount, 0);
  t.same(failures(), []);
});
