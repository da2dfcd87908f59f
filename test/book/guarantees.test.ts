import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { bodyCheckOf } from '../../src/contract/request/validate.ts';
import { requestSchemasOf, schemasOf } from '../../src/contract/schemas/market.ts';
import { ClientDisconnected } from '../../src/http/work.ts';
import { planOf } from '../../src/prices/plan/plan.ts';
import { contentsOfAll } from '../../src/prices/write/points.ts';
import { BULK_MARKET, fill as fillDatabase } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';
import { countTurns } from '../support/run/turns.ts';
import { compareOne } from './compare.ts';
import { type BookRequest, fill, type Twins, twinsOn } from './support.ts';

const SIZE = { prices: 30, points: 1_500 };
const LIMITS = { codesMax: 500, itemsMax: 200, itemLengthMax: 128, recordsMax: 10 };

const ALL: BookRequest = {
  slug: BULK_MARKET.slug,
  filters: {},
  options: { includeSeries: true },
  accept: 'application/json',
};
const WEEK: BookRequest = { ...ALL, filters: { dateFrom: '2026-06-20' } };

type Test = Parameters<typeof twinsOn>[0];

async function bulkTwins(
  test: Test,
  env: Readonly<Record<string, string>> = {},
  size = SIZE,
): Promise<Twins> {
  const database = await testDatabase(test);
  await fillDatabase(database, size);
  return twinsOn(test, database, env);
}

const ONE_POINT = `price_id = (select min(id) from price) and date = '2026-06-24'`;

t.test('a commit is in the next answer, and a refresh reads only what changed', async (t) => {
  const twins = await bulkTwins(t);
  const { book, cached, database } = twins;
  await fill(twins);
  t.equal(book.counts.pointsRead, SIZE.prices * SIZE.points);
  for (let round = 1; round <= 5; round += 1) {
    const { counts } = book;
    const before = { ...counts };
    await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
    const answer = await cached.post(ALL.slug, { filters: WEEK.filters, options: WEEK.options });
    const [point] = answer.json.data[0].series.filter(
      (each: { date: string }) => each.date === '2026-06-24',
    );
    t.equal(point.high - point.mid, 0.5 + round);
    t.same(
      [counts.pointsRead - before.pointsRead, counts.pricesRead - before.pricesRead],
      [1, 1],
      'one point was read, and its price',
    );
    t.equal(counts.refreshes, before.refreshes + 1);
  }
  const { pointsRead } = book.counts;
  await inRevision(database.pool, "update currency set symbol = 'US$'");
  t.match((await cached.post(ALL.slug, {})).json.data[0], { currency: { symbol: 'US$' } });
  t.equal(book.counts.pointsRead, pointsRead, 'reference data is no reason to read points');
  t.equal(await compareOne(t, twins, ALL), 200);
});

t.test('a commit is read as soon as its notification arrives, before any request', async (t) => {
  const twins = await bulkTwins(t);
  const { cached, book, database } = twins;
  await fill(twins);
  await cached.app.listen({ port: 0, host: '127.0.0.1' });
  await until('the link listens', () => database.client.link.reportsCommits);
  const { refreshes } = book.counts;
  await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
  await until('the commit was read', () => book.counts.refreshes > refreshes);
  t.equal(await compareOne(t, twins, ALL), 200);
});

t.test(
  'the values of filters are read again after a change of a price, and not of points',
  async (t) => {
    const twins = await bulkTwins(t);
    const { book, database } = twins;
    await fill(twins);
    const named: BookRequest = { ...WEEK, filters: { regions: ['Asia', 'nowhere'] } };
    const vocabularyReads = async () => {
      const before = book.counts.vocabulariesRead;
      t.equal(await compareOne(t, twins, named), 200);
      return book.counts.vocabulariesRead - before;
    };
    t.equal(await vocabularyReads(), 1, 'the first time');
    for (let round = 0; round < 3; round += 1) {
      await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
      t.equal(await vocabularyReads(), 0, 'a point has changed');
    }
    await inRevision(
      database.pool,
      "update price set name = 'New' where id = (select min(id) from price)",
    );
    t.equal(await vocabularyReads(), 1, 'a price has changed');
    await inRevision(database.pool, "update dimension_value set name = name || ' new'");
    t.equal(await vocabularyReads(), 1, 'a name has changed');
  },
);

const RATE = `insert into fx_rate (source, currency_id, date, rate)
  select 'ECB', id, '2026-06-24', 1.1 from currency where iso = 'USD'`;

