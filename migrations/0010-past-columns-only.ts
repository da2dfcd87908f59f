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

/** Takes away what the migration before this left for readers on their way. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of VERSIONED) {
    await sql.raw(`drop function ${table}_rows_at(bigint)`).execute(db);
  }
}

const rows = (table: string): string => `
do $do$
declare
  columns text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum) into columns from pg_attribute
    where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped;
  execute format($f$
    create function ${table}_rows_at(at bigint) returns setof ${table}
      language sql stable parallel safe
    begin atomic
      select %1$s from ${table} where revision <= at
      union all
      select %1$s from ${table}_history where revision <= at and revision_to > at;
    end
  $f$, columns);
end $do$;
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of VERSIONED) await sql.raw(rows(table)).execute(db);
}
