import { type Kysely, sql } from 'kysely';

/*
 * The rows of a statement go through files when there are many, and each look at them costs a
 * tenth of a bulk insert. One look tells what all three need: the prices and days that changed,
 * whether the rows carry the open revision, and whether their prices exist.
 */
const TOUCH = `
create or replace function series_touch() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  prices integer[];
  firsts date[];
  lasts date[];
  least_revision bigint;
  greatest_revision bigint;
  unknown integer;
begin
  perform refuse_after_seal();
  select array_agg(c.price_id), array_agg(c.first_date), array_agg(c.last_date),
      min(c.least_revision), max(c.greatest_revision)
    into prices, firsts, lasts, least_revision, greatest_revision
    from (select price_id, min(date) as first_date, max(date) as last_date,
      min(revision) as least_revision, max(revision) as greatest_revision
      from changed group by price_id) as c;
  if prices is null then
    return null;
  end if;
  if tg_op = 'INSERT' then
    if least_revision is distinct from current_revision()
      or greatest_revision is distinct from current_revision() then
      raise exception 'a change of series needs a revision of its own'
        using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
    end if;
    select c.id into unknown from unnest(prices) as c (id)
      where not exists (select from price p where p.id = c.id) limit 1;
    if found then
      raise foreign_key_violation
        using message = format('there is no price %s', unknown), table = 'series';
    end if;
  end if;
  insert into change_segment (revision, price_id, first_date, last_date)
    select current_revision(), c.id, c.first_date, c.last_date
    from unnest(prices, firsts, lasts) as c (id, first_date, last_date)
  on conflict (revision, price_id) do update set
    first_date = least(change_segment.first_date, excluded.first_date),
    last_date = greatest(change_segment.last_date, excluded.last_date);
  insert into revision_scope (scope, revision)
    select distinct m.slug, current_revision()
    from price p join market m on m.id = p.market_id where p.id = any(prices)
  on conflict do nothing;
  return null;
end $$;
revoke execute on function series_touch() from public;

drop trigger series_of_a_price on series;
drop function series_price_exists();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(TOUCH).execute(db);
}

const BEFORE = `
create function series_price_exists() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
declare
  wrong record;
begin
  select c.price_id, c.revision into wrong
    from (select distinct price_id, revision from changed) c
    where c.revision is distinct from current_revision()
      or not exists (select from price p where p.id = c.price_id)
    order by c.revision is distinct from current_revision() desc limit 1;
  if not found then
    return null;
  end if;
  if wrong.revision is distinct from current_revision() then
    raise exception 'a change of series needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  raise foreign_key_violation
    using message = format('there is no price %s', wrong.price_id), table = 'series';
end $$;

create or replace function series_touch() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
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
revoke execute on function series_touch() from public;

create trigger series_of_a_price after insert on series
  referencing new table as changed for each statement execute function series_price_exists();
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(BEFORE).execute(db);
}
