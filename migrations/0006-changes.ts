import { type Kysely, sql } from 'kysely';

/** The rights of the owner, for rows that no account may write directly. */
const AS_OWNER = 'security definer set search_path = pg_catalog, public, pg_temp';

/*
 * The change feed: the changes of each revision by price. A segment stores only the positions of
 * changes. Their values are read from the tables and their history, so the two cannot disagree.
 */
const SEGMENTS = `
create table change_segment (
  revision bigint not null references revision (number),
  price_id integer not null,
  market_id smallint not null references market (id),
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
create index change_segment_market on change_segment (market_id, first_seq);

create function set_market_of_segment() returns trigger language plpgsql as $$
begin
  new.market_id := coalesce(
    (select p.market_id from price p where p.id = new.price_id),
    (select h.market_id from price_history h where h.id = new.price_id limit 1),
    -- A price inserted and deleted in one revision is in neither, but has a segment.
    (select s.market_id from change_segment s
      where s.revision = new.revision and s.price_id = new.price_id));
  return new;
end $$;
comment on function set_market_of_segment() is 'Sets the market of a segment from its price.';
create trigger change_segment_market before insert on change_segment
  for each row execute function set_market_of_segment();

create trigger change_segment_frozen before insert or update or delete on change_segment
  for each statement when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger change_segment_no_truncate before truncate on change_segment
  execute function refuse_change();
`;

const NUMBERS = `
-- Changes of points within the recorded dates. A point inserted and deleted in one revision is no
-- change.
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
comment on function count_changed_points(integer, bigint, date, date) is
  'Number of points of a price that a revision added, corrected or withdrew between two dates.';

create function count_price_changes(of_price integer, at bigint)
  returns smallint language sql stable parallel safe
begin atomic
  select (exists (select from price p where p.id = of_price and p.revision = at)
    or exists (select from price_history h where h.id = of_price and h.revision_to = at)
  )::integer::smallint;
end;
comment on function count_price_changes(integer, bigint) is
  '1 if a revision changed the attributes of a price, otherwise 0.';

-- series_touch has counted the points of prices that one statement changed. The points of other
-- prices are counted here, price by price: a join of the new segments with their sum has no
-- statistics to be planned by, and compares each pair of prices, so that a commit of many prices
-- would not end.
create function number_changes(at bigint) returns void language plpgsql
  ${AS_OWNER} as $$
declare
  next_seq bigint;
  segment record;
  price_count smallint;
  point_count integer;
begin
  select first_seq + price_changes + points into next_seq from change_segment
    where first_seq is not null order by first_seq desc limit 1;
  next_seq := coalesce(next_seq, 1);
  for segment in
    select price_id, first_date, last_date, points from change_segment
      where revision = at order by price_id
  loop
    price_count := count_price_changes(segment.price_id, at);
    point_count := case when segment.points > 0 then segment.points else coalesce(
      count_changed_points(segment.price_id, at, segment.first_date, segment.last_date), 0) end;
    if price_count + point_count = 0 then
      delete from change_segment where revision = at and price_id = segment.price_id;
    else
      update change_segment
        set first_seq = next_seq, price_changes = price_count, points = point_count
        where revision = at and price_id = segment.price_id;
    end if;
    next_seq := next_seq + price_count + point_count;
  end loop;
end $$;
comment on function number_changes(bigint) is
  'Numbers the changes of a revision after those of earlier revisions, which commit one at a time.';
revoke execute on function number_changes(bigint) from public;

-- Runs last, at the commit, so that the time is the commit time, and a revision without changes
-- gets no number.
create function seal_revision() returns trigger language plpgsql
  ${AS_OWNER} as $$
begin
  if not exists (select from revision_scope where revision = new.number) then
    raise exception 'revision % changed nothing', new.number
      using hint = 'Open a revision only when there is something to write.';
  end if;
  perform number_changes(new.number);
  perform set_config('prices.sealed', new.number::text, true);
  -- Notifies all listening services, once the commit is visible.
  perform pg_notify('revision', new.number::text);
  -- Locked until the revision is visible: readers of an instant wait for earlier commits.
  lock table seal_lock in share update exclusive mode;
  update revision
    set committed_at = greatest(
      clock_timestamp(),
      (select committed_at + interval '1 microsecond' from revision where number = new.number - 1))
    where number = new.number;
  return null;
end $$;
comment on function seal_revision() is
  'Sets the commit time of a revision and numbers its changes, at the commit.';
revoke execute on function seal_revision() from public;
create constraint trigger revision_seal after insert on revision
  deferrable initially deferred for each row execute function seal_revision();
`;

