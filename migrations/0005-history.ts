import { type Kysely, sql } from 'kysely';

/** Tables with permanent superseded rows in `<table>_history`. */
const VERSIONED = [
  'currency',
  'unit_of_measure',
  'dimension_value',
  'product',
  'price',
  'series',
  'fx_rate',
];

const PRIMARY_KEYS: Record<string, string> = {
  series: 'price_id, date',
  fx_rate: 'source, currency_id, date',
};

/**
 * The rights of the owner, for functions that write rows that no account may write directly. Other
 * accounts cannot execute them: in a trigger of their own table they would have the owner's rights.
 */
const AS_OWNER = 'security definer set search_path = pg_catalog, public, pg_temp';

/** `series_touch` checks inserts into `series` once per statement. */
const insertHasRevision = (table: string): string =>
  table === 'series'
    ? ''
    : `create trigger ${table}_insert_has_revision before insert on ${table} for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();`;

/**
 * The foreign key of `revision_to`. `series_history` has none: it would look up the same revision
 * for each row, which took a third of the time of a bulk correction. `series_revision_is_open` looks
 * the revision up once per statement, only `series_keep` writes the history, and no revision is ever
 * deleted. `db import`, which disables these triggers, checks the revisions itself.
 */
const referenceOf = (table: string): string =>
  table === 'series' ? '' : ' references revision (number)';

/**
 * History, revision stamps and the reading function of one table. The functions name their columns:
 * one that returned rows of its table would fail readers under way when a column is added.
 *
 * A statement that sets `revision` itself saves one call of `stamp_revision` per row.
 */
const versioned = (table: string): string => `
create table ${table}_history (
  like ${table} including constraints,
  revision_to bigint not null${referenceOf(table)},
  check (revision < revision_to),
  primary key (${PRIMARY_KEYS[table] ?? 'id'}, revision)
);
comment on table ${table}_history is
  'Superseded rows of ${table}: in force from revision up to revision_to, exclusive.';

create trigger ${table}_revision_is_open before insert or update or delete on ${table}
  execute function check_revision();
create trigger ${table}_history_by_triggers before insert on ${table}_history for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
${insertHasRevision(table)}
create trigger ${table}_stamp before update on ${table} for each row
  when (new.revision is distinct from current_revision()) execute function stamp_revision();
create trigger ${table}_no_truncate before truncate on ${table} execute function refuse_change();
create trigger ${table}_history_frozen before update or delete on ${table}_history
  for each row execute function refuse_change();
create trigger ${table}_history_no_truncate before truncate on ${table}_history
  execute function refuse_change();

do $do$
declare
  columns text;
  types text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum),
      string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
    into columns, types from pg_attribute
    where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped;
  execute format($f$
    create function ${table}_keep() returns trigger language plpgsql ${AS_OWNER} as $$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of ${table} needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into ${table}_history (%1$s, revision_to)
        select %1$s, current_revision() from superseded where revision < current_revision();
      return null;
    end $$;
    create function ${table}_at(at bigint) returns table (%2$s)
      language sql stable parallel safe
    begin atomic
      select %1$s from ${table} where revision <= at
      union all
      select %1$s from ${table}_history where revision <= at and revision_to > at;
    end
  $f$, columns, types);
end $do$;
comment on function ${table}_keep() is 'Copies superseded rows of ${table} to its history.';
comment on function ${table}_at(bigint) is 'The rows of ${table} at a revision.';
revoke execute on function ${table}_keep() from public;
create trigger ${table}_keep_updated after update on ${table}
  referencing old table as superseded for each statement execute function ${table}_keep();
create trigger ${table}_keep_deleted after delete on ${table}
  referencing old table as superseded for each statement execute function ${table}_keep();
`;

const READING = `
create index series_history_superseded on series_history (price_id, revision_to, date);
create index fx_rate_history_superseded on fx_rate_history (source, revision_to);

-- Reads one row from the end of each of two indexes; series_at would read every point.
create function latest_point_at(of_price integer, at bigint)
  returns table (date date, published_at timestamptz) language sql stable parallel safe
begin atomic
  select newest.date, newest.published_at from (
    (select s.date, s.published_at from series s
      where s.price_id = of_price and s.revision <= at order by s.date desc limit 1)
    union all
    (select h.date, h.published_at from series_history h
      where h.price_id = of_price and h.revision <= at and h.revision_to > at
      order by h.date desc limit 1)) as newest
  order by newest.date desc limit 1;
end;
comment on function latest_point_at(integer, bigint) is
  'Date and publication time of the latest point of a price at a revision.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [...VERSIONED.map(versioned), READING]) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`drop function latest_point_at(integer, bigint)`.execute(db);
  for (const table of VERSIONED) {
    await sql
      .raw(`
      drop trigger ${table}_revision_is_open on ${table};
      drop trigger if exists ${table}_insert_has_revision on ${table};
      drop trigger ${table}_stamp on ${table};
      drop trigger ${table}_no_truncate on ${table};
      drop trigger ${table}_keep_updated on ${table};
      drop trigger ${table}_keep_deleted on ${table};
      drop function ${table}_at(bigint), ${table}_keep();
      drop table ${table}_history;
    `)
      .execute(db);
  }
}
