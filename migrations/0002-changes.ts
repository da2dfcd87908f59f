import { type Kysely, sql } from 'kysely';

/*
 * What each revision changed, price by price. Only the place of a change is kept here; its values
 * are read from the tables and their history, so that the two cannot tell different stories.
 */
const SEGMENTS = `
-- Readers go on; a writer waits, so that no revision falls between the old functions and the new.
select lock_revisions();

create table change_segment (
  revision bigint not null references revision (number),
  price_id integer not null,
  first_seq bigint unique,
  price_changes smallint not null default 0 check (price_changes in (0, 1)),
  points integer not null default 0 check (points >= 0),
  first_date date,
  last_date date,
  primary key (revision, price_id),
  constraint change_segment_has_range check (
    (first_date is null) = (last_date is null) and first_date <= last_date),
  constraint change_segment_points_have_range check (points = 0 or first_date is not null)
);
comment on table change_segment is
  'The changes of one price in one revision: numbers first_seq … first_seq + price_changes + points - 1, the change of the price itself first, then its points by date.';
create index change_segment_price on change_segment (price_id, revision);

-- Changes of points within the noted dates; a point that came and went in one revision is none.
create function count_changed_points(of_price integer, at bigint, first date, last date)
  returns integer language sql stable parallel safe
begin atomic
  select (
    (select count(*) from series s
      where s.price_id = of_price and s.date between first and last and s.revision = at)
    + (select count(*) from series_history h
      where h.price_id = of_price and h.revision_to = at and h.date between first and last
        and not exists (select from series s
          where s.price_id = of_price and s.date = h.date and s.revision = at))
  )::integer;
end;

create function count_price_changes(of_price integer, at bigint)
  returns smallint language sql stable parallel safe
begin atomic
  select (exists (select from price p where p.id = of_price and p.revision = at)
    or exists (select from price_history h where h.id = of_price and h.revision_to = at)
  )::integer::smallint;
end;

create function refuse_after_seal() returns void language plpgsql as $$
begin
  if current_setting('prices.sealed', true) = current_revision()::text then
    raise exception 'revision % is sealed', current_revision()
      using hint = 'Leave its constraints deferred: it is sealed once, by the commit.';
  end if;
end $$;

create or replace function series_touch() returns trigger language plpgsql as $$
begin
  perform refuse_after_seal();
  insert into change_segment (revision, price_id, first_date, last_date)
    select current_revision(), price_id, min(date), max(date) from changed group by price_id
  on conflict (revision, price_id) do update set
    first_date = least(change_segment.first_date, excluded.first_date),
    last_date = greatest(change_segment.last_date, excluded.last_date);
  insert into revision_scope (scope, revision)
    select distinct m.slug, current_revision()
    from (select distinct price_id from changed) c
      join price p on p.id = c.price_id join market m on m.id = p.market_id
  on conflict do nothing;
  return null;
end $$;

create or replace function price_touch() returns trigger language plpgsql as $$
begin
  perform refuse_after_seal();
  insert into change_segment (revision, price_id)
    select distinct current_revision(), id from changed
  on conflict (revision, price_id) do nothing;
  insert into revision_scope (scope, revision)
    select distinct m.slug, current_revision()
    from changed c join market m on m.id = c.market_id
  on conflict do nothing;
  return null;
end $$;

-- Numbers what a revision changed, after all that came before it: revisions commit one at a time.
create function number_changes(at bigint) returns void language plpgsql as $$
begin
  update change_segment set
      price_changes = count_price_changes(price_id, at),
      points = coalesce(count_changed_points(price_id, at, first_date, last_date), 0)
    where revision = at;
  delete from change_segment where revision = at and price_changes + points = 0;
  with newest as (
    select first_seq + price_changes + points as free from change_segment
      where first_seq is not null order by first_seq desc limit 1
  ), placed as (
    select price_id, sum(price_changes + points) over (order by price_id)
      - (price_changes + points) as before
    from change_segment where revision = at
  )
  update change_segment s
    set first_seq = coalesce((select free from newest), 1) + placed.before
    from placed where s.revision = at and s.price_id = placed.price_id;
end $$;

create or replace function seal_revision() returns trigger language plpgsql as $$
begin
  if not exists (select from revision_scope where revision = new.number) then
    raise exception 'revision % changed nothing', new.number
      using hint = 'Open a revision only when there is something to write.';
  end if;
  perform number_changes(new.number);
  perform set_config('prices.sealed', new.number::text, true);
  -- Heard by every service that listens, once the commit can be seen.
  perform pg_notify('revision', new.number::text);
  -- Held until the revision can be seen: whoever asks for a moment waits for those before it.
  perform pg_advisory_xact_lock(7130541503);
  update revision
    set committed_at = greatest(
      clock_timestamp(),
      (select committed_at + interval '1 microsecond' from revision where number = new.number - 1))
    where number = new.number;
  return null;
end $$;

-- What the databases of before have changed until now.
insert into change_segment (revision, price_id, first_date, last_date)
  select revision, price_id, min(date), max(date)
  from (
    select revision, price_id, date from series
    union all select revision, price_id, date from series_history
    union all select revision_to, price_id, date from series_history
  ) as points group by revision, price_id;
insert into change_segment (revision, price_id)
  select revision, id from price
  union select revision, id from price_history
  union select revision_to, id from price_history
on conflict do nothing;
`;

