import t from 'tap';
import { recordedNames } from '../../src/verify/schema.ts';
import { testDatabase } from '../support/database/database.ts';

t.test(
  'every constraint, index, trigger and view of a migrated database must be in force',
  async (t) => {
    const { pool } = await testDatabase(t);
    const { rows } = await pool.query<{ what: string }>(`
    with own as (select oid, relname from pg_class where relnamespace = 'public'::regnamespace
      and relname !~ '^(kysely_migration|migration_file)')
    select 'constraint ' || relname || '.' || conname as what
      from own join pg_constraint on conrelid = own.oid where contype in ('p', 'u', 'f', 'c')
    union all
    select 'index ' || relname from own join pg_index on indexrelid = own.oid
      where not exists (select from pg_constraint where conindid = own.oid)
    union all
    select 'trigger ' || relname || '.' || tgname from own join pg_trigger on tgrelid = own.oid
      where not tgisinternal
    union all
    select 'view published.' || relname from pg_class
      where relnamespace = 'published'::regnamespace and relkind = 'v'`);
    const names = await recordedNames();
    t.same(names.sort(), rows.map(({ what }) => what).sort());
  },
);