t.test('a walk is read from the book for as long as nothing of it was committed', async (t) => {
  const twins = await bulkTwins(t);
  const { book, cached, database } = twins;
  await inRevision(
    database.pool,
    `with eur as (insert into currency (uuid, iso, name, symbol)
      values (gen_random_uuid(), 'EUR', 'Euro', '€') returning id)
      insert into fx_source (slug, name, base_currency_id) select 'ECB', 'ECB', id from eur`,
  );
  await fill(twins);
  const page = async (options: object) => {
    const { answers } = book.counts;
    const body = { filters: WEEK.filters, options: { ...WEEK.options, limit: 10, ...options } };
    t.equal(await compareOne(t, twins, { ...WEEK, ...body }), 200);
    const { nextCursor, revision } = (await cached.post(ALL.slug, body)).json.$metadata;
    return { cursor: nextCursor, revision, ofBook: book.counts.answers - answers };
  };
  const first = await page({});
  const second = await page({ cursor: first.cursor });
  t.equal(second.ofBook, 2, 'a page after the first');
  t.equal((await page({ revision: first.revision })).ofBook, 2, 'the newest revision by name');
  const euros = await page({ currency: 'EUR' });
  await inRevision(database.pool, RATE);
  for (const past of [{ cursor: euros.cursor }, { revision: euros.revision }]) {
    const { ofBook, revision } = await page({ currency: 'EUR', ...past });
    t.same([ofBook, revision], [0, euros.revision], 'rates concern what is converted');
  }
  const third = await page({ cursor: second.cursor });
  t.equal(third.ofBook, 2, 'other scopes do not concern it');
  await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
  const old = await page({ cursor: second.cursor });
  t.same([old.ofBook, old.revision], [0, first.revision], 'the database answers for the past');
});

t.test('a request for data outside the book is answered, and the data are read once', async (t) => {
  const twins = await bulkTwins(t);
  const statuses = await Promise.all(Array.from({ length: 6 }, () => compareOne(t, twins, WEEK)));
  t.same([...new Set(statuses)], [200]);
  await twins.book.settled();
  t.equal(twins.book.counts.builds, 1);
  const { answers } = twins.book.counts;
  await compareOne(t, twins, { ...WEEK, filters: { dateFrom: '2026-06-21' } });
  t.equal(twins.book.counts.answers, answers + 1);
});

const POUND = `insert into unit_of_measure
    (uuid, slug, name, symbol, name_key, symbol_key, dimension, factor)
  values (gen_random_uuid(), 'pound', 'pound', 'lb', 'pound', 'lb', 'mass', 0.45359237)`;

/** The longest CPU time of a turn of the event loop during some work, and of all, in ms. */
async function turnsDuring(
  work: () => Promise<unknown>,
): Promise<{ longest: number; all: number }> {
  const cpuMs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  const begun = cpuMs();
  let [isOver, last, longest] = [false, begun, 0];
  const observe = (): void => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(observe);
  };
  setImmediate(observe);
  await work();
  isOver = true;
  return { longest: Math.max(longest, cpuMs() - last), all: cpuMs() - begun };
}

/** Long answers, one of them of few bytes for many points. */
const LONG: readonly Pick<BookRequest, 'accept' | 'options'>[] = [
  { accept: 'application/json', options: { includeSeries: true } },
  { accept: 'application/json', options: { includeSeries: true, unitOfMeasure: 'lb' } },
  {
    accept: 'application/json',
    options: {
      includeSeries: true,
      unitOfMeasure: 'lb',
      aggregate: { period: 'year', method: 'average' },
    },
  },
  { accept: 'text/csv', options: { includeSeries: true } },
];

