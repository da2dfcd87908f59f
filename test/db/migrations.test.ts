import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { openClient } from '../../src/db/client.ts';
import { migrateUp, migrationStatus } from '../../src/db/migrate/migrate.ts';
import { isSchemaCurrent } from '../../src/db/migrate/migrations.ts';
import type { Database } from '../../src/db/schema.ts';
import { dropSchema, testDatabase } from '../support/database/database.ts';

const FOLDER = new URL('../../migrations/', import.meta.url);

/** Everything that a schema is made of, as text. */
async function schemaOf(db: Kysely<Database>): Promise<string[]> {
  const { rows } = await sql<{ part: string }>`
    select 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
        || ' ' || coalesce(column_default, '') as part
      from information_schema.columns where table_schema = 'public'
    union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' '
        || pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace
    union all select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select 'function ' || pg_get_functiondef(oid) from pg_proc
      where pronamespace = 'public'::regnamespace and prokind <> 'a'
    union all select 'aggregate ' || oid::regprocedure from pg_proc
      where pronamespace = 'public'::regnamespace and prokind = 'a'
    union all select 'comment ' || objoid::regclass || ' ' || description from pg_description
      where classoid = 'pg_class'::regclass and objoid::regclass::text !~ '^(pg_|information)'
    order by part`.execute(db);
  return rows.map((each) => each.part);
}

t.test('an empty database is migrated to the same schema, in steps as well', async (t) => {
  const { db, pool } = await testDatabase(t);
  const before = await schemaOf(db);
  t.ok(before.length > 300);
  const all = (await migrationStatus(db)).map(({ name }) => name);
  await dropSchema({ pool });
  t.same(await schemaOf(db), []);
  t.equal(await isSchemaCurrent(db), false);
  t.same(
    await migrationStatus(db),
    all.map((name) => ({ name, executedAt: null, state: 'pending' })),
  );
  // A run ends by writing the markets and scopes, whose tables the first release creates.
  const first = all.filter((name) => name < '0009');
  t.same(await migrateUp(db, { until: '0008-keys' }), first);
  for (const name of all.slice(first.length)) {
    t.equal(await isSchemaCurrent(db), false);
    t.same(await migrateUp(db, { until: name }), [name]);
  }
  t.same(await schemaOf(db), before);
  t.equal(await isSchemaCurrent(db), true);
  t.same(await migrateUp(db), [], 'and a second run has nothing to do');
});

t.test('one of two concurrent migrations applies, and both succeed', async (t) => {
  const { db, pool, url } = await testDatabase(t);
  const all = (await migrationStatus(db)).map(({ name }) => name);
  await dropSchema({ pool });
  const run = async () => {
    const client = openClient({
      url,
      connectionsMax: 2,
      acquireTimeoutMs: 20_000,
      statementTimeoutMs: 0,
      readOnly: false,
      applicationName: 'commodity-prices test',
    });
    try {
      return await migrateUp(client.db);
    } finally {
      await client.close();
    }
  };
  const applied = await Promise.all([run(), run(), run()]);
  t.same(applied.flat(), all);
  const markets = await db.selectFrom('market').select('slug').orderBy('id').execute();
  t.same(
    markets.map((each) => each.slug),
    MARKETS.map((each) => each.slug),
  );
  const scopes = await db.selectFrom('access_scope').select('scope').execute();
  t.equal(scopes.length, MARKETS.length + 1);
});

t.test(
  'a migration stands alone: it imports nothing of the service, which will change',
  async (t) => {
    for (const file of await readdir(FOLDER)) {
      const text = await readFile(new URL(file, FOLDER), 'utf8');
      const imported = [...text.matchAll(/\bfrom\s+'([^']+)'|\bimport\s*\(?\s*'([^']+)'/g)];
      t.same([...new Set(imported.map((each) => each[1] ?? each[2]))], ['kysely'], file);
    }
  },
);
