import type pg from 'pg';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  CURRENCY,
  failureOf,
  inRevision,
  insertOf,
  pointRow,
  priceRow,
  productRow,
  rateRow,
  UNIT,
  writeMinimalData,
} from '../support/database/minimal-data.ts';

/** The tables of which nothing is ever overwritten, with a row of each that no other refers to. */
const VERSIONED = {
  currency: "iso = 'EUR'",
  unit_of_measure: "slug = 'kilogram'",
  dimension_value: "slug = 'europe'",
  product: "slug = 'other'",
  search_alias: 'true',
  price: "code = 'T-3'",
  series: 'true',
  fx_rate: 'true',
};
const TABLES = Object.keys(VERSIONED) as (keyof typeof VERSIONED)[];

/** A row more of each table, unreferenced where that matters. */
const writeMore = (pool: pg.Pool) =>
  inRevision(
    pool,
    insertOf('currency', { ...CURRENCY, iso: "'EUR'" }),
    insertOf('unit_of_measure', { ...UNIT, slug: "'kilogram'", name_key: "'kilogram'" }),
    insertOf('product', productRow('nickel', 'other')),
    "insert into search_alias (words, alias) values ('nickel', 'Nikl')",
    insertOf('series', pointRow()),
    insertOf('fx_rate', rateRow()),
  );

t.test(
  'data changes only with a revision of its own, and a hint says how to open one',
  async (t) => {
    const { pool } = await testDatabase(t);
    await writeMinimalData(pool);
    await writeMore(pool);
    for (const table of TABLES) {
      for (const change of [
        table === 'series'
          ? `insert into series (price_id, date, mid, published_at)
              select price_id, date - 400, mid, published_at from series limit 1`
          : `insert into ${table} overriding system value select * from ${table} limit 1`,
        `update ${table} set revision = revision`,
        `delete from ${table} where ${VERSIONED[table]}`,
      ]) {
        const { message, hint } = await failureOf(pool.query(change));
        t.equal(message, `a change of ${table} needs a revision of its own`, change);
        t.match(hint, /select open_revision\('why'\)/, change);
      }
    }
  },
);

t.test('a point carries the revision that wrote it, and no other', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  for (const revision of ['1', '1000']) {
    const forged = insertOf('series', { ...pointRow({ date: "'2020-01-01'" }), revision });
    const { message, hint } = await failureOf(inRevision(pool, forged));
    t.equal(message, 'a change of series needs a revision of its own');
    t.match(hint, /select open_revision/);
  }
  await inRevision(pool, insertOf('series', pointRow()), insertOf('fx_rate', rateRow()));
  for (const forged of ['1', '1000', '(select current_revision())', 'revision']) {
    const opened = await inRevision(
      pool,
      `update series set mid = mid + 0.1, revision = ${forged}`,
      `update fx_rate set rate = rate + 0.1, revision = ${forged}`,
    );
    for (const table of ['series', 'fx_rate']) {
      const { rows } = await pool.query(`select revision::integer from ${table}`);
      t.strictSame(rows, [{ revision: opened }], `${table}: ${forged}`);
    }
  }
});

t.test('published data are never truncated, and the past is never written', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  await writeMore(pool);
  await inRevision(
    pool,
    "update currency set name = 'Dollar' where iso = 'USD'",
    "update unit_of_measure set name = 'Ton' where slug = 'tonne'",
    "update dimension_value set name = 'EU' where slug = 'europe'",
    "update product set alias = 'N'",
    "update search_alias set alias = 'Nikkel'",
    "update price set name = 'P'",
    'update series set mid = 10.5, corrections = 1',
    'update fx_rate set rate = 1.5',
  );
  const withRevision = (statement: string) => failureOf(inRevision(pool, statement));
  for (const table of TABLES.flatMap((each) => [each, `${each}_history`])) {
    const { message } = await withRevision(`truncate ${table} cascade`);
    t.match(message, /^truncate of \w+ is refused: what was published is kept for ever$/, table);
  }
  const frozen = [...TABLES.map((each) => `${each}_history`), 'revision', 'revision_scope'];
  for (const table of frozen) {
    const column = { revision: 'reason', revision_scope: 'scope' }[table] ?? 'revision_to';
    for (const change of [`update ${table} set ${column} = ${column}`, `delete from ${table}`]) {
      t.match((await withRevision(change)).message, /is refused: what was published/, change);
    }
  }
  for (const table of ['revision', 'revision_scope']) {
    t.match(
      (await failureOf(pool.query(`truncate ${table} cascade`))).message,
      /is refused/,
      table,
    );
  }
});

t.test('market, code, type, currency and unit of a price never change; the rest may', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const update = (change: string, table = 'price', where = "code = 'T-1'") =>
    failureOf(inRevision(pool, `update ${table} set ${change} where ${where}`));
  for (const change of [
    `market_id = ${priceRow('')['market_id']?.replace('nickel', 'copper')}`,
    "code = 'T-9'",
    "price_type = 'payable'",
    'currency_id = null',
    "unit_id = (select id from unit_of_measure where slug = 'percent')",
  ]) {
    const { message, hint } = await update(change);
    t.equal(message, 'market, code, type, currency and unit of price T-1 never change', change);
    t.match(hint, 'new price with a code of its own');
  }
  t.match(await update("name = 'Other', short_name = 'O'"), { message: 'nothing failed' });
  await inRevision(pool, insertOf('series', pointRow()), insertOf('fx_rate', rateRow()));
  for (const [change, table, where] of [
    ["kind = 'country'", 'dimension_value', "slug = 'europe'"],
    ["slug = 'eu'", 'dimension_value', "slug = 'europe'"],
    ['factor = 1', 'unit_of_measure', "slug = 'tonne'"],
    ["dimension = 'energy'", 'unit_of_measure', "slug = 'tonne'"],
    ["iso = 'EUR'", 'currency', 'true'],
    ["price_id = (select id from price where code = 'T-3')", 'series', 'true'],
    ['date = date - 1', 'series', 'true'],
    ['date = date - 1', 'fx_rate', 'true'],
  ] as const) {
    t.equal(
      (await update(change, table, where)).message,
      `what identifies a row of ${table} never changes`,
    );
  }
});

t.test('a revision of another transaction opens nothing', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  await writeMore(pool);
  for (const table of TABLES) {
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query("select set_config('prices.revision', '1', true)");
      const failed = client.query(`delete from ${table} where ${VERSIONED[table]}`);
      t.match((await failureOf(failed)).message, /was not opened by this transaction/, table);
    } finally {
      await client.query('rollback');
      client.release();
    }
  }
});

t.test('history and touched scopes are written by triggers alone', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  await writeMore(pool);
  for (const table of TABLES) {
    // By name: a later column stands after revision_to in the history.
    const row = `to_jsonb(t) || '{"revision_to": 9}'`;
    const insert =
      `insert into ${table}_history ` +
      `select (jsonb_populate_record(null::${table}_history, ${row})).* from ${table} t limit 1`;
    t.match((await failureOf(pool.query(insert))).message, /kept for ever/, table);
  }
  const scope = "insert into revision_scope (scope, revision) values ('copper', 1)";
  t.match((await failureOf(pool.query(scope))).message, /kept for ever/);
});
