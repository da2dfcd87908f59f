import { type Kysely, sql } from 'kysely';

/* Neither readers nor loads wait for it: it reads each table once for each of its rules. */
const VALIDATE = `
do $do$
declare
  c record;
begin
  for c in select conrelid::regclass as history, conname from pg_constraint
    where contype = 'c' and not convalidated and conrelid in (
      select (t.name || '_history')::regclass from unnest(
        '{currency,unit_of_measure,dimension_value,product,price,series,fx_rate}'::text[]) as t (name))
    order by 1, 2
  loop
    execute format('alter table %s validate constraint %I', c.history, c.conname);
  end loop;
end $do$;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(VALIDATE).execute(db);
}

/** A constraint that was validated stays so. */
export async function down(_db: Kysely<unknown>): Promise<void> {}
