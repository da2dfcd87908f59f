import fc from 'fast-check';
import { to as copyTo } from 'pg-copy-streams';
import t from 'tap';
import { columnSlice, nativePoints } from '../../src/conversion/columns.ts';
import { columnsOf, SeriesReader } from '../../src/prices/series/copy-binary.ts';
import {
  columnsOfRows,
  daysStatement,
  type FewPointsRow,
  fewPoints,
  seriesStatement,
  sqlSeries,
} from '../../src/prices/series/from-sql.ts';
import type { SeriesRange } from '../../src/prices/series/ranges.ts';
import { ALL_DAYS, type Days, dayOf } from '../../src/std/days.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  failureOf,
  inRevision,
  insertOf,
  inTransaction,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { dayText, decimalText, values } from '../support/prices/decimals.ts';
import { parseExact } from '../support/prices/oracle.ts';
import { pointsText } from '../support/prices/points-text.ts';
import { countTurns } from '../support/run/turns.ts';

const NEVER = new AbortController().signal;

/** Days from 1800-01-01 to 2025-12-31, counted from 2000-01-01. */
const DAYS = { min: -73_048, max: 9_496 };

const instant = fc
  .record({
    day: fc.integer(DAYS),
    second: fc.integer({ min: 0, max: 86_399 }),
    micros: fc.oneof(fc.constant(0), fc.constantFrom(1, 10, 100_000, 999_999), fc.nat(999_999)),
  })
  .map(({ day, second, micros }) => {
    const two = (value: number) => String(value).padStart(2, '0');
    const time = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60].map(two);
    return `${dayText(day)}T${time.join(':')}.${String(micros).padStart(6, '0')}Z`;
  });

const rows = fc.uniqueArray(
  fc.record({ day: fc.integer(DAYS), values, published: instant, corrections: fc.nat(99) }),
  { selector: (row) => row.day, maxLength: 60, size: 'max' },
);

/** All points. */
const ALL: SeriesRange = { days: ALL_DAYS, last: null };

let database: TestDatabase;
t.before(async () => {
  database = await testDatabase(t);
  await writeMinimalData(database.pool);
});

/** Compares the last points at a revision, on some days, with those of the whole series. */
async function compareLast(priceIds: readonly number[], revision: number) {
  const read = (days: Days, last: number | null) =>
    sqlSeries(database.client.reads)(priceIds, { days, last }, String(revision), NEVER);
  const half = { first: Math.trunc(DAYS.min / 2), last: Math.trunc(DAYS.max / 2) };
  for (const days of [ALL_DAYS, half]) {
    const whole = await read(days, null);
    for (const count of [1, 3]) {
      const tails = [...whole].map(([id, columns]) => {
        const from = Math.max(0, columns.length - count);
        return [id, columnSlice(columns, from, columns.length)] as const;
      });
      t.same(await read(days, count), new Map(tails), `the last ${count}`);
    }
  }
}

/** The points of some prices as the service encodes them, and as PostgreSQL prints them. */
async function bothTexts(priceIds: readonly number[], revision: number) {
  const series = await sqlSeries(database.client.reads)(priceIds, ALL, String(revision), NEVER);
  const encoded = priceIds.map((id) => {
    const columns = series.get(id);
    return parseExact(`[${columns ? pointsText(nativePoints(columns)).toString('latin1') : ''}]`);
  });
  const range = { first: DAYS.min, last: DAYS.max };
  const few = fewPoints(
    priceIds.map((priceId) => ({ priceId, ...range })),
    String(revision),
  );
  t.same(columnsOfRows(await database.client.reads.query<FewPointsRow>(few)), series);
  const { rows: printed } = await database.pool.query(
    `select price_id, date::text, low::text, mid::text, high::text,
       regexp_replace(to_char(published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'),
         '\\.?0*$', '') || 'Z' as "publishedAt", corrections::text
     from series_at($1) where price_id = any($2) order by price_id, date`,
    [revision, priceIds],
  );
  const byPrice = Map.groupBy(printed, (row) => row.price_id);
  const wanted = priceIds.map((id) =>
    (byPrice.get(id) ?? []).map(({ price_id: _, ...point }) => point),
  );
  return { encoded, wanted };
}

