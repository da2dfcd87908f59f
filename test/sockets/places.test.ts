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

/** A single place, and a queue of which one principal has eight. */
const GATE = { RUNNING_MAX: '1', WAITING_MAX: '32', PRICE_BOOK_BYTES: '0' };
const SERIES = { options: { includeSeries: true } };

const database = await testDatabase(t);
await fill(database, { prices: 60, points: 3_000 });

t.test('a request whose body does not arrive takes no place, nor one in the queue', async (t) => {
  // One principal has one place and one in the queue.
  const { port, key } = await startListening(t, database, { ...GATE, WAITING_MAX: '4' });
  const text = postText({ key }, BULK_MARKET.slug, {}, 'Connection: close\r\n');
  const slow: RawConnection[] = [];
  for (let sender = 0; sender < 8; sender += 1) {
    const connection = new RawConnection(t, port);
    connection.socket.write(text.slice(0, -1));
    slow.push(connection);
    t.equal((await exchange(t, port, text)).status, 200, 'another request of its principal');
  }
  for (const connection of slow) {
    connection.socket.write(text.slice(-1));
    const { status } = answerOf(await connection.ended());
    t.equal(status, 200, 'each is answered when its body has arrived');
  }
});

t.test('an answer whose client does not read takes no place from others', async (t) => {
  const { app, port, key } = await startListening(t, database, GATE);
  const slow: RawConnection[] = [];
  for (let reader = 0; reader < 4; reader += 1) {
    const connection = new RawConnection(t, port);
    connection.socket.write(postText({ key }, BULK_MARKET.slug, SERIES, 'Connection: close\r\n'));
    await connection.firstBytes();
    slow.push(connection);
  }
  const text = postText({ key }, BULK_MARKET.slug, {}, 'Connection: close\r\n');
  for (let request = 0; request < 5; request += 1) {
    t.equal((await exchange(t, port, text)).status, 200);
  }
  for (const { socket } of slow) socket.resume();
  for (const connection of slow) {
    await connection.ended();
    t.equal(connection.tail.slice(-5), '0\r\n\r\n', 'each is complete when its client reads again');
  }
  const open = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await until('all are closed', async () => (await open()) === 0);
});

t.test('a reader that reads a little now and then is disconnected', async (t) => {
  const { app, port, key } = await startListening(t, database, { STALL_TIMEOUT_MS: '2000' });
  const connection = new RawConnection(t, port);
  connection.socket.write(postText({ key }, BULK_MARKET.slug, SERIES));
  await connection.firstBytes();
  // Each time the system sends a little more, which Node counts as progress.
  const reading = setInterval(() => {
    connection.socket.once('data', () => connection.socket.pause());
    connection.socket.resume();
  }, 500);
  t.teardown(() => clearInterval(reading));
  const open = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await until('the service has closed it', async () => (await open()) === 0);
  clearInterval(reading);
  connection.socket.resume();
  await connection.closed;
  t.not(connection.tail.slice(-5), '0\r\n\r\n', 'before the end');
});
