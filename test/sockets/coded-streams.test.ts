import { zstdDecompressSync } from 'node:zlib';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { logStatements } from '../support/database/statement-log.ts';
import {
  answerOf,
  dechunked,
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

/** Coded it is still more than the kernel holds for a reader that does not read. */
const SIZE = { prices: 75, points: 3_000, isNoise: true };

const database = await testDatabase(t);
const statements = logStatements(database.pool);
await fill(database, SIZE);
const service = await startListening(t, database, {
  SERIES_PRICES_PER_STATEMENT: 1,
  PRICE_BOOK_BYTES: '0',
});

const isIdle = () =>
  database.pool.idleCount === database.pool.totalCount && database.pool.waitingCount === 0;

const copies = (): number => statements.filter((each) => /copy/.test(each)).length;

const askAll = (from: ListeningService, coding: string): string =>
  postText(
    from,
    BULK_MARKET.slug,
    { options: { includeSeries: true } },
    `Accept-Encoding: ${coding}\r\n`,
  );

/** Begins a big answer and reads no more than its first bytes. */
async function begun(
  test: Parameters<typeof startListening>[0],
  coding: string,
): Promise<RawConnection> {
  const connection = new RawConnection(test, service.port);
  connection.socket.write(askAll(service, coding));
  await connection.firstBytes();
  return connection;
}

for (const coding of ['zstd', 'gzip']) {
  t.test(
    `${coding}: a big answer waits for a slow reader, and ends with one who leaves`,
    async (t) => {
      const before = copies();
      let socket: { readonly writableNeedDrain: boolean } | undefined;
      service.app.server.once('connection', (each) => {
        socket = each;
      });
      const connection = await begun(t, coding);
      await until(
        'the answer waits for its reader',
        () => socket?.writableNeedDrain === true && isIdle(),
      );
      const read = copies() - before;
      t.ok(read < SIZE.prices, `${read} of ${SIZE.prices} series were read`);
      connection.socket.destroy();
      await connection.closed;
      const { slots } = database.client.reads;
      await until('the work ends', () => isIdle() && slots.inUse === 0 && slots.waiting === 0);
      t.ok(copies() - before < SIZE.prices, 'the others were never read');
      t.same(service.failures(), []);
    },
  );
}

t.test('a slow reader gets the whole answer in the end', async (t) => {
  const connection = await begun(t, 'zstd');
  connection.socket.resume();
  await until('the end', () => connection.tail.endsWith('\r\n0\r\n\r\n'));
  const { headers, body } = answerOf(connection.text);
  t.match(headers, { 'content-encoding': 'zstd', 'transfer-encoding': 'chunked' });
  const bytes = Buffer.from(dechunked(body) ?? '', 'latin1');
  const { data } = JSON.parse(zstdDecompressSync(bytes).toString());
  t.equal(data.length, SIZE.prices);
  t.ok(data.every((each: { series: unknown[] }) => each.series.length === SIZE.points));
});