t.test('every stored value is printed as PostgreSQL prints it', async (t) => {
  const { rows: ids } = await database.pool.query('select id from price order by id');
  const [first, second] = ids.map((each) => each.id);
  let points = 0;
  await fc.assert(
    fc.asyncProperty(rows, rows, async (one, other) => {
      const revision = await inTransaction(database.pool, async (client) => {
        const { rows: opened } = await client.query("select open_revision('test') as number");
        await client.query('delete from series');
        for (const [id, list] of [
          [first, one],
          [second, other],
        ] as const) {
          const column = (of: (row: (typeof list)[number]) => string | null) => list.map(of);
          const value = (index: number, has: (row: (typeof list)[number]) => boolean) =>
            column((row) =>
              has(row) ? decimalText(row.values.three[index] ?? 0n, row.values.scale) : null,
            );
          await client.query(
            `insert into series (price_id, date, low, mid, high, published_at, corrections)
             select $1, * from unnest($2::date[], $3::numeric[], $4::numeric[], $5::numeric[],
               $6::timestamptz[], $7::integer[])`,
            [
              id,
              column((row) => dayText(row.day)),
              value(0, (row) => row.values.hasLow),
              value(1, () => true),
              value(2, (row) => row.values.hasHigh),
              column((row) => row.published),
              column((row) => String(row.corrections)),
            ],
          );
        }
        return Number(opened[0].number);
      });
      points += one.length + other.length;
      // The points of the revision before are in the history.
      for (const at of [revision, revision - 1]) await compareLast([first, second], at);
      const { encoded, wanted } = await bothTexts([first, second], revision);
      if (JSON.stringify(encoded) !== JSON.stringify(wanted)) {
        throw new Error(`${JSON.stringify(encoded)}\nshould be\n${JSON.stringify(wanted)}`);
      }
    }),
    { numRuns: 60 },
  );
  t.ok(points > 2_000, `${points} points`);
});

t.test('points of some days of several prices are looked up by the key', async (t) => {
  const client = await database.pool.connect();
  t.teardown(() => client.release(true));
  // A table this small is read whole where it may be; then where it need not be it is not.
  await client.query('set enable_seqscan = off');
  const days = { first: dayOf('2024-01-01'), last: dayOf('2024-01-03') };
  for (const priceIds of [[1], [1, 2], Array.from({ length: 50 }, (_, id) => id)]) {
    const statement = daysStatement(
      priceIds.map((priceId) => ({ priceId, ...days })),
      '42',
    );
    const inner = statement.slice('copy ('.length, statement.lastIndexOf(') to stdout'));
    const { rows } = await client.query(`explain ${inner}`);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    const scans = plan.match(/Scan .*on series(_history)?\b/g) ?? [];
    const found = plan.match(/Index Cond: \(\(price_id = \S+\) AND .*date >= .*date <= /g) ?? [];
    t.equal(scans.length, 2, plan);
    t.equal(found.length, 2, plan);
  }
});

t.test('a row with a value that no column may hold is refused, not rounded', async (t) => {
  const row = { priceId: 1, day: 0, low: null, mid: '1.50', high: null, micros: '0' };
  const read = (mid: string) => columnsOfRows([{ ...row, mid, corrections: 0 }]);
  t.equal(read('1.50').get(1)?.mid[0], 150);
  for (const bad of ['NaN', 'Infinity', '9007199254740993', '0.12345678901234567']) {
    t.throws(() => read(bad), { message: /^a stored value / }, bad);
  }
});

t.test('points that arrive in any order are in the order of their days', async (t) => {
  const { pool } = await testDatabase(t);
  const client = await pool.connect();
  const read = (order: string, more = '') =>
    columnsOf(
      client.query(
        copyTo(`copy (select price_id, date '2000-01-01' + day, day * 0.01, day * 0.01 + 1, null,
            timestamptz '2024-01-01T00:00Z' + day * interval '1 second', day
          from (select price_id, day, md5(price_id::text || '.' || day) as chance
            from generate_series(1, 7) as price_id, generate_series(1, 500 * price_id) as day
            ${more}) as point
          ${order}) to stdout (format binary)`),
      ),
    );
  const expected = await read('order by price_id, day');
  t.same(
    [...(expected.get(3)?.day ?? [])],
    Array.from({ length: 1_500 }, (_, at) => at + 1),
  );
  const byPrice = (series: Awaited<typeof expected>) => [...series].sort(([a], [b]) => a - b);
  for (const order of ['chance', 'day, price_id', 'price_id, day desc', 'day desc, price_id']) {
    t.same(byPrice(await read(`order by ${order}`)), byPrice(expected), order);
  }
  const history = '(day % 50 = 0), price_id, day';
  t.same(byPrice(await read(`order by ${history}`)), byPrice(expected), 'some rows come later');
  const twice = failureOf(read('', 'union all select 1, 77, null'));
  t.match(await twice, { message: /two points of one price and day/ });
  client.release(true);
});

t.test('points in another order are sorted price by price, and others run between', async (t) => {
  const { pool } = await testDatabase(t);
  const prices = 60;
  const rows = `select price, date '2024-01-01' - day, null::numeric, 1::numeric, null::numeric,
      now(), 0::integer
    from generate_series(1, ${prices}) as price, generate_series(1, 3) as day`;
  const client = await pool.connect();
  const reader = new SeriesReader();
  for await (const chunk of client.query(copyTo(`copy (${rows}) to stdout (format binary)`)))
    reader.push(chunk);
  client.release();
  const turns = countTurns(t);
  const series = await reader.end();
  turns.end();
  t.equal(series.size, prices);
  t.ok(turns.count >= prices / 6, `${turns.count} turns for ${prices} prices`);
});

t.test('a series that was cut off on its way is an error, never a shorter series', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const point = (day: number) => insertOf('series', pointRow({ date: `'2024-01-0${day}'` }));
  const revision = await inRevision(pool, point(1), point(2), point(3));
  const client = await pool.connect();
  const chunks: Buffer[] = [];
  const statement = seriesStatement([1], ALL_DAYS, String(revision));
  for await (const chunk of client.query(copyTo(statement))) chunks.push(chunk);
  client.release();
  const bytes = Buffer.concat(chunks);
  for (let length = 0; length < bytes.length; length += 1) {
    const reader = new SeriesReader();
    reader.push(bytes.subarray(0, length));
    await t.rejects(reader.end(), `${length} of ${bytes.length} bytes`);
    reader.push(bytes.subarray(length));
    const whole = await reader.end();
    t.same([...(whole.get(1)?.day ?? [])], [8_766, 8_767, 8_768], 'later it is whole');
  }
  const reader = new SeriesReader();
  for (const byte of bytes) reader.push(Buffer.of(byte));
  t.equal((await reader.end()).get(1)?.length, 3);
});

