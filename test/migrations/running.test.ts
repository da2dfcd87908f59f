import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { migrateUp, migrationStatus } from '../../src/db/migrate/migrate.ts';
import { previewMigrations } from '../../src/db/migrate/migrations.ts';
import { applyRoles } from '../../src/db/migrate/roles.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { migrationsWith } from '../support/database/migrations.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { until } from '../support/http/sockets.ts';

const MIGRATOR = fileURLToPath(new URL('./migrator.ts', import.meta.url));

/** The tables that migrations of these tests have made. */
const createdTables = async ({ pool }: TestDatabase): Promise<string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relname like 'made%' order by relname`,
  );
  return rows.map(({ name }) => name);
};

const stateOf = async ({ db }: TestDatabase, folder: URL, name: string) =>
  (await migrationStatus(db, { folder })).find((each) => each.name === name)?.state;

t.test('one that fails takes nothing with it but itself', async (t) => {
  const database = await testDatabase(t);
  const { url: folder } = await migrationsWith(t, {
    '0101-one': { up: 'create table made_one (a integer)' },
    '0102-two': { up: 'create table made_two (a integer);; select 1 / 0' },
    '0103-three': { up: 'create table made_three (a integer)' },
  });
  await t.rejects(migrateUp(database.db, { folder }), /division by zero/);
  t.same(await createdTables(database), ['made_one']);
  t.equal(await stateOf(database, folder, '0101-one'), 'ran');
  t.equal(await stateOf(database, folder, '0102-two'), 'pending');
  await database.pool.query('create table made_by_hand (a integer)');
  t.pass('and no lock or setting is left on the connections');
});

t.test('a file that is not what ran is refused by name, before anything runs', async (t) => {
  const database = await testDatabase(t);
  const {
    url: folder,
    pathOf,
    write,
  } = await migrationsWith(t, {
    '0101-one': { up: 'create table made_one (a integer)' },
  });
  t.same(await migrateUp(database.db, { folder }), ['0101-one']);
  const one = await readFile(pathOf('0101-one'), 'utf8');
  await writeFile(pathOf('0101-one'), one.replaceAll('\n', '\r\n'));
  t.same(await migrateUp(database.db, { folder }), [], 'other line ends are the same file');

  await write('0102-two', { up: 'create table made_two (a integer)' });
  await appendFile(pathOf('0101-one'), '// A remark.\n');
  const drift = /migrations\/0101-one\.ts has changed since it ran here at 20.*put the change/;
  await t.rejects(migrateUp(database.db, { folder }), drift);
  await t.rejects(previewMigrations(database.db, folder), drift);
  t.equal(await stateOf(database, folder, '0101-one'), 'changed');
  t.same(await createdTables(database), ['made_one']);
  await writeFile(pathOf('0101-one'), one);
  t.same(await migrateUp(database.db, { folder }), ['0102-two']);
});

t.test(
  'a migration that ran before hashes were recorded gets the hash of its present file',
  async (t) => {
    const database = await testDatabase(t);
    const { url: folder, pathOf } = await migrationsWith(t, {});
    await database.pool.query('drop table migration_file');
    t.same(await migrateUp(database.db, { folder }), []);
    await appendFile(pathOf('0001-revisions'), '\n');
    await t.rejects(
      migrateUp(database.db, { folder }),
      /0001-revisions\.ts has changed since it ran/,
    );
  },
);

t.test('a database that a newer version has migrated stays as it is', async (t) => {
  const database = await roledDatabase(t);
  const newer = await migrationsWith(t, {
    '0101-one': { up: 'create table made_one (a integer)' },
  });
  const migrator = database.as('migrator');
  await migrateUp(migrator.db, { folder: newer.url });
  await migrator.pool.query(`grant insert on made_one to ${database.prefix}_loader`);
  t.same(await migrateUp(migrator.db), [], 'an older version has nothing to do');
  await database.as('loader').pool.query('insert into made_one values (1)');
  t.equal(await stateOf(database, (await migrationsWith(t, {})).url, '0101-one'), 'unknown');
  await t.rejects(applyRoles(database.db, database.prefix), /a newer version has migrated/);
});

t.test('a database of a version before 1.0.0 is refused, and stays as it is', async (t) => {
  const { db, pool } = await testDatabase(t);
  await pool.query("delete from kysely_migration where name > '0001-revisions'");
  await pool.query("update kysely_migration set name = '0001-schema'");
  await pool.query("update migration_file set name = '0001-schema' where name = '0001-revisions'");
  await t.rejects(migrateUp(db), {
    name: 'MigrationDriftError',
    message: /a version before 1\.0\.0 created this database.*load the files into a new database/,
  });
  const { rows } = await pool.query('select name from kysely_migration');
  t.same(rows, [{ name: '0001-schema' }]);
});

t.test('a dry run prints its statements, and runs, locks and waits for nothing', async (t) => {
  const database = await testDatabase(t);
  const { url: folder } = await migrationsWith(t, {
    '0101-one': { up: 'alter table series add column made text;; select 1 / 0' },
    '0102-two': { up: 'create index concurrently made on series (date)', transaction: false },
  });
  const holder = await database.pool.connect();
  t.teardown(() => holder.release(true));
  await holder.query('begin; lock table series in access exclusive mode');
  t.same(await previewMigrations(database.db, folder), [
    {
      name: '0101-one',
      transaction: true,
      statements: ['alter table series add column made text', ' select 1 / 0'],
    },
    {
      name: '0102-two',
      transaction: false,
      statements: ['create index concurrently made on series (date)'],
    },
  ]);
  t.same(await previewMigrations(database.db), []);
});

t.test('an index is built beside readers and writers, and again after a crash', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { url: folder } = await migrationsWith(t, {
    '0101-index': {
      up: `drop index concurrently if exists made;;
        create unique index concurrently made on series (corrections);;
        create table made_too_early ()`,
      transaction: false,
    },
    '0102-index': {
      up: `drop index concurrently if exists made;;
        create index concurrently made on series (corrections)`,
      transaction: false,
    },
  });
  await t.rejects(migrateUp(database.db, { folder }), /could not create unique index/);
  const valid = async () =>
    (
      await database.pool.query(
        `select indisvalid from pg_index where indexrelid = 'made'::regclass`,
      )
    ).rows;
  t.same(await valid(), [{ indisvalid: false }], 'the remaining index is invalid');
  const { url: mended } = await migrationsWith(t, {
    '0101-index': {
      up: `drop index concurrently if exists made;;
        create index concurrently made on series (corrections)`,
      transaction: false,
    },
  });
  t.same(await migrateUp(database.db, { folder: mended }), ['0101-index']);
  t.same(await valid(), [{ indisvalid: true }]);
});

t.test('a killed runner can be run again, and continues where it stopped', async (t) => {
  const database = await testDatabase(t);
  const { url: folder } = await migrationsWith(t, {
    '0101-one': { up: 'create table made_one (a integer)' },
    '0102-two': { up: 'create table made_two (a integer);; select pg_sleep(600)' },
  });
  const child = spawn(process.execPath, [MIGRATOR, database.url, folder.href]);
  const exited = once(child, 'exit');
  const isSleeping = async () =>
    (
      await database.pool.query(
        `select from pg_stat_activity where query like '%pg_sleep(600)%' and state = 'active'
          and application_name = 'a migrator to be killed'`,
      )
    ).rows.length > 0;
  await until('the second migration runs', isSleeping);
  child.kill('SIGKILL');
  await exited;
  t.same(await createdTables(database), ['made_one'], 'the second is not there');
  const { url: mended } = await migrationsWith(t, {
    '0101-one': { up: 'create table made_one (a integer)' },
    '0102-two': { up: 'create table made_two (a integer)' },
  });
  t.same(await migrateUp(database.db, { folder: mended }), ['0102-two']);
  t.same(await createdTables(database), ['made_one', 'made_two']);
});
