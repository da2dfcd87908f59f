import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { configOf } from '../../src/config/config.ts';
import { openClient } from '../../src/db/client.ts';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits } from '../support/database/lock-waits.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import {
  answerOf,
  exchange,
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const database = await testDatabase(t);
await fill(database, { prices: 30, points: 100 });

/** The statements that requests wait for: a book makes others, behind the answers. */
const NO_BOOK = { PRICE_BOOK_BYTES: '0' };

const noneWaits = () => until('nothing runs', async () => (await lockWaits(database.pool)) === 0);

/** Blocks all reads of a table while work runs. */
const whileLocked = <T>(table: string, work: () => Promise<T>): Promise<T> =>
  inTransaction(database.pool, async (client) => {
    await client.query(`lock table ${table} in access exclusive mode`);
    return work();
  });

/** A request for a market. Its response is the last of its connection. */
const question = (service: ListeningService, slug = BULK_MARKET.slug): string =>
  postText(service, slug, {}, 'Connection: close\r\n');

t.test('an answer that is not found in time is a 504, and not looked for any more', async (t) => {
  const service = await startListening(t, database, { ...NO_BOOK, REQUEST_DEADLINE_MS: '300' });
  await whileLocked('price', async () => {
    const { status, json, headers } = await exchange(t, service.port, question(service));
    t.same([status, json.code], [504, 'query_timeout']);
    t.match(headers['content-type'], 'application/problem+json');
    await noneWaits();
  });
  await until('the next one is answered', async () => {
    const again = await exchange(t, service.port, question(service));
    return again.status === 200;
  });
});

t.test('nothing runs for a client that is gone', async (t) => {
  const service = await startListening(t, database, NO_BOOK);
  await whileLocked('price', async () => {
    // Different markets: the second request for one market would load its cache for all.
    const connections = MARKETS.slice(0, 3).map(({ slug }) => {
      const connection = new RawConnection(t, service.port);
      connection.socket.write(question(service, slug));
      return connection;
    });
    await until('all wait', async () => (await lockWaits(database.pool)) === 3);
    for (const connection of connections) connection.socket.destroy();
    await noneWaits();
  });
  t.equal((await exchange(t, service.port, question(service))).status, 200);
  t.same(service.failures(), [], 'a client that leaves is no failure of the service');
});

t.test('shared work continues when the first of its requests is aborted', async (t) => {
  const service = await startListening(t, database, NO_BOOK);
  const [first, second] = [new RawConnection(t, service.port), new RawConnection(t, service.port)];
  await whileLocked('currency', async () => {
    first.socket.write(question(service));
    await until('the first request waits', async () => (await lockWaits(database.pool)) === 1);
    second.socket.write(question(service));
    first.socket.destroy();
    await until('the first request is aborted', () =>
      service.lines.some((line) => line.includes('"status":499')),
    );
    t.equal(await lockWaits(database.pool), 1);
  });
  t.equal(answerOf(await second.ended()).status, 200);
});

t.test('a request that waits for news has no deadline', async (t) => {
  const service = await startListening(t, database, { REQUEST_DEADLINE_MS: '100' });
  const patient = await startListening(t, database);
  const connection = new RawConnection(t, service.port);
  const newest = await exchange(
    t,
    patient.port,
    `GET /v3/changes HTTP/1.1\r\nHost: t\r\nx-api-key: ${patient.key}\r\nConnection: close\r\n\r\n`,
  );
  connection.socket.write(
    `GET /v3/changes?wait=1&after=${newest.headers['x-next-seq']} HTTP/1.1\r\nHost: t\r\n` +
      `x-api-key: ${service.key}\r\nConnection: close\r\n\r\n`,
  );
  t.match(answerOf(await connection.ended()).status, /^20[04]$/);
});

t.test('a body may take longer than the deadline to arrive', async (t) => {
  const service = await startListening(t, database, { ...NO_BOOK, REQUEST_DEADLINE_MS: '300' });
  const text = question(service);
  // A busy machine may exceed the short timeout of this service.
  await until('a request is answered', async () => {
    const connection = new RawConnection(t, service.port);
    connection.socket.write(text.slice(0, -1));
    // Twice the deadline passes for a request that comes after it.
    for (let round = 0; round < 2; round += 1) {
      await whileLocked('price', async () => {
        t.equal((await exchange(t, service.port, text)).status, 504);
      });
    }
    connection.socket.write(text.slice(-1));
    return answerOf(await connection.ended()).status === 200;
  });
});

t.test('with every connection busy, requests get 503 with Retry-After', async (t) => {
  const client = openClient({
    url: database.url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    waitMs: 50,
    statementTimeoutMs: 0,
    readOnly: true,
    applicationName: 'busy',
  });
  const app = await buildApp({ config: configOf({ RATE_PER_MINUTE: '0' }), client });
  t.teardown(async () => {
    await app.close();
    await client.close();
  });
  const service = await startListening(t, database, NO_BOOK);
  const ending = new AbortController();
  const busy = [1, 2].map(() =>
    client.reads.query({ text: 'select pg_sleep(1000)' }, ending.signal).catch(() => {}),
  );
  await until('both are taken', () => client.reads.slots.inUse === 2);
  const ask = (url: string, key = service.key) =>
    app.inject({ method: 'POST', url, headers: { 'x-api-key': key }, payload: {} });
  const answer = await ask(`/v3/prices/${BULK_MARKET.slug}`);
  t.same([answer.statusCode, answer.json().code], [503, 'overloaded']);
  t.match(answer.headers['retry-after'], /^\d+$/);
  t.equal((await ask('/v3/nothing')).statusCode, 404);
  t.equal((await ask(`/v3/prices/${BULK_MARKET.slug}`, 'nonsense')).statusCode, 401);
  ending.abort();
  await Promise.all(busy);
  await until('a request is answered', async () => {
    return (await ask(`/v3/prices/${BULK_MARKET.slug}`)).statusCode === 200;
  });
});
