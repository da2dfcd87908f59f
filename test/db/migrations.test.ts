import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { openClient } from '../../src/db/client.ts';
import { migrateDown, migrateUp, migrationStatus } from '../../src/db/migrate/migrate.ts';
import { isSchemaCurrent } from '../../src/db/migrate/migrations.ts';
import type { Database } from '../../src/db/schema.ts';
import { testDatabase } from '../support/database/database.ts';

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

const ofMigrator = (part: string): boolean => /kysely_migration|migration_file/.test(part);

t.test(
  'all migrations can be rolled back without a trace, and run again with the same result',
  async (t) => {
    const { db } = await testDatabase(t);
    const before = await schemaOf(db);
    t.ok(before.length > 300);
    const all = (await migrationStatus(db)).map(({ name }) => name);
    const rolledBack = new Map<string, string[]>();
    for (const name of all.toReversed()) {
      t.equal(await migrateDown(db), name);
      rolledBack.set(name, await schemaOf(db));
    }
    t.same(
      (await schemaOf(db)).filter((part) => !ofMigrator(part)),
      [],
    );
    t.equal(await isSchemaCurrent(db), false);
    t.same(
      await migrationStatus(db),
      all.map((name) => ({ name, executedAt: null, state: 'pending' })),
    );
    t.equal(await migrateDown(db), null, 'there is nothing more to roll back');
    // A run ends by writing the markets and scopes, whose tables the first release creates.
    const first = all.filter((name) => name < '0009');
    const [last = ''] = first.slice(-1);
    t.same(await migrateUp(db, { until: last }), first);
    for (const name of all.slice(first.length)) {
      t.same(
        await schemaOf(db),
        rolledBack.get(name),
        `${name} rolled back leaves what was before`,
      );
      t.same(await migrateUp(db, { until: name }), [name]);
    }
    t.same(await schemaOf(db), before);
    t.equal(await isSchemaCurrent(db), true);
    t.same(await migrateUp(db), [], 'and a second run has nothing to do');
  },
);

t.test('one of two concurrent migrations applies, and both succeed', async (t) => {
  const { db, url } = await testDatabase(t);
  const all = (await migrationStatus(db)).map(({ name }) => name);
  while ((await migrateDown(db)) !== null);
  await sql`drop table kysely_migration, kysely_migration_lock, migration_file`.execute(db);
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
