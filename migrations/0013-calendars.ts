import { type Kysely, sql } from 'kysely';

/** Publication calendars: holiday lists, calendars, and which price follows which. */
const SCHEMA = `
create table holiday_list (
  id integer primary key generated always as identity,
  slug text not null unique
    constraint holiday_list_slug_formed check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 64),
  source text not null check (source <> '' and source !~ '[[:cntrl:]]'),
  known_from date not null check (known_from between '1800-01-01' and '2199-12-31'),
  known_until date not null check (known_until between '1800-01-01' and '2199-12-31'),
  days jsonb not null default '[]' check (jsonb_typeof(days) = 'array'),
  working_days jsonb not null default '[]' check (jsonb_typeof(working_days) = 'array'),
  batch_id integer,
  revision bigint not null default current_revision() references revision (number),
  constraint holiday_list_in_order check (known_from <= known_until)
);
comment on table holiday_list is
  'Closed days of a place, as far as they are decreed: between known_from and known_until, nothing is known beyond.';
comment on column holiday_list.days is
  'The holidays as [{"date": "2026-12-25", "name": "Christmas Day"}], in the order of their dates.';
comment on column holiday_list.working_days is
  'Days of weekends that are worked, as ["2026-02-14"], in their order.';

create table calendar (
  id integer primary key generated always as identity,
  slug text not null unique
    constraint calendar_slug_formed check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 64),
  rule jsonb not null check (jsonb_typeof(rule) in ('string', 'object')),
  due_time text not null check (due_time ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'),
  zone text not null check (zone ~ '^[A-Za-z][A-Za-z0-9_+/-]*$'),
  holiday_list_id integer references holiday_list (id),
  policy text not null check (policy in ('skip', 'carry', 'nearest', 'preceding')),
  make_up_days boolean not null default false,
  batch_id integer,
  revision bigint not null default current_revision() references revision (number),
  constraint calendar_make_up_days_of_list check (not make_up_days or holiday_list_id is not null)
);
comment on table calendar is
  'Publication calendars: the days on which prices are due (rule), the local time, and what becomes of a closed day (policy). docs/calendars.md explains the columns.';

create table price_calendar (
  price_id integer primary key references price (id) on delete cascade,
  calendar_id integer not null references calendar (id),
  batch_id integer,
  revision bigint not null default current_revision() references revision (number)
);
comment on table price_calendar is 'The calendar that each price follows. Prices without a row follow none.';

create trigger holiday_list_identity_is_fixed before update on holiday_list for each row
  when ((old.id, old.slug) is distinct from (new.id, new.slug)) execute function refuse_new_key();
create trigger calendar_identity_is_fixed before update on calendar for each row
  when ((old.id, old.slug) is distinct from (new.id, new.slug)) execute function refuse_new_key();
create trigger price_calendar_identity_is_fixed before update of price_id on price_calendar
  for each row when (old.price_id is distinct from new.price_id) execute function refuse_new_key();
`;

const PRIMARY_KEYS = { holiday_list: 'id', calendar: 'id', price_calendar: 'price_id' } as const;
type Table = keyof typeof PRIMARY_KEYS;
const TABLES = Object.keys(PRIMARY_KEYS) as Table[];

/** The rights of the owner, for rows that no account may write directly. */
const AS_OWNER = 'security definer set search_path = pg_catalog, public, pg_temp';

/** An archive without the market of a price knows by its scope that the revision had more. */
const OF_MARKETS = `
    union
    select m.slug, current_revision() from changed c
      join (select id, market_id from price union select id, market_id from price_history) as p
        on p.id = c.price_id
      join market m on m.id = p.market_id`;

/** History, revision stamps and the reading function of one table, as in 0005-history. */
const versioned = (table: Table): string => `
create table ${table}_history (
  like ${table} including constraints,
  revision_to bigint not null references revision (number),
  check (revision < revision_to),
  primary key (${PRIMARY_KEYS[table]}, revision)
);
comment on table ${table}_history is
  'Superseded rows of ${table}: in force from revision up to revision_to, exclusive.';

create trigger ${table}_revision_is_open before insert or update or delete on ${table}
  execute function check_revision();
create trigger ${table}_history_by_triggers before insert on ${table}_history for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger ${table}_insert_has_revision before insert on ${table} for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();
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

-- Calendars are reference data: answers of all markets are read again after a change.
create function ${table}_touch() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)${table === 'price_calendar' ? OF_MARKETS : ''}
  on conflict do nothing;
  return null;
end $$;
comment on function ${table}_touch() is 'Records that a revision changed ${table}.';
revoke execute on function ${table}_touch() from public;
create trigger ${table}_touch_inserted after insert on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_updated after update on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_deleted after delete on ${table}
  referencing old table as changed for each statement execute function ${table}_touch();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [SCHEMA, ...TABLES.map(versioned)]) await sql.raw(part).execute(db);
}
