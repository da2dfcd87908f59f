import { connect } from 'node:net';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import {
  answerOf,
  dechunked,
  exchange,
  postText,
  type RawAnswer,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

/** True if a stop has come to its end. */
function watched(stop: Promise<unknown>): () => boolean {
  let isDone = false;
  void stop.then(() => {
    isDone = true;
  });
  return () => isDone;
}

/** Splits the text of several answers that came one after another. */
const answersOf = (text: string): RawAnswer[] => text.split(/(?=HTTP\/1\.1 \d{3} )/).map(answerOf);

t.test('a stop finishes a streaming answer, and ends with it', async (t) => {
  const database = await testDatabase(t);
  await fill(database, { prices: 36, points: 3_000 });
  const service = await startListening(t, database, {
    SERIES_PRICES_PER_STATEMENT: 1,
    // A stop that waited for connections kept alive would take longer than the test.
    KEEP_ALIVE_TIMEOUT_MS: '600000',
  });
  const connection = new RawConnection(t, service.port);
  const text = postText(service, BULK_MARKET.slug, { options: { includeSeries: true } });
  connection.socket.write(text);
  await connection.firstBytes();

  const isStopped = watched(service.app.close());
  await until('new connections are refused', () => refused(service.port));
  t.notOk(isStopped(), 'the stop waits for the answer');
  connection.socket.resume();
  const { data } = JSON.parse(dechunked(answerOf(await connection.ended()).body) ?? '');
  t.equal(data.length, 36, 'the answer is whole');
  await until('the service has stopped', isStopped);
});

/** True if the port rejects connections. */
const refused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', () => resolve(true));
  });

t.test('a stop does not wait for idle connections', async (t) => {
  const patience = { KEEP_ALIVE_TIMEOUT_MS: '600000', HEADERS_TIMEOUT_MS: '120000' };
  const service = await startListening(t, await testDatabase(t), {
    ...patience,
    REQUEST_TIMEOUT_MS: '300000',
  });
  const silent = new RawConnection(t, service.port);
  const half = new RawConnection(t, service.port);
  half.socket.write('GET /live HTTP/1.1\r\nHost: t');
  const kept = new RawConnection(t, service.port);
  kept.socket.write('GET /live HTTP/1.1\r\nHost: test\r\n\r\n');
  await until('the answer has come', () => kept.text.includes('"ok"'));
  const isStopped = watched(service.app.close());
  await until('the service has stopped', isStopped);
  await Promise.all([silent.closed, half.closed, kept.closed]);
  t.same(service.failures(), []);
});

t.test('an answer that is under way at a stop says that its connection ends', async (t) => {
  const database = await testDatabase(t);
  const service = await startListening(t, database, { PRICE_BOOK_BYTES: '0' });
  const connection = new RawConnection(t, service.port);
  const { stop } = await whileLocked(database, async () => {
    connection.socket.write(postText(service, 'nickel', {}));
    await until('it waits', async () => (await lockWaits(database.pool)) === 1);
    const stop = service.app.close();
    await until('new connections are refused', () => refused(service.port));
    return { stop };
  });
  const answer = answerOf(await connection.ended());
  t.match(answer, { status: 200, headers: { connection: 'close' } });
  await stop;
});

const GET_READY = 'GET /ready HTTP/1.1\r\nHost: test\r\n\r\n';
const STOPPING = {
  status: 503,
  headers: { connection: 'close', 'retry-after': /^\d+$/ },
  json: { status: 'unavailable', checks: { database: 'ok', service: 'shutting_down' } },
};

t.test(
  'new connections are answered for STOP_NOTICE_MS, and /ready reports the stop',
  async (t) => {
    const service = await startServiceProcess(t, await testDatabase(t), {
      STOP_NOTICE_MS: '120000',
    });
    const { child, ended } = service.running;
    const kept = new RawConnection(t, service.port);
    kept.socket.write(GET_READY);
    await until('the service is ready', () => kept.text.includes('"schema":"ok"'));
    child.kill('SIGTERM');
    await service.running.until('stderr', 'the listener closes in 120000 ms');
    kept.socket.write(GET_READY);
    t.match(answersOf(await kept.ended())[1], STOPPING);
    t.match(await exchange(t, service.port, GET_READY), STOPPING);
    const answer = await exchange(t, service.port, postText(service, 'nickel', {}));
    t.match(answer, { status: 200, headers: { connection: 'close' } });
    await until('another signal, later than one keystroke, ends it at once', () => {
      child.kill('SIGTERM');
      return child.exitCode !== null;
    });
    t.equal(await ended, 1);
  },
);

t.test('a service whose notice is over ends by itself', async (t) => {
  const service = await startServiceProcess(t, await testDatabase(t), { STOP_NOTICE_MS: '50' });
  service.running.child.kill('SIGTERM');
  t.equal(await service.running.ended, 0);
  t.match(service.running.stderr(), /the listener closes in 50 ms/);
});