t.test('a value that no column may hold is refused, not rounded', async (t) => {
  const { pool } = await testDatabase(t);
  const read = async (value: string) => {
    const client = await pool.connect();
    const numbers = `null::numeric, ${value}::numeric, null::numeric`;
    const row = `select 1::integer, date '2024-01-01', ${numbers}, now(), 0::integer`;
    const reading = columnsOf(client.query(copyTo(`copy (${row}) to stdout (format binary)`)));
    return reading.finally(() => client.release(true));
  };
  for (const bad of [
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    '9007199254740993',
    '1e40',
    '0.12345678901234567',
  ]) {
    t.match((await failureOf(read(bad))).message, /^a stored value /, bad);
  }
  t.equal((await read('999999999999999')).get(1)?.mid[0], 999_999_999_999_999);
});

t.test('only digits and days become part of a statement', async (t) => {
  const evil = "1'); drop table series; --";
  for (const statement of [
    () => seriesStatement([Number.NaN], ALL_DAYS, '1'),
    () => seriesStatement([1.5], ALL_DAYS, '1'),
    () => seriesStatement([-1], ALL_DAYS, '1'),
    () => seriesStatement([1], ALL_DAYS, evil),
    () => seriesStatement([1], { first: Number.NaN, last: Infinity }, '1'),
    () => seriesStatement([1], { first: -Infinity, last: 0.5 }, '1'),
  ]) {
    t.throws(statement, { message: 'not a literal of the expected form' });
  }
});

t.test('a reader that is gone stops the reading, and the next one is served', async (t) => {
  const { client, pool } = await testDatabase(t);
  const gone = AbortSignal.abort(new Error('the client is gone'));
  const series = sqlSeries(client.reads);
  t.equal((await failureOf(series([1], ALL, '1', gone))).message, 'the client is gone');
  const going = new AbortController();
  const reading = failureOf(series([1], ALL, '1', going.signal));
  going.abort();
  await reading;
  t.equal((await series([1], ALL, '1', NEVER)).size, 0);
  t.equal(pool.waitingCount, 0);
});