/** Requests prices over a socket, and discards the answer as it is received. */
async function download(port: number, headers: Record<string, string>, body: object) {
  const path = `/v3/prices/${BULK_MARKET.slug}`;
  const sent = request({ port, path, method: 'POST', headers }).end(JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  return answer.statusCode;
}

t.test('long work gives the event loop back', async (t) => {
  const twins = await bulkTwins(t, {}, { prices: 60, points: 2_800 });
  const { app, key } = twins.cached;
  await inRevision(twins.database.pool, POUND);
  await fill(twins);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  for (const { accept, options } of LONG) {
    const headers = { 'x-api-key': key, 'content-type': 'application/json', accept };
    // Different requests for the same points: the answer is not kept.
    const get = async (day: number) => {
      const body = { filters: { dateFrom: `1900-01-0${day}` }, options };
      t.equal(await download(port, headers, body), 200);
    };
    await get(1);
    const rounds = [];
    for (let day = 2; day < 7; day += 1) rounds.push(await turnsDuring(() => get(day)));
    const all = rounds.reduce((sum, each) => sum + each.all, 0);
    // Work without yields is long in every round; a garbage collection is in some.
    const longest = Math.min(...rounds.map((each) => each.longest));
    const what = `${accept} ${JSON.stringify(options)}`;
    t.ok(all > 60, `${all} ms of work: ${what}`);
    t.ok(longest < 20, `at most ${longest} ms of ${all} ms between two turns: ${what}`);
  }
});

/** All prices of the market in the book, for `contentsOfAll` with a signal. */
async function recordsIn({ book, database }: Twins, signal: AbortSignal) {
  const check = bodyCheckOf(BULK_MARKET, schemasOf(BULK_MARKET, requestSchemasOf(LIMITS)));
  const plan = planOf(BULK_MARKET, check, { options: ALL.options });
  const reader = await book.open(plan, await database.client.link.newestRevision());
  if (reader === null) throw new Error('the market is not in the book');
  const references = await reader.references();
  const prices = (await reader.select(plan)).map((price) => ({ price, outcome: null }));
  const work = { signal, hold: () => true, holdMax: 0 };
  const targets = { currency: null, unit: null };
  const context = { plan, reader, references, targets, wideCellsMax: 0, sheetRowsMax: 2, work };
  return contentsOfAll(context, prices);
}

t.test('records from the book give the event loop back between them', async (t) => {
  const twins = await bulkTwins(t);
  await fill(twins);
  const records = await recordsIn(twins, new AbortController().signal);
  let written = 0;
  const turns = countTurns(t);
  for await (const { points } of records) written += points?.length === SIZE.points ? 1 : 0;
  turns.end();
  t.equal(written, SIZE.prices);
  t.ok(turns.count >= SIZE.prices / 6, `${turns.count} turns between ${written} records`);
});

t.test('an answer from the book ends with its request', async (t) => {
  const twins = await bulkTwins(t);
  await fill(twins);
  const request = new AbortController();
  const records = await recordsIn(twins, request.signal);
  let written = 0;
  const write = async (): Promise<void> => {
    for await (const { points } of records) {
      written += points?.length === SIZE.points ? 1 : 0;
      if (written === 1) request.abort(new ClientDisconnected());
    }
  };
  await t.rejects(write(), { name: 'ClientGone' });
  t.ok(written < SIZE.prices / 2, `${written} of ${SIZE.prices} prices were written`);
});

t.test('the editions stay within their budget', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const all = await twinsOn(t, database);
  await fill(all);
  const limit = Math.round(0.6 * all.book.state.bytes);
  // Three quarters of the memory are for editions.
  const twins = await twinsOn(t, database, {
    PRICE_BOOK_BYTES: String(Math.ceil((limit * 4) / 3)),
  });
  const { book } = twins;
  await fill(twins);
  const inBudget = () => {
    const { bytes } = book.state;
    t.ok(bytes > limit / 4 && bytes <= limit, `${bytes} of ${limit} bytes`);
  };
  inBudget();
  t.ok(book.counts.builds < MARKETS.length, 'some do not fit');
  for (const { slug } of MARKETS) {
    for (let times = 0; times < 2; times += 1) {
      t.equal(await compareOne(t, twins, { ...WEEK, slug }), 200);
      await book.settled();
      inBudget();
    }
  }
  t.ok(book.state.evictions > 0, `${book.state.evictions} were evicted`);
  const { builds } = book.counts;
  t.ok(builds <= 2 * MARKETS.length, `${builds} editions were built`);
});

t.test('two markets that do not fit together do not evict each other for ever', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const sizeOf = async (slug: string) => {
    const { book, cached } = await twinsOn(t, database);
    await cached.post(slug, {});
    await book.settled();
    return book.state.bytes;
  };
  const [one, other] = ['nickel', 'copper'];
  const limit = 1.1 * Math.max(await sizeOf(one), await sizeOf(other));
  const twins = await twinsOn(t, database, {
    PRICE_BOOK_BYTES: String(Math.round((limit * 4) / 3)),
  });
  const { book } = twins;
  const ask = async (slug: string) => {
    await compareOne(t, twins, { ...WEEK, slug });
    await book.settled();
    return book.counts.builds;
  };
  for (let round = 0; round < 5; round += 1) {
    for (const slug of [one, other]) t.equal(await ask(slug), 1);
  }
  t.equal(await ask(other), 2, 'a market without a request since the one before is evicted');
  t.same([await ask(other), book.state.evictions], [2, 1]);
});

t.test('a database that was replaced is read again', async (t) => {
  const twins = await bulkTwins(t);
  const { database, book } = twins;
  await fill(twins);
  await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
  await compareOne(t, twins, WEEK);
  const { builds } = book.counts;
  await database.pool.query("update service set epoch = 'zzzz'");
  t.equal(await compareOne(t, twins, WEEK), 200);
  await book.settled();
  t.equal(book.counts.builds, builds + 1);
  t.equal(await compareOne(t, twins, WEEK), 200);
});

t.test('closing the service ends what the book has begun', async (t) => {
  const { cached, book, database } = await bulkTwins(t);
  const filling = fill({ book, database });
  await cached.app.close();
  await filling;
  t.ok(book.counts.builds < MARKETS.length);
});