/** Records the scope of a change, and the segment of its price. */
const TOUCH = `
-- The rows of a statement go through files when there are many, and each look at them costs a
-- tenth of a bulk insert. One look finds all: the prices and days that changed, whether the rows
-- carry the open revision, and whether their prices exist.
create function series_touch() returns trigger language plpgsql
  ${AS_OWNER} as $$
declare
  prices integer[];
  firsts date[];
  lasts date[];
  counts integer[];
  least_revision bigint;
  greatest_revision bigint;
  unknown integer;
begin
  perform refuse_after_seal();
  select array_agg(c.price_id), array_agg(c.first_date), array_agg(c.last_date),
      array_agg(c.points), min(c.least_revision), max(c.greatest_revision)
    into prices, firsts, lasts, counts, least_revision, greatest_revision
    from (select price_id, min(date) as first_date, max(date) as last_date,
      count(*)::integer as points, min(revision) as least_revision, max(revision) as greatest_revision
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
  insert into change_segment (revision, price_id, first_date, last_date, points)
    select current_revision(), c.id, c.first_date, c.last_date, c.points
    from unnest(prices, firsts, lasts, counts) as c (id, first_date, last_date, points)
  on conflict (revision, price_id) do update set
    -- A second statement may change the same points again: 0 makes the commit count them.
    points = case when change_segment.first_date is null then excluded.points else 0 end,
    first_date = least(change_segment.first_date, excluded.first_date),
    last_date = greatest(change_segment.last_date, excluded.last_date);
  insert into revision_scope (scope, revision)
    select distinct m.slug, current_revision()
    from price p join market m on m.id = p.market_id where p.id = any(prices)
  on conflict do nothing;
  return null;
end $$;
comment on function series_touch() is
  'Records the prices and dates that a statement changed. Rejects points without a price or a revision.';
revoke execute on function series_touch() from public;

create function price_touch() returns trigger language plpgsql ${AS_OWNER} as $$
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
comment on function price_touch() is 'Records the prices that a statement changed.';
revoke execute on function price_touch() from public;
`;

/** The touch function of a table whose changes have no segment. */
const touchOf = (table: string, scopes: string): string => `
create function ${table}_touch() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (${scopes}) as touched (scope)
  on conflict do nothing;
  return null;
end $$;
comment on function ${table}_touch() is 'Records that a revision changed ${table}.';
revoke execute on function ${table}_touch() from public;
`;

const REFERENCE = ['currency', 'unit_of_measure', 'dimension_value', 'product'];

const triggersOf = (table: string): string => `
create trigger ${table}_touch_inserted after insert on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_updated after update on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_deleted after delete on ${table}
  referencing old table as changed for each statement execute function ${table}_touch();
`;

const TOUCHING = [...REFERENCE, 'price', 'series', 'fx_rate'];

export async function up(db: Kysely<unknown>): Promise<void> {
  const parts = [
    SEGMENTS,
    NUMBERS,
    TOUCH,
    ...REFERENCE.map((table) =>
      touchOf(table, "select 'reference' where exists (select from changed)"),
    ),
    touchOf('fx_rate', "select distinct 'fx:' || source from changed"),
    ...TOUCHING.map(triggersOf),
  ];
  for (const part of parts) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  for (const table of TOUCHING) {
    await sql
      .raw(`
      drop trigger ${table}_touch_inserted on ${table};
      drop trigger ${table}_touch_updated on ${table};
      drop trigger ${table}_touch_deleted on ${table};
      drop function ${table}_touch();
    `)
      .execute(db);
  }
  await sql
    .raw(`
    drop trigger revision_seal on revision;
    drop function seal_revision(), number_changes(bigint), count_price_changes(integer, bigint),
      count_changed_points(integer, bigint, date, date);
    drop table change_segment;
    drop function set_market_of_segment();
  `)
    .execute(db);
}
