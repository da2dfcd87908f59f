import { type Kysely, sql } from 'kysely';

/*
 * Price by price: a join of the new segments with their sum has no statistics to be planned by,
 * and took each pair of prices into its hands, so that many prices made a commit take for ever.
 */
const NUMBER = `
create or replace function number_changes(at bigint) returns void language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
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
    select price_id, first_date, last_date from change_segment
      where revision = at order by price_id
  loop
    price_count := count_price_changes(segment.price_id, at);
    point_count := coalesce(
      count_changed_points(segment.price_id, at, segment.first_date, segment.last_date), 0);
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
revoke execute on function number_changes(bigint) from public;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(NUMBER).execute(db);
}

const BEFORE = `
create or replace function number_changes(at bigint) returns void language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
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
revoke execute on function number_changes(bigint) from public;
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(BEFORE).execute(db);
}
