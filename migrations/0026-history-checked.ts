import { type Kysely, sql } from 'kysely';

/*
 * The history tables get the CHECK constraints of their tables with the next migration. This one
 * looks for rows that break them, so that an operator reads which rows, and the schema is as before.
 */
const LOOK = `
do $do$
declare
  versioned text;
  verdict text;
  broken text;
begin
  foreach versioned in array
    '{currency,unit_of_measure,dimension_value,product,price,series,fx_rate}'::text[]
  loop
    select string_agg(
        format('case when not (%s) then %L end', pg_get_expr(conbin, conrelid), conname), ', ')
      into verdict from pg_constraint
      where conrelid = versioned::regclass and contype = 'c';
    execute format($f$
      select string_agg(format('%%s: %%s rows, such as %%s', rules, rows, example), '; ')
      from (select concat_ws(' and ', %s) as rules, count(*) as rows, min(to_jsonb(h)::text) as example
        from %I h group by 1) as found
      where rules <> ''$f$, verdict, versioned || '_history') into broken;
    if broken is not null then
      raise exception 'rows of %_history break the rules of % (%)', versioned, versioned, broken
        using errcode = 'check_violation',
          hint = 'Restore the rows from a backup, or correct them with their triggers off; then migrate again.';
    end if;
  end loop;
end $do$;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(LOOK).execute(db);
}

/** Looking changes nothing. */
export async function down(_db: Kysely<unknown>): Promise<void> {}
