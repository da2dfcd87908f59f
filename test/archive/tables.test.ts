import t from 'tap';
import { ARCHIVED, MIGRATED_TABLES, tablesOf } from '../../src/archive/tables.ts';
import { MIGRATION_LOCK_TABLE, MIGRATION_TABLE } from '../../src/db/migrate/migrations.ts';
import { testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';

/** Tables that archives exclude, with the reason. */
const EXCLUDED_TABLES: Readonly<Record<string, string>> = {
  api_key: 'credentials belong to one installation',
  api_key_scope: 'credentials belong to one installation',
  key_use: 'credentials belong to one installation',
  key_audit: 'credentials belong to one installation',
  webhook: 'receivers belong to one installation',
  webhook_secret: 'credentials belong to one installation',
  webhook_message: 'receivers belong to one installation',
  webhook_count: 'counts of one installation',
  webhook_late: 'known by the messages of one installation',
  rate_usage: 'counts of running services are meaningless later',
  write_lock: 'has no rows',
  seal_lock: 'has no rows',
  access_scope: 'written by the migrate command',
  [MIGRATION_TABLE]: 'the manifest names the migrations',
  [MIGRATION_LOCK_TABLE]: 'the manifest names the migrations',
  migration_file: 'the manifest names the migrations',
};

t.test('every table is carried by an archive, or left out for a reason', async (t) => {
  const { pool } = await testDatabase(t);
  const { rows } = await pool.query(`select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`);
  const known = [...ARCHIVED.map((each) => each.name), ...Object.keys(EXCLUDED_TABLES)];
  t.same(
    rows.map(({ name }) => name).sort(),
    known.toSorted(),
    'a new table belongs into ARCHIVED of src/archive/tables.ts, or into EXCLUDED_TABLES',
  );
  t.equal(new Set(known).size, known.length, 'and into one of them');
});

t.test('every column is carried but those that mean nothing elsewhere', async (t) => {
  const { pool } = await testDatabase(t);
  const tables = await inTransaction(pool, (client) => tablesOf(client));
  const carried = tables.flatMap(({ name, columns }) =>
    columns.map((each) => `${name}.${each.name}`),
  );
  const { rows } = await pool.query(
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and table_name = any($1)`,
    [ARCHIVED.map((each) => each.name)],
  );
  const missing = rows.map(({ name }) => name).filter((each) => !carried.includes(each));
  t.same(missing.sort(), ['revision.opened_by', 'service.keys_change_id', 'service.keys_version']);
  t.same(tables.find((each) => each.name === 'series')?.key, ['price_id', 'date']);
});

t.test('each table comes after those that it refers to', async (t) => {
  const { pool } = await testDatabase(t);
  const { rows } = await pool.query(`
    select conrelid::regclass::text as of, confrelid::regclass::text as to
    from pg_constraint where contype = 'f' and conrelid <> confrelid`);
  const place = (name: string): number => ARCHIVED.findIndex((each) => each.name === name);
  const references = rows.filter((each) => place(each.of) >= 0);
  t.ok(references.length > 20);
  t.same(
    references.filter((each) => place(each.to) < 0 || place(each.to) > place(each.of)),
    [],
  );
});

t.test('a database that was only migrated has rows only in the listed tables', async (t) => {
  const { pool } = await testDatabase(t);
  const full: string[] = [];
  for (const { name } of ARCHIVED) {
    const { rows } = await pool.query(`select from ${name} limit 1`);
    if (rows.length > 0) full.push(name);
  }
  t.same(full, MIGRATED_TABLES);
});
