import { type Kysely, sql } from 'kysely';

const TABLES = 'currency,unit_of_measure,dimension_value,product,price,series,fx_rate';

/* The constraints have the names that `like … including constraints` would have given them. */
const ADD = `
do $do$
declare
  c record;
begin
  for c in select t.name, conname, pg_get_constraintdef(oid) as definition
    from unnest('{${TABLES}}'::text[]) as t (name)
      join pg_constraint on conrelid = t.name::regclass and contype = 'c'
    order by 1, 2
  loop
    execute format('alter table %I add constraint %I %s not valid',
      c.name || '_history', c.conname, c.definition);
  end loop;
end $do$;
`;

const REMOVE = `
do $do$
declare
  c record;
begin
  for c in select t.name, conname
    from unnest('{${TABLES}}'::text[]) as t (name)
      join pg_constraint on conrelid = t.name::regclass and contype = 'c'
    order by 1, 2
  loop
    execute format('alter table %I drop constraint %I', c.name || '_history', c.conname);
  end loop;
end $do$;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(ADD).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(REMOVE).execute(db);
}
