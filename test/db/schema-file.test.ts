import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import t from 'tap';
import { schemaText } from '../../scripts/schema.ts';
import { migrateDown } from '../../src/db/migrate/migrate.ts';
import { schemaDefinitions, schemaDifferences } from '../../src/verify/schema.ts';
import { testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';

const FILE = new URL('../../src/db/schema.sql', import.meta.url);

t.test('src/db/schema.sql is the schema that the migrations make', async (t) => {
  const { pool } = await testDatabase(t);
  const text = await readFile(FILE, 'utf8');
  t.equal(await schemaText(pool), text, 'after a migration: npm run generate');
});

t.test('run on an empty database it makes the same schema, and describes all of it', async (t) => {
  const { db, pool } = await testDatabase(t);
  const recorded = await inTransaction(pool, schemaDefinitions, 'rollback');
  while ((await migrateDown(db, { loseData: true })) !== null);
  const before = await sql`select from pg_class where relname = 'series'`.execute(db);
  t.same(before.rows, [], 'nothing is left of it');
  await pool.query(await readFile(FILE, 'utf8'));
  t.same(await inTransaction(pool, schemaDifferences, 'rollback'), []);
  t.same((await inTransaction(pool, schemaDefinitions, 'rollback')).length, recorded.length);
  const { rows } = await pool.query(`
    select oid::regclass::text as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r'
        and relname !~ '^(kysely_migration|migration_file)' and obj_description(oid) is null
    union all
    select oid::regprocedure::text from pg_proc
      where pronamespace = 'public'::regnamespace and obj_description(oid) is null`);
  t.same(rows, [], 'each table and function has a comment');
});
