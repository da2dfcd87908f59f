import type pg from 'pg';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  failureOf,
  inRevision,
  insertOf,
  inTransaction,
  pointRow,
  priceId,
  priceRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { type ModelChange, publisherOn } from '../support/prices/random-commits.ts';

interface FeedSegment {
  readonly revision: number;
  readonly price_id: number;
  readonly first_seq: number;
  readonly price_changes: number;
  readonly points: number;
}

const SEGMENTS = `select revision::int, price_id, first_seq::int, price_changes, points
  from change_segment order by revision, price_id`;

const segmentsOf = async (pool: pg.Pool): Promise<FeedSegment[]> =>
  (await pool.query(SEGMENTS)).rows;

/** The segments that some changes, given in their order, are to be numbered by. */
function expectedSegments(changes: readonly ModelChange[]): FeedSegment[] {
  const segments = new Map<string, FeedSegment>();
  for (const [index, { revision, priceId: price_id, date }] of changes.entries()) {
    const key = `${revision} ${price_id}`;
    const known = segments.get(key);
    segments.set(key, {
      revision,
      price_id,
      first_seq: known?.first_seq ?? index + 1,
      price_changes: (known?.price_changes ?? 0) + (date === null ? 1 : 0),
      points: (known?.points ?? 0) + (date === null ? 0 : 1),
    });
  }
  return [...segments.values()];
}

/** Changes of points that lie outside the dates noted for them. */
async function outside(pool: pg.Pool, changes: readonly ModelChange[]): Promise<ModelChange[]> {
  const { rows } = await pool.query(
    'select revision || $1 || price_id as key, first_date, last_date from change_segment',
    [' '],
  );
  const ranges = new Map(rows.map((each) => [each.key, each]));
  return changes.filter(({ revision, priceId: id, date }) => {
    const { first_date, last_date } = ranges.get(`${revision} ${id}`);
    return date !== null && (first_date === null || date < first_date || date > last_date);
  });
}

/** Segments whose market is not that of their price. */
const WRONG_MARKET = `select s.revision, s.price_id from change_segment s
  where s.market_id is distinct from (select market_id from (
    select id, market_id from price union all select id, market_id from price_history
  ) as p where p.id = s.price_id limit 1)`;

for (const seed of [20_261_121, 7, 99]) {
  t.test(
    `changes of random commits are numbered without gap, in order, seed ${seed}`,
    async (t) => {
      const { pool } = await testDatabase(t);
      await writeMinimalData(pool);
      const publisher = await publisherOn(pool, seed);
      // Several at once: they wait for each other, and which comes first does not matter.
      const writer = async () => {
        for (let turn = 0; turn < 30; turn += 1) await publisher.transact();
      };
      await Promise.all([writer(), writer(), writer()]);
      const { changes } = publisher;
      const found = await segmentsOf(pool);
      t.same(found, expectedSegments(changes));
      t.same(await outside(pool, changes), []);
      t.same((await pool.query(WRONG_MARKET)).rows, []);
      const operations = new Set(changes.map((each) => each.operation));
      t.equal(operations.size, 5, [...operations].join());
      t.ok(changes.length > 200, `${changes.length} changes`);
    },
  );
}

t.test('a price that comes and goes in one revision has changed nothing', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  await inRevision(
    pool,
    insertOf('price', priceRow('R-1')),
    insertOf('series', pointRow({ price_id: priceId('R-1') })),
    insertOf('series', pointRow()),
    `delete from series where price_id = ${priceId('R-1')}`,
    "delete from price where code = 'R-1'",
  );
  t.match(await segmentsOf(pool), [
    { revision: 1 },
    { revision: 1 },
    { revision: 1 },
    { revision: 2, first_seq: 4, price_changes: 0, points: 1 },
  ]);
});

t.test('a point that several statements of a revision change is one change', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const published = (day: number) => insertOf('series', pointRow({ date: `'2024-01-0${day}'` }));
  const corrected = 'update series set mid = mid + 0.1, corrections = corrections + 1';
  const countOf = async (...statements: string[]) => {
    const revision = await inRevision(pool, ...statements);
    const segment = (await segmentsOf(pool)).find((each) => each.revision === revision);
    return segment?.points;
  };
  t.equal(await countOf(published(1), published(2), corrected), 2, 'published and corrected');
  t.equal(await countOf(corrected, corrected), 2, 'corrected twice');
  t.equal(
    await countOf(`${corrected} where date = '2024-01-01'`, corrected),
    2,
    'one of them twice',
  );
  t.equal(
    await countOf(published(3), corrected, "delete from series where date = '2024-01-03'"),
    2,
  );
  const [first, fourth] = [1, 4].map((day) =>
    Object.values(pointRow({ date: `'2024-01-0${day}'` })).join(', '),
  );
  const both = `insert into series (${Object.keys(pointRow()).join(', ')})
    values (${first}), (${fourth})
    on conflict (price_id, date) do update set mid = 10.9, corrections = series.corrections + 1`;
  t.equal(await countOf(both), 2, 'one statement that inserts and updates');
  t.equal(await countOf('delete from series', published(1)), 3, 'withdrawn and published again');
});

t.test('the numbers of changes cannot be written by hand, and none after the seal', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  for (const statement of [
    'update change_segment set first_seq = first_seq + 1',
    'delete from change_segment',
    'insert into change_segment (revision, price_id, points) values (1, 99, 0)',
    'truncate change_segment',
  ]) {
    const { message } = await failureOf(pool.query(statement));
    t.match(message, /of change_segment is refused: what was published is kept for ever$/);
  }
  const late = inTransaction(pool, async (client) => {
    await client.query("select open_revision('test')");
    await client.query(insertOf('series', pointRow()));
    await client.query('set constraints all immediate');
    await client.query("update series set mid = 10.5, corrections = 1 where date = '2024-01-02'");
  });
  t.equal((await failureOf(late)).message, 'revision 2 is sealed');
});

t.test('many prices of one revision are numbered in their order, without a gap', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const prices = 300;
  await inTransaction(pool, async (client) => {
    await client.query("select open_revision('many prices')");
    const row = priceRow('X', { code: "'MANY-' || n", code_key: "'many-' || n" });
    await client.query(`insert into price (${Object.keys(row).join()})
      select ${Object.values(row).join()} from generate_series(1, ${prices}) as n`);
  });
  const { rows } = await pool.query(SEGMENTS);
  const own = (rows as FeedSegment[]).filter(({ revision }) => revision === 2);
  t.equal(own.length, prices);
  t.same(
    own.map(({ first_seq }) => first_seq),
    own.map((_, index) => (own[0]?.first_seq ?? 0) + index),
  );
});

t.test('listeners are notified of the number of each revision once it can be read', async (t) => {
  const { pool } = await testDatabase(t);
  const listener = await pool.connect();
  t.teardown(() => listener.release(true));
  const payloads: string[] = [];
  listener.on('notification', ({ payload }) => payloads.push(payload ?? ''));
  await listener.query('listen revision');
  await writeMinimalData(pool);
  await failureOf(inRevision(pool, insertOf('series', pointRow()), 'select 1 / 0'));
  await inRevision(pool, insertOf('series', pointRow()));
  await listener.query('select 1');
  t.same(payloads, ['1', '2']);
});
