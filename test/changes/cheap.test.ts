import t from 'tap';
import { type ChangesRequest, readPage } from '../../src/prices/changes/page.ts';
import { referenceReader } from '../../src/prices/market/references.ts';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { explainedReads } from '../support/database/query-plans.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';

const PRICES = 300;
const POINTS = 400;
const DAYS = 20;

/** A long history, then a point a day for each price, and one price of copper. */
async function history(test: Pick<typeof t, 'teardown'>): Promise<TestDatabase> {
  const database = await testDatabase(test);
  const { pool } = database;
  await fill(database, { prices: PRICES, points: POINTS });
  await inRevision(
    pool,
    `insert into product (uuid, market_id, slug, name, alias, chemical_code, is_sustainable,
        match_key)
      select gen_random_uuid(), id, 'one', 'One', 'O', 'O', false, 'one' from market
      where slug = 'copper'`,
  );
  const copper = { code: 'C-1', currency: 'USD', unit: 'tonne', market: 'copper' };
  await commit(pool, (client) => addPrice(client, copper));
  for (let day = 1; day <= DAYS; day += 1) {
    await inRevision(
      pool,
      `insert into series (price_id, date, mid, published_at)
        select id, date '2024-01-01' + ${day}, ${day}, '2024-03-01Z' from price
        where code <> 'C-1'`,
    );
    if (day % 5 === 0) {
      await commit(pool, (client) =>
        putPoints(client, 'C-1', [`2024-01-${String(day).padStart(2, '0')}`, null, '1', null]),
      );
    }
  }
  await inRevision(
    pool,
    `update series set mid = 99, low = null, high = null, corrections = 1
      where date = '2024-01-02' and price_id = (select id from price where code = 'BULK-00007')`,
  );
  await pool.query('vacuum analyze');
  return database;
}

/** The members of a request for changes of all prices and kinds. */
const ALL = { readableMarkets: [], codes: null, operations: null, form: 'json' } as const;

/** The position of a change on the wire. */
async function positionOf({ pool }: TestDatabase, change: number): Promise<string> {
  const { rows } = await pool.query<{ position: string }>(
    `select concat(s.epoch, r.commit_id, '.', $1::bigint) as position
      from service s left join revision r on r.number = (
        select revision from change_segment where first_seq <= $1::bigint
        order by first_seq desc limit 1)`,
    [change],
  );
  return rows[0]?.position ?? '';
}

t.test('a page scans what it shows, however long the history is', async (t) => {
  const database = await history(t);
  const { client, pool } = database;
  const { db, scannedIn } = explainedReads(pool);
  const page = async (market: string, after: number | string, limit: number) => {
    const position = typeof after === 'string' ? after : await positionOf(database, after);
    const reads = Object.create(client.reads, { db: { value: () => db } });
    const sources = { reads, references: referenceReader(1) };
    const { result, scanned } = await scannedIn(['series', 'change_segment'], () =>
      readPage(sources, { ...ALL, markets: [market], start: { after: position }, limit }),
    );
    const { changes, next } = result;
    return { changes, next: Number(next.split('.')[1]), scanned };
  };
  const loaded = PRICES * (POINTS + 1);

  const daily = await page(BULK_MARKET.slug, loaded + 1, PRICES);
  t.equal(daily.changes.length, PRICES);
  t.equal(daily.scanned.series, PRICES, 'of a day: one point of each price');

  const inside = await page(BULK_MARKET.slug, 50 * (POINTS + 1) + 300, 50);
  t.equal(inside.changes.length, 50);
  t.equal(inside.scanned.series, POINTS, 'inside of a load: the points of one price');
  t.ok(inside.scanned.change_segment < 60, `${inside.scanned.change_segment} segments`);

  const across = await page(BULK_MARKET.slug, 50 * (POINTS + 1) + 380, 50);
  t.equal(across.changes.length, 50);
  t.equal(across.scanned.series, 2 * POINTS);

  const rare = await page('copper', 0, 1_000);
  t.equal(rare.changes.length, 1 + DAYS / 5);
  t.equal(rare.next, loaded + 1 + DAYS * PRICES + DAYS / 5 + 1, 'behind the correction too');
  t.equal(rare.scanned.series, DAYS / 5, 'of a market among others: its own points');
  t.ok(rare.scanned.change_segment < 20, `${rare.scanned.change_segment} segments`);

  const nothing = await page('copper', rare.next, 1_000);
  t.equal(nothing.changes.length, 0);
  // The newest one, and the one in which the position lies.
  t.same([nothing.scanned.series, nothing.scanned.change_segment], [0, 2]);

  const { rows } = await pool.query('select revision_text(2) as text');
  const old = await page('copper', `revision:${rows[0].text}`, 1);
  t.equal(old.changes.length, 1);
  t.ok(old.scanned.change_segment < 10, `${old.scanned.change_segment} segments after a revision`);
});

