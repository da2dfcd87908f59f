import type { MigrationStep } from '../support/database/migrations.ts';

/** Makes the function that keeps the history of prices anew, with all columns of the table. */
const PRICE_KEEP = `
      do $do$
      declare
        columns text := (select string_agg(quote_ident(attname), ', ' order by attnum)
          from pg_attribute where attrelid = 'price'::regclass and attnum > 0 and not attisdropped);
      begin
        execute format($f$
          create or replace function price_keep() returns trigger language plpgsql
            security definer set search_path = pg_catalog, public, pg_temp as $$
          begin
            insert into price_history (%1$s, revision_to)
              select %1$s, current_revision() from superseded where revision < current_revision();
            return null;
          end $$
        $f$, columns);
      end $do$`;

/** Schema changes of a later version that this version must tolerate. */
export const EXPANSION: Readonly<Record<string, MigrationStep>> = {
  '0101-column': {
    // With no writer on its way, column, history and the function that keeps it change as one.
    up: `
      select lock_revisions();;
      alter table price add column rank integer;;
      alter table price_history add column rank integer;;
      ${PRICE_KEEP};;
      create function price_ranked_at(at bigint) returns table (id integer, rank integer)
        language sql stable parallel safe
      begin atomic
        select id, rank from price where revision <= at
        union all
        select id, rank from price_history where revision <= at and revision_to > at;
      end`,
  },
  '0102-check': {
    up: 'alter table price add constraint price_rank check (rank > 0) not valid',
  },
  '0103-validated': { up: 'alter table price validate constraint price_rank' },
  '0104-index': {
    up: `drop index concurrently if exists series_published;;
      create index concurrently series_published on series (published_at)`,
    transaction: false,
  },
  '0105-table': {
    up: 'create table price_note (price_id integer references price (id), note text not null)',
  },
  '0106-not-null': {
    up: `alter table load_batch add column host text not null default 'unknown'`,
  },
};
