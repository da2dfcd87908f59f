import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { administer, testDatabase } from '../support/database/database.ts';
import {
  answerOf,
  answersAgain,
  dechunked,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const database = await testDatabase(t);
await fill(database, { prices: 45, points: 3_000 });
// Read from the database while it is sent: a book would have it in memory.
const env = { SERIES_PRICES_PER_STATEMENT: 1, PRICE_BOOK_BYTES: '0' };
const service = await startListening(t, database, env);
const name = new URL(database.url).pathname.slice(1);
const admin = process.env['TEST_DATABASE_URL'] ?? '';

/** Starts an answer, stops the database during backpressure, and reads on. */
async function brokenOff(
  test: Parameters<typeof startListening>[0],
  headers: string,
  version = 'HTTP/1.1',
) {
  const connection = new RawConnection(test, service.port);
  let failure: string | undefined;
  connection.socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    failure = code;
  });
  const body = { options: { includeSeries: true } };
  const request = postText(service, BULK_MARKET.slug, body, headers);
  connection.socket.write(request.replace('HTTP/1.1', version));
  await connection.firstBytes();
  const { pool } = database;
  await until('the answer waits', () => pool.idleCount === pool.totalCount);
  await administer(
    admin,
    `alter database "${name}" allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  );
  connection.socket.resume();
  const text = await connection.ended();
  await administer(admin, `alter database "${name}" allow_connections true`);
  await answersAgain(test, service, BULK_MARKET.slug);
  return { text, failure };
}

t.test('an answer that fails midway breaks the connection in every format', async (t) => {
  for (const accept of ['application/json', 'text/csv', 'application/x-ndjson']) {
    const { text } = await brokenOff(t, `Accept: ${accept}\r\n`);
    const { status, headers, body } = answerOf(text);
    t.equal(status, 200, accept);
    t.equal(headers['transfer-encoding'], 'chunked');
    t.ok(body.length > 10_000, 'the body had begun');
    t.equal(dechunked(body), null, 'no end of the body was sent');
  }
});

t.test('an answer without length and chunks that fails midway ends with a reset', async (t) => {
  // Node accepts other versions than 1.1, and answers them as HTTP/1.0.
  for (const version of ['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0']) {
    const { text, failure } = await brokenOff(t, 'Accept: text/csv\r\n', version);
    t.match(text, /^HTTP\/1.1 200 /);
    t.notMatch(text, /\r\n(transfer-encoding|content-length):/i);
    t.equal(failure, 'ECONNRESET', 'an orderly close would be the end of the body');
  }
});
