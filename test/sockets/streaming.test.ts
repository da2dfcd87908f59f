import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sql } from 'kysely';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { administer, type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  answerOf,
  answersAgain,
  dechunked,
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const SIZE = { prices: 45, points: 3_000 };
/** More than the kernel holds for a reader that does not read: about 15 MB. */
const ANSWER_BYTES_MIN = 14_000_000;
const MEGABYTE = 1_048_576;
// Read from the database while it is sent: a book would have it in memory.
const ONE_BY_ONE = { SERIES_PRICES_PER_STATEMENT: 1, PRICE_BOOK_BYTES: '0' };

const askAll = (service: ListeningService): string =>
  postText(service, BULK_MARKET.slug, { options: { includeSeries: true } });

const isIdle = ({ pool }: TestDatabase) =>
  pool.idleCount === pool.totalCount && pool.waitingCount === 0;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Memory of this process after a garbage collection, in bytes. */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Starts a big answer and stops reading after its first bytes. */
async function begun(
  t: Parameters<typeof startListening>[0],
  service: ListeningService,
): Promise<RawConnection> {
  const connection = new RawConnection(t, service.port);
  connection.socket.write(askAll(service));
  await connection.firstBytes();
  return connection;
}

/** The document of a chunked answer; null when it never came to its end. */
const documentOf = (text: string): string | null => dechunked(answerOf(text).body);

const isComplete = (connection: RawConnection): boolean =>
  connection.tail.endsWith('\r\n0\r\n\r\n');

/** True if the document that a client could make of an answer is broken for sure. */
function isBroken(text: string): boolean {
  if (documentOf(text) !== null) return false;
  const [, ...chunks] = text.split('\r\n\r\n');
  const anyway = chunks.join('\r\n\r\n').replace(/\r\n[0-9a-f]+\r\n/g, '');
  try {
    JSON.parse(anyway.replace(/^[0-9a-f]+\r\n/, ''));
    return false;
  } catch {
    return true;
  }
}

const database = await testDatabase(t);
await fill(database, SIZE);
const service = await startListening(t, database, ONE_BY_ONE);

t.test(
  'a big answer waits for a slow reader with little memory, and holds no connection',
  async (t) => {
    const before = heldBytes();
    const waiting = new Promise<number>((resolve) => {
      service.app.server.once('connection', (socket) => {
        until(
          'the answer waits for its reader',
          () => socket.writableNeedDrain && isIdle(database),
        ).then(() => resolve(socket.bytesWritten));
      });
    });
    const connection = await begun(t, service);
    t.ok((await waiting) < ANSWER_BYTES_MIN / 2, 'most of it has not been made yet');
    // PostgreSQL's own workers, such as autovacuum, are sessions as well.
    await until('PostgreSQL has nothing to do', async () => {
      const { rows } = await sql<{ sessions: number }>`select count(*)::int as sessions
        from pg_stat_activity where datname = current_database()
        and backend_type = 'client backend'
        and state <> 'idle' and pid <> pg_backend_pid()`.execute(database.db);
      return rows[0]?.sessions === 0;
    });
    // Freed buffers are counted off by and by.
    await until('at most 7 MB are held for it', () => heldBytes() - before < 7 * MEGABYTE);
    connection.socket.resume();
    await until('the end of the document', () => isComplete(connection));
    t.ok(connection.bytes > ANSWER_BYTES_MIN);
    const { $metadata, data } = JSON.parse(documentOf(connection.text) ?? '');
    t.equal($metadata.count, SIZE.prices);
    t.ok(
      data.length === SIZE.prices &&
        data.every((each: { series: unknown[] }) => each.series.length === SIZE.points),
    );
  },
);

t.test('a big answer is aborted when its client disconnects, whenever that is', async (t) => {
  const leavers = Array.from({ length: 30 }, (_, index) => {
    const connection = new RawConnection(t, service.port);
    const text = askAll(service);
    // Some leave within the request, some before the answer, some in the midst of it.
    connection.socket.write(index % 3 === 0 ? text.slice(0, -5) : text);
    if (index % 3 === 2) connection.socket.on('data', () => connection.socket.destroy());
    else setTimeout(() => connection.socket.destroy(), 5 * index);
    return connection;
  });
  await Promise.all(leavers.map((each) => each.closed));
  await until('every connection to PostgreSQL is back', () => isIdle(database));
  t.same(service.failures(), [], 'a client that leaves is no failure of the service');
  const connection = new RawConnection(t, service.port);
  connection.socket.write(postText(service, BULK_MARKET.slug, {}, 'Connection: close\r\n'));
  t.equal(answerOf(await connection.ended()).status, 200, 'the next one is answered');
});

t.test('a big answer breaks off when the database goes, and is never a document', async (t) => {
  const name = new URL(database.url).pathname.slice(1);
  const admin = process.env['TEST_DATABASE_URL'] ?? '';
  const connection = await begun(t, service);
  await until('the answer waits', () => isIdle(database));
  await administer(
    admin,
    `alter database "${name}" allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  );
  connection.socket.resume();
  const text = await connection.ended();
  t.match(text, /^HTTP\/1\.1 200 /);
  t.ok(isBroken(text), 'neither the transfer nor the JSON is complete');
  const refused = new RawConnection(t, service.port);
  refused.socket.write(postText(service, BULK_MARKET.slug, {}, 'Connection: close\r\n'));
  const { status, headers, json } = answerOf(await refused.ended());
  // By the lookup of the key, or by the link where it has noticed already.
  t.match({ status, code: json.code }, { status: 503, code: /^(auth|database)_unavailable$/ });
  t.match(headers['retry-after'], /^[1-5]$/);
  await administer(admin, `alter database "${name}" allow_connections true`);
  await answersAgain(t, service, BULK_MARKET.slug);
});

t.test(
  'a big answer breaks off when a statement is killed, and the next one is whole',
  async (t) => {
    const name = new URL(database.url).pathname.slice(1);
    // By a connection of its own: one of the pool may be the one that a late kill ended.
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${name}' and query like 'copy%' and state = 'active'`;
    const admin = process.env['TEST_DATABASE_URL'] ?? '';
    // A kill may come too late and meet an idle connection, which harms no answer: then once more.
    let connection: RawConnection;
    do {
      connection = await begun(t, service);
      connection.socket.resume();
      await until('the answer ends in one way or the other', async () => {
        await administer(admin, kill);
        return connection.socket.closed || isComplete(connection);
      });
    } while (!connection.socket.closed);
    t.ok(isBroken(connection.text));
    const again = new RawConnection(t, service.port);
    again.socket.write(askAll(service).replace('\r\n', '\r\nConnection: close\r\n'));
    t.ok(JSON.parse(documentOf(await again.ended()) ?? '').data.length === SIZE.prices);
  },
);
