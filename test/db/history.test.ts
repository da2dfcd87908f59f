import fc from 'fast-check';
import type pg from 'pg';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  insertOf,
  inTransaction,
  pointRow,
  priceId,
  writeMinimalData,
} from '../support/database/minimal-data.ts';

/** One statement of a revision, on one of two prices and four days. */
interface HistoryStep {
  readonly what: 'publish' | 'correct' | 'withdraw' | 'rename';
  readonly price: 'T-1' | 'T-3';
  readonly day: number;
  readonly value: number;
}

const step: fc.Arbitrary<HistoryStep> = fc.record({
  what: fc.constantFrom('publish', 'correct', 'withdraw', 'rename'),
  price: fc.constantFrom('T-1', 'T-3'),
  day: fc.integer({ min: 1, max: 4 }),
  value: fc.integer({ min: 1, max: 9 }),
});

/** The expected content of the tables, in plain JavaScript. */
interface ExpectedTables {
  readonly points: Map<string, string>;
  readonly names: Map<string, string>;
}

const copyOf = (world: ExpectedTables): ExpectedTables => ({
  points: new Map(world.points),
  names: new Map(world.names),
});

/** The SQL of a step and its effect on the model; null for a no-op. */
function apply(world: ExpectedTables, { what, price, day, value }: HistoryStep): string | null {
  const date = `2024-01-0${day}`;
  const key = `${price} ${date}`;
  const where = `price_id = ${priceId(price)} and date = '${date}'`;
  const known = world.points.get(key);
  if (what === 'rename') {
    world.names.set(price, `Name ${value}`);
    return `update price set name = 'Name ${value}' where code = '${price}'`;
  }
  if (what === 'publish' && known === undefined) {
    world.points.set(key, `${value} 0`);
    const values = { low: 'null', mid: String(value), high: 'null' };
    return insertOf('series', pointRow({ ...values, price_id: priceId(price), date: `'${date}'` }));
  }
  if (what === 'correct' && known !== undefined) {
    world.points.set(key, `${value} ${Number(known.split(' ')[1]) + 1}`);
    return `update series set mid = ${value}, corrections = corrections + 1 where ${where}`;
  }
  if (what === 'withdraw' && known !== undefined) {
    world.points.delete(key);
    return `delete from series where ${where}`;
  }
  return null;
}

const sorted = (map: ReadonlyMap<string, string>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

async function readAt(pool: pg.Pool, revision: number) {
  const points = await pool.query(
    `select p.code || ' ' || s.date as key, s.mid || ' ' || s.corrections as value
     from series_at($1) s join price p on p.id = s.price_id`,
    [revision],
  );
  const names = await pool.query('select code as key, name as value from price_at($1)', [revision]);
  const latest = await pool.query(
    `select code || ' ' || l.date as key from price, latest_point_at(price.id, $1) l`,
    [revision],
  );
  const mapOf = (rows: { key: string; value: string }[]) =>
    new Map(rows.map((each) => [each.key, each.value]));
  const lastDays: string[] = latest.rows.map((each) => each.key).sort();
  return { points: mapOf(points.rows), names: mapOf(names.rows), lastDays };
}

/** The last key of each price: keys end with the day. */
const lastDaysOf = (world: ExpectedTables): string[] =>
  ['T-1', 'T-3'].flatMap(
    (price) =>
      [...world.points.keys()]
        .filter((key) => key.startsWith(price))
        .sort()
        .at(-1) ?? [],
  );

/** Runs the steps of one revision; null when they come to nothing. */
const commit = (
  pool: pg.Pool,
  world: ExpectedTables,
  steps: readonly HistoryStep[],
): Promise<number | null> =>
  inTransaction(pool, async (client) => {
    const statements = steps.map((each) => apply(world, each)).filter((each) => each !== null);
    if (statements.length === 0) return null;
    const { rows } = await client.query("select open_revision('test') as number");
    for (const statement of statements) await client.query(statement);
    return Number(rows[0].number);
  });

t.test(
  'every revision reads as it was, after any publications, corrections and withdrawals',
  async (t) => {
    const { pool } = await testDatabase(t);
    const first = await writeMinimalData(pool);
    const world: ExpectedTables = {
      points: new Map(),
      names: new Map(['T-1', 'T-2', 'T-3'].map((code) => [code, `Price ${code}`])),
    };
    const past = new Map<number, ExpectedTables>([[first, copyOf(world)]]);
    const commits = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), {
      minLength: 1,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(commits, async (revisions) => {
        for (const steps of revisions) {
          const number = await commit(pool, world, steps);
          if (number !== null) past.set(number, copyOf(world));
        }
      }),
      // The world carries on from run to run, so a failure cannot be made smaller.
      { numRuns: 25, endOnFailure: true },
    );
    t.ok(past.size > 60, `${past.size} revisions`);
    for (const [number, then] of past) {
      const seen = await readAt(pool, number);
      t.same(sorted(seen.points), sorted(then.points), `points at ${number}`);
      t.same(sorted(seen.names), sorted(then.names), `names at ${number}`);
      t.same(seen.lastDays, lastDaysOf(then), `latest points at ${number}`);
    }
    const { points } = await readAt(pool, 0);
    t.equal(points.size, 0, 'nothing before the first');
  },
);

t.test(
  'a superseded row is kept once, and an intermediate row of the same revision is not',
  async (t) => {
    const { pool } = await testDatabase(t);
    await writeMinimalData(pool);
    const revision = (...statements: string[]) =>
      inTransaction(pool, async (client) => {
        await client.query("select open_revision('test')");
        for (const statement of statements) await client.query(statement);
      });
    await revision(insertOf('series', pointRow()), 'update series set mid = 9.5');
    await revision(
      'update series set mid = 9.6, corrections = 1',
      'update series set mid = 9.7, corrections = 1',
      'delete from series',
      insertOf('series', pointRow({ mid: '9.8' })),
    );
    const { rows } = await pool.query('select mid, revision, revision_to from series_history');
    t.same(rows, [{ mid: '9.5', revision: '2', revision_to: '3' }]);
    const { rows: now } = await pool.query('select mid, revision from series');
    t.same(now, [{ mid: '9.8', revision: '3' }]);
  },
);

t.test('reference data reads as it was, and a name can come back', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const rename = (name: string) =>
    inTransaction(pool, async (client) => {
      await client.query("select open_revision('test')");
      await client.query("update product set name = $1 where slug = 'nickel-metal'", [name]);
      await client.query("update dimension_value set name = $1 where slug = 'europe'", [name]);
      await client.query('update currency set name = $1', [name]);
      await client.query("update unit_of_measure set name = $1 where slug = 'tonne'", [name]);
    });
  for (const name of ['A', 'B', 'A']) await rename(name);
  const namesAt = async (revision: number) => {
    const { rows } = await pool.query(
      `select name from product_at($1) where slug = 'nickel-metal'
       union all select name from dimension_value_at($1) where slug = 'europe'
       union all select name from currency_at($1)
       union all select name from unit_of_measure_at($1) where slug = 'tonne'`,
      [revision],
    );
    return rows.map((each) => each.name);
  };
  t.same(await namesAt(1), ['nickel-metal', 'europe', 'US dollar', 'Tonne']);
  t.same(await namesAt(2), ['A', 'A', 'A', 'A']);
  t.same(await namesAt(3), ['B', 'B', 'B', 'B']);
  t.same(await namesAt(4), ['A', 'A', 'A', 'A']);
});