t.test('a page of some kinds or prices scans their changes only', async (t) => {
  const database = await history(t);
  const { client, pool } = database;
  const { db, scannedIn } = explainedReads(pool);
  const loaded = PRICES * (POINTS + 1);
  const segments = PRICES * (DAYS + 1) + DAYS / 5 + 2;
  const filtered = async (filters: Partial<ChangesRequest>, limit: number) => {
    const reads = Object.create(client.reads, { db: { value: () => db } });
    const sources = { reads, references: referenceReader(1) };
    const markets = [BULK_MARKET.slug, 'copper'];
    const request = { ...ALL, start: { after: await positionOf(database, loaded) }, ...filters };
    const { result, scanned } = await scannedIn(
      ['series', 'series_history', 'change_segment'],
      () => readPage(sources, { ...request, markets, limit }),
    );
    return { ...result, scanned };
  };

  const corrected = await filtered({ operations: ['corrected'] }, 1_000);
  t.equal(corrected.changes.length, 1, 'one correction after all publications');
  t.equal(corrected.hasMore, false);
  t.equal(corrected.scanned.series, 1, 'only the points of its own segment');
  t.ok(corrected.scanned.change_segment <= segments + 60, 'each segment once');

  const some = await filtered({ codes: ['BULK-00001', 'bulk-00002', 'C-1'] }, 10);
  t.equal(some.changes.length, 10);
  t.ok(
    some.scanned.change_segment < 100,
    `${some.scanned.change_segment} segments of three prices`,
  );
});

t.test('a page of rare changes reads a bounded part of the feed, and says so', async (t) => {
  const database = await testDatabase(t);
  const { client, pool } = database;
  await fill(database, { prices: 11_000, points: 1 });
  for (let day = 1; day <= 10; day += 1) {
    await inRevision(
      pool,
      `insert into series (price_id, date, mid, published_at)
        select id, date '2024-01-01' + ${day}, ${day}, '2024-03-01Z' from price`,
    );
  }
  await inRevision(
    pool,
    `delete from series where date = '2024-01-02'
      and price_id = (select id from price where code = 'BULK-00007')`,
  );
  await pool.query('vacuum analyze');
  const { db, scannedIn } = explainedReads(pool);
  const reads = Object.create(client.reads, { db: { value: () => db } });
  const sources = { reads, references: referenceReader(1) };
  const page = (start: ChangesRequest['start']) =>
    scannedIn(['series', 'series_history', 'change_segment'], () =>
      readPage(sources, {
        ...{ ...ALL, markets: [BULK_MARKET.slug], start, limit: 10 },
        operations: ['withdrawn', 'corrected'],
      }),
    );
  // Starts after the segments of the first load, which all have a change of the price itself.
  const first = await page({ after: await positionOf(database, 22_000) });
  t.same([first.result.changes.length, first.result.hasMore], [0, true]);
  t.ok(first.scanned.change_segment < 101_000, `${first.scanned.change_segment} segments`);
  t.ok(first.scanned.series <= 10, 'no points of segments without a superseded value');
  const second = await page({ after: first.result.next });
  t.same([second.result.changes.length, second.result.hasMore], [1, false]);
});
