import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { BULK_MARKET, fill as fillDatabase } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';
import { compareOne } from './compare.ts';
import { type BookRequest, fill, type Twins, twinsOn } from './support.ts';

const SIZE = { prices: 30, points: 1_500 };

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
  'the selection of filters is read again after a change of a price, and not of points',
  async (t) => {
    const twins = await bulkTwins(t);
    const { book, database } = twins;
    await fill(twins);
    const named: BookRequest = { ...WEEK, filters: { regions: ['Asia', 'nowhere'] } };
    const filterReads = async () => {
      const before = book.counts.filtersRead;
      t.equal(await compareOne(t, twins, named), 200);
      return book.counts.filtersRead - before;
    };
    t.equal(await filterReads(), 1, 'the first time');
    for (let round = 0; round < 3; round += 1) {
      await inRevision(database.pool, `update series set high = high + 1 where ${ONE_POINT}`);
      t.equal(await filterReads(), 0, 'a point has changed');
    }
    await inRevision(
      database.pool,
      "update price set name = 'New' where id = (select min(id) from price)",
    );
    t.equal(await filterReads(), 1, 'a price has changed');
    await inRevision(database.pool, "update dimension_value set name = name || ' new'");
    t.equal(await filterReads(), 1, 'a name has changed');
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

t.test('long work gives the event loop back', async (t) => {
  const twins = await bulkTwins(t);
  await fill(twins);
  const { turns } = twins.book;
  const before = turns.turns;
  await compareOne(t, twins, { ...ALL, options: { includeSeries: true, unitOfMeasure: 't' } });
  await compareOne(t, twins, { ...ALL, accept: 'text/csv' });
  t.ok(turns.turns > before + 2, `${turns.turns - before} turns`);
  t.ok(turns.longest < 40_000, `at most ${turns.longest} points between two of them`);
});

t.test('a longest answer gives the event loop back while it is written', async (t) => {
  const twins = await bulkTwins(t, {}, { prices: 60, points: 2_800 });
  const { turns } = twins.book;
  // Different requests for the same points: the answer is not kept.
  const longAnswer = async (day: number): Promise<number> => {
    const filters = { dateFrom: `1900-01-0${day}` };
    return (await twins.cached.post(ALL.slug, { filters, options: ALL.options })).text.length;
  };
  await fill(twins);
  await longAnswer(1);
  const { turns: before, points } = turns;
  const mb = (await longAnswer(2)) / 2 ** 20;
  t.ok(mb > 16, `${mb} MB: a shorter one is encoded before it is sent`);
  t.ok(turns.points - points < 20_000, 'counted work alone would not yield');
  const passed = turns.turns - before;
  t.ok(passed >= Math.floor(mb / 1.2), `${passed} turns while ${mb} MB are written`);
});

t.test('the cache stays within its budget', async (t) => {
  const limit = 2_500_000;
  const twins = await bulkTwins(t, { PRICE_BOOK_BYTES: String(limit) });
  const { budget } = twins.book;
  await fill(twins);
  t.ok(budget.state.bytes > 500_000 && budget.state.bytes <= limit, `${budget.state.bytes} bytes`);
  for (const request of [ALL, WEEK, ALL]) {
    await compareOne(t, twins, request);
    t.ok(budget.state.bytes <= limit, `${budget.state.bytes} bytes`);
  }
  t.ok(budget.state.evictions > 0, `${budget.state.evictions} were evicted`);
  // Answers of a market may evict its own edition: at most once for each request.
  const { builds } = twins.book.counts;
  t.ok(builds >= MARKETS.length && builds <= MARKETS.length + 3, `${builds} editions were built`);
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