/** Numbers the revisions that are there, in their order and each as it was when it was sealed. */
const BACKFILL = `
with changes as (
  select s.revision, s.price_id,
    (exists (select from price p where p.id = s.price_id and p.revision = s.revision)
      or exists (select from price_history h where h.id = s.price_id
        and s.revision in (h.revision, h.revision_to)))::integer as price_changes,
    (select count(distinct date) from (
      select date from series p where p.price_id = s.price_id and p.revision = s.revision
      union all
      select date from series_history h where h.price_id = s.price_id
        and s.revision in (h.revision, h.revision_to)) as dates)::integer as points
  from change_segment s
), placed as (
  select *, 1 + sum(price_changes + points) over (order by revision, price_id)
    - (price_changes + points) as first
  from changes
)
update change_segment s
  set first_seq = placed.first, price_changes = placed.price_changes, points = placed.points
  from placed where s.revision = placed.revision and s.price_id = placed.price_id;
`;

const GUARDS = `
create trigger change_segment_frozen before insert or update or delete on change_segment
  for each statement when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger change_segment_no_truncate before truncate on change_segment
  execute function refuse_change();
`;

/*
 * A foreign key looks at each point by itself, which took two thirds of the time of a bulk load.
 * All writers of data hold one lock, so looking once for all points of a statement, and refusing
 * to remove a price that has points, keeps the same promise.
 */
const PRICE_OF_POINTS = `
create function series_price_exists() returns trigger language plpgsql as $$
declare
  unknown integer;
begin
  select price_id into unknown from (select distinct price_id from changed) c
    where not exists (select from price p where p.id = c.price_id) limit 1;
  if found then
    raise foreign_key_violation
      using message = format('there is no price %s', unknown), table = 'series';
  end if;
  return null;
end $$;
create trigger series_of_a_price after insert on series
  referencing new table as changed for each statement execute function series_price_exists();

create function refuse_loss_of_points() returns trigger language plpgsql as $$
begin
  if exists (select from series where price_id = old.id) then
    raise foreign_key_violation
      using message = format('price %s has points', old.code), table = 'series',
        hint = 'Withdraw its points first.';
  end if;
  return old;
end $$;
create trigger price_with_points_stays before delete on price
  for each row execute function refuse_loss_of_points();
alter table series drop constraint series_price_id_fkey;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [SEGMENTS, BACKFILL, GUARDS, PRICE_OF_POINTS]) await sql.raw(part).execute(db);
}

const BEFORE = `
alter table series add constraint series_price_id_fkey foreign key (price_id) references price (id);
drop trigger series_of_a_price on series;
drop trigger price_with_points_stays on price;
drop function series_price_exists();
drop function refuse_loss_of_points();

create or replace function seal_revision() returns trigger language plpgsql as $$
begin
  if not exists (select from revision_scope where revision = new.number) then
    raise exception 'revision % changed nothing', new.number
      using hint = 'Open a revision only when there is something to write.';
  end if;
  -- Held until the revision can be seen: whoever asks for a moment waits for those before it.
  perform pg_advisory_xact_lock(7130541503);
  update revision
    set committed_at = greatest(
      clock_timestamp(),
      (select committed_at + interval '1 microsecond' from revision where number = new.number - 1))
    where number = new.number;
  return null;
end $$;
create or replace function series_touch() returns trigger language plpgsql as $$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision()
    from (select distinct m.slug from (select distinct price_id from changed) c
    join price p on p.id = c.price_id join market m on m.id = p.market_id) as touched (scope)
  on conflict do nothing;
  return null;
end $$;
create or replace function price_touch() returns trigger language plpgsql as $$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision()
    from (select distinct m.slug from changed c join market m on m.id = c.market_id) as touched (scope)
  on conflict do nothing;
  return null;
end $$;
drop table change_segment;
drop function number_changes(bigint);
drop function refuse_after_seal();
drop function count_price_changes(integer, bigint);
drop function count_changed_points(integer, bigint, date, date);
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(BEFORE).execute(db);
}
