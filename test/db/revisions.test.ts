import type pg from 'pg';
import t from 'tap';
import { numberOf, readDataRevision, revisionText } from '../../src/db/revisions.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  failureOf,
  inRevision,
  insertOf,
  inTransaction,
  pointRow,
  rateRow,
  valueRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';

const revisions = async (pool: pg.Pool): Promise<{ number: string; committed_at: string }[]> =>
  (await pool.query('select number, committed_at from revision order by number')).rows;

t.test(
  'a revision that changes nothing is refused at the commit and spends no number',
  async (t) => {
    const { pool } = await testDatabase(t);
    await writeMinimalData(pool);
    const { message, hint } = await failureOf(inRevision(pool));
    t.equal(message, 'revision 2 changed nothing');
    t.match(hint, 'only when there is something to write');
    const update = "update series set mid = 1 where date = '1990-01-01'";
    t.equal((await failureOf(inRevision(pool, update))).message, 'revision 2 changed nothing');
    await failureOf(inRevision(pool, insertOf('series', pointRow()), 'select 1 / 0'));
    t.equal(await inRevision(pool, insertOf('series', pointRow())), 2);
    t.same(
      (await revisions(pool)).map((each) => each.number),
      ['1', '2'],
    );
  },
);

t.test(
  'a transaction has one revision, also around a savepoint that was rolled back',
  async (t) => {
    const { pool } = await testDatabase(t);
    await writeMinimalData(pool);
    const numbers = await inTransaction(pool, async (client) => {
      const open = async () => (await client.query("select open_revision('x') as n")).rows[0].n;
      await client.query('savepoint a');
      const first = await open();
      await client.query('rollback to savepoint a');
      const { message } = await failureOf(
        client.query('savepoint b').then(() => client.query(insertOf('series', pointRow()))),
      );
      t.equal(message, 'a change of series needs a revision of its own');
      await client.query('rollback to savepoint b');
      const again = [await open(), await open()];
      await client.query(insertOf('series', pointRow()));
      return [first, ...again];
    });
    t.same(numbers, ['2', '2', '2']);
    const { rows } = await pool.query('select current_revision() as open, revision from series');
    t.same(rows, [{ open: null, revision: '2' }], 'and none is open after it');
  },
);

t.test('numbers have no gap and times grow strictly, however many write at once', async (t) => {
  const { pool, db } = await testDatabase(t);
  await writeMinimalData(pool);
  const writer = async (own: number) => {
    const seen: number[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      const date = `'2020-01-01'::date + ${own * 100 + turn}`;
      const statements = [insertOf('series', pointRow({ date }))];
      // One in four fails, and must leave no trace in the numbering.
      const fails = (own + turn) % 4 === 0;
      if (fails) {
        const failing = inRevision(pool, ...statements, 'select 1 / 0');
        t.equal((await failureOf(failing)).message, 'division by zero');
        continue;
      }
      const number = await inRevision(pool, ...statements);
      const { revision } = await readDataRevision(db, ['nickel']);
      t.ok(Number(numberOf(revision)) >= number, 'a check that begins after a commit sees it');
      seen.push(number);
    }
    return seen;
  };
  const numbers = (await Promise.all([0, 1, 2, 3].map(writer))).flat().sort((a, b) => a - b);
  const all = await revisions(pool);
  t.same(
    numbers,
    numbers.map((_, index) => index + 2),
  );
  t.equal(all.length, numbers.length + 1);
  const { rows } = await pool.query(
    `select count(*)::int as late from revision a join revision b on b.number = a.number + 1
     where b.committed_at <= a.committed_at`,
  );
  t.same(rows, [{ late: 0 }]);
});

t.test('a revision moves the scopes that it touched, and no other', async (t) => {
  const { pool, db } = await testDatabase(t);
  const empty = await readDataRevision(db, ['nickel']);
  t.match(empty, { revision: '0', reference: '0', committedAt: '1970-01-01T00:00:00Z' });
  await writeMinimalData(pool);
  const touched = async (...statements: string[]) => {
    const number = await inRevision(pool, ...statements);
    const { rows } = await pool.query(
      'select scope from revision_scope where revision = $1 order by scope',
      [number],
    );
    return rows.map((each) => each.scope);
  };
  const nickel = insertOf('series', pointRow());
  const copper = insertOf(
    'series',
    pointRow({ price_id: "(select id from price where code = 'T-3')" }),
  );
  t.same(await touched(nickel), ['nickel']);
  t.same(await touched(copper), ['copper']);
  t.same(await touched('update series set corrections = 1'), ['copper', 'nickel']);
  t.same(await touched("update price set name = 'N' where code = 'T-2'"), ['nickel']);
  t.same(await touched(insertOf('fx_rate', rateRow())), ['fx:TEST']);
  t.same(await touched('update fx_rate set rate = 2'), ['fx:TEST']);
  t.same(await touched(insertOf('dimension_value', valueRow('region', 'asia'))), ['reference']);
  t.same(await touched("update product set name = 'P' where slug = 'copper-metal'"), ['reference']);
  t.same(await touched("update currency set symbol = 'US$'"), ['reference']);
  t.same(await touched("update unit_of_measure set symbol = 'T' where slug = 'tonne'"), [
    'reference',
  ]);
  t.same(await touched('delete from fx_rate'), ['fx:TEST']);
  const withdrawn = "delete from series where price_id = (select id from price where code = 'T-3')";
  t.same(await touched(withdrawn, "delete from price where code = 'T-3'"), ['copper']);
  const heads = await Promise.all(
    ['nickel', 'copper', 'cobalt', 'fx:TEST'].map((s) => readDataRevision(db, [s])),
  );
  t.same(
    heads.map((each) => [numberOf(each.revision), numberOf(each.reference)]),
    [
      ['11', '11'],
      ['13', '11'],
      ['11', '11'],
      ['12', '11'],
    ],
  );
  const both = await readDataRevision(db, ['nickel', 'copper']);
  t.match(revisionText(both), /^[0-9a-z]{12}\.13$/);
  const { rows } = await pool.query('select committed_at from revision where number = 13');
  t.equal(both.committedAt, rows[0].committed_at.replace(' ', 'T').replace('+00', 'Z'));
});
