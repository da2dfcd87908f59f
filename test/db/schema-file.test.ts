import { readFile } from 'node:fs/promises';
import t from 'tap';
import { schemaText } from '../../scripts/schema.ts';
import { dropSchema, testDatabase } from '../support/database/database.ts';

const FILE = new URL('../../src/db/schema.sql', import.meta.url);

t.test('src/db/schema.sql is the schema that the migrations make', async (t) => {
  const { pool } = await testDatabase(t);
  const text = await readFile(FILE, 'utf8');
  t.equal(await schemaText(pool), text, 'after a migration: npm run generate');
});

t.test('run on an empty database it makes the same schema, and describes all of it', async (t) => {
  const { pool } = await testDatabase(t);
  const text = await readFile(FILE, 'utf8');
  await dropSchema({ pool });
  await pool.query(text);
  // PostgreSQL gives an unnamed column of a stored query a name.
  const plain = (schema: string): string => schema.replaceAll("'::text AS text", "'::text");
  t.equal(plain(await schemaText(pool)), plain(text));
  const { rows } = await pool.query(`
    select oid::regclass::text as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r'
        and relname !~ '^(kysely_migration|migration_file)' and obj_description(oid) is null
    union all
    select oid::regprocedure::text from pg_proc
      where pronamespace in ('public'::regnamespace, 'published'::regnamespace)
        and obj_description(oid) is null
    union all
    select format('%s %s', attrelid::regclass, attname) from pg_attribute
      join pg_class on pg_class.oid = attrelid
      where relnamespace = 'published'::regnamespace and attnum > 0
        and (col_description(attrelid, attnum) is null or obj_description(attrelid) is null)`);
  t.same(rows, [], 'each table and function has a comment, and each column of a view');
});
