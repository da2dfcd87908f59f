import { type Kysely, sql } from 'kysely';

const VERSIONED = [
  'currency',
  'unit_of_measure',
  'dimension_value',
  'product',
  'price',
  'series',
  'fx_rate',
];

/*
 * The reading functions name their columns. As long as they returned rows of their table, a column
 * that a later version adds failed the readers that were on their way: they held the old function,
 * and found the new table behind the lock that they waited for. The old functions stay for those
 * that use them at this very moment; the next migration takes them away.
 */
const named = (table: string): string => `
do $do$
declare
  columns text;
  types text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum),
      string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
    into columns, types from pg_attribute
    where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped;
  alter function ${table}_at(bigint) rename to ${table}_rows_at;
  execute format($f$
    create function ${table}_at(at bigint) returns table (%2$s)
      language sql stable parallel safe
    begin atomic
      select %1$s from ${table} where revision <= at
      union all
      select %1$s from ${table}_history where revision <= at and revision_to > at;
    end
  $f$, columns, types);
end $do$;
comment on function ${table}_at(bigint) is 'The rows of ${table} exactly as they were at a revision.';
comment on function ${table}_rows_at(bigint) is null;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of VERSIONED) await sql.raw(named(table)).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of VERSIONED) {
    await sql
      .raw(
        `drop function ${table}_at(bigint);
        alter function ${table}_rows_at(bigint) rename to ${table}_at;
        comment on function ${table}_at(bigint) is 'The rows of ${table} exactly as they were at a revision.';`,
      )
      .execute(db);
  }
}
