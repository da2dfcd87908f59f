-- the newest revision of a market
select service.epoch as "epoch",
  concat_ws('.', heads.revision, revision.commit_id) as "revision",
  concat_ws('.', heads.reference, reference.commit_id) as "reference",
  coalesce(revision.committed_at, 'epoch'::timestamptz) as "committedAt"
  from service
  cross join (select coalesce($1::bigint, 9223372036854775807) as until) as bounds
  cross join lateral (select
  (select coalesce(max(newest.revision), 0) from unnest($2::text[]) as s (scope)
  cross join lateral (select r.revision from revision_scope r
  where r.scope = s.scope and r.revision <= bounds.until
  order by r.revision desc limit 1) as newest) as revision,
  
  (select coalesce(max(newest.revision), 0) from unnest($3::text[]) as s (scope)
  cross join lateral (select r.revision from revision_scope r
  where r.scope = s.scope and r.revision <= bounds.until
  order by r.revision desc limit 1) as newest) as reference) as heads
  left join revision on revision.number = heads.revision
  left join revision as reference on reference.number = heads.reference
  where require_commit(bounds.until, $4);

-- the reference data
select * from product_at($1::bigint)
  where require_commit($2::bigint, $3);
select * from dimension_value_at($1::bigint)
  where require_commit($2::bigint, $3);
select * from unit_of_measure_at($1::bigint)
  where require_commit($2::bigint, $3);
select * from currency_at($1::bigint)
  where require_commit($2::bigint, $3);
select id, slug, source, known_from as "from", known_until as until, days,
  working_days as "workingDays", revision::float8 as revision from holiday_list_at($1::bigint)
  where require_commit($2::bigint, $3);
select id, slug, rule, due_time as at, zone, holiday_list_id as "listId", policy,
  make_up_days as "makeUpDays", revision::float8 as revision from calendar_at($1::bigint)
  where require_commit($2::bigint, $3);
select price_id as "priceId", calendar_id as "calendarId",
  revision::float8 as revision from price_calendar_at($1::bigint)
  where require_commit($2::bigint, $3);
select country, valid_from as "from", trim_scale(rate)::text as rate from vat_rate_at($1::bigint)
  where require_commit($2::bigint, $3)
  order by country, valid_from;

-- prices, unfiltered
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p") as "p" left join lateral
  latest_point_at(p.id, $5::bigint) as "latest" on true order by p.code collate "C";

-- prices by code
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where p.code_key = any($5::text[])) as "p" left join lateral
  latest_point_at(p.id, $6::bigint) as "latest" on true order by p.code collate "C";

-- a page of prices
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."product_id" in (select v.key from (select id as key, uuid, name, match_key from product_at($5::bigint)) as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys)) and p.code collate "C" > $7 order by p.code collate "C" limit $8) as "p" left join lateral
  latest_point_at(p.id, $9::bigint) as "latest" on true order by p.code collate "C";

-- prices by product
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."product_id" in (select v.key from (select id as key, uuid, name, match_key from product_at($5::bigint)) as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))) as "p" left join lateral
  latest_point_at(p.id, $7::bigint) as "latest" on true order by p.code collate "C";

-- prices by category
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."price_category_id" in (select v.key from (select id as key, uuid, name, match_key from dimension_value_at($5::bigint)
  where kind = 'price-category') as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))) as "p" left join lateral
  latest_point_at(p.id, $7::bigint) as "latest" on true order by p.code collate "C";

-- prices by type
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."price_type" in (select v.key from (select slug as key, uuid, name, match_key from dimension_value_at($5::bigint)
  where kind = 'price-type') as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))) as "p" left join lateral
  latest_point_at(p.id, $7::bigint) as "latest" on true order by p.code collate "C";

-- prices by a dimension of the market
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."cell_format_id" in (select v.key from (select id as key, uuid, name, match_key from dimension_value_at($5::bigint)
  where kind = 'cell-format') as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))) as "p" left join lateral
  latest_point_at(p.id, $7::bigint) as "latest" on true order by p.code collate "C";

-- prices by several lists
select "p".*, "latest"."date" as "last_date", "latest"."published_at" as "last_published_at" from (select "p".* from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as "p" where "p"."product_id" in (select v.key from (select id as key, uuid, name, match_key from product_at($5::bigint)) as v
  cross join (select $6::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys)) and "p"."region_id" in (select v.key from (select id as key, uuid, name, match_key from dimension_value_at($7::bigint)
  where kind = 'region') as v
  cross join (select $8::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys)) and "p"."service_id" in (select v.key from (select id as key, uuid, name, match_key from dimension_value_at($9::bigint)
  where kind = 'service') as v
  cross join (select $10::text[] as keys) as sent
  where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))) as "p" left join lateral
  latest_point_at(p.id, $11::bigint) as "latest" on true order by p.code collate "C";

-- series, unbounded
copy (select price_id, date, low, mid, high, published_at, corrections
  from series_at(42) where price_id = any('{1,2}') and require_commit(42, 'abc123'))
  to stdout (format binary);

-- series between days
copy (select price_id, date, low, mid, high, published_at, corrections
  from series_at(42) where price_id = any('{1}') and date >= '2024-01-01' and date <= '2024-12-31' and require_commit(42, 'abc123'))
  to stdout (format binary);

-- some days of each of some prices
copy (select s.price_id, s.date, s.low, s.mid, s.high, s.published_at, s.corrections
  from (values (1, date '2024-01-01', date '2024-01-03')) as w (id, first, last)
  cross join lateral (select * from series_at(42)
  where price_id = w.id and date between w.first and w.last offset 0) as s
  where require_commit(42, 'abc123')) to stdout (format binary);

-- a few days of each of some prices
select s.price_id as "priceId", s.date - date '2000-01-01' as day,
  s.low::text, s.mid::text, s.high::text, s.corrections,
  (extract(epoch from s.published_at - timestamptz '2000-01-01T00:00Z') * 1000000)::bigint::text
  as micros
  from unnest($1::integer[], $2::date[], $3::date[]) as w (id, first, last)
  cross join lateral (select * from series_at($4::bigint)
  where price_id = w.id and date between w.first and w.last offset 0) as s
  where require_commit($4, $5);

-- the last points of some prices
select w.id as "priceId", s.date - date '2000-01-01' as day,
  s.low::text, s.mid::text, s.high::text, s.corrections,
  (extract(epoch from s.published_at - timestamptz '2000-01-01T00:00Z') * 1000000)::bigint::text
  as micros
  from unnest($1::integer[]) as w (id)
  cross join lateral ((
  select date, low, mid, high, published_at, corrections from series
  where price_id = w.id and revision <= $4::bigint
  and date between coalesce($2::date, '-infinity') and coalesce($3::date, 'infinity')
  order by date desc limit $6)
  union all (
  select date, low, mid, high, published_at, corrections from series_history
  where price_id = w.id and revision <= $4::bigint and revision_to > $4
  and date between coalesce($2::date, '-infinity') and coalesce($3::date, 'infinity')
  order by date desc limit $6)
  order by date desc limit $6) as s
  where require_commit($4, $5);

-- the days and number of points
select w.n::int as n, found.first - date '2000-01-01' as first,
  found.last - date '2000-01-01' as last, found.points::int as points
  from unnest($1::integer[], $2::date[], $3::date[], $4::boolean[])
  with ordinality as w (id, first, last, is_counted, n)
  cross join lateral (
  select min(date) as first, max(date) as last, count(*) as points
  from (select date from series where price_id = w.id and date between w.first and w.last and revision <= $5::bigint union all select date from series_history where price_id = w.id and date between w.first and w.last and revision <= $5::bigint and revision_to > $5) as each
  where w.is_counted
  union all select least((select date from series where price_id = w.id and date between w.first and w.last and revision <= $5::bigint order by date asc limit 1),
  (select date from series_history where price_id = w.id and date between w.first and w.last and revision <= $5::bigint and revision_to > $5 order by date asc limit 1)), greatest((select date from series where price_id = w.id and date between w.first and w.last and revision <= $5::bigint order by date desc limit 1),
  (select date from series_history where price_id = w.id and date between w.first and w.last and revision <= $5::bigint and revision_to > $5 order by date desc limit 1)), 0
  where not w.is_counted offset 0) as found
  where found.first is not null and require_commit($5, $6);

-- values that were named
with p as materialized (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4))
  select filter, id, name, "matchKey", key, prices
  from (select 0 as position, 'products' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from product_at($5::bigint)) as v on v.key = "p"."product_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 1 as position, 'priceCategories' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($6::bigint)
  where kind = 'price-category') as v on v.key = "p"."price_category_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 2 as position, 'priceTypes' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select slug as key, uuid, name, match_key from dimension_value_at($7::bigint)
  where kind = 'price-type') as v on v.key = "p"."price_type"
  group by v.uuid, v.name, v.match_key, v.key union all select 3 as position, 'purities' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($8::bigint)
  where kind = 'purity') as v on v.key = "p"."purity_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 4 as position, 'incoterms' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($9::bigint)
  where kind = 'incoterm') as v on v.key = "p"."incoterm_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 5 as position, 'countries' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($10::bigint)
  where kind = 'country') as v on v.key = "p"."country_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 6 as position, 'regions' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($11::bigint)
  where kind = 'region') as v on v.key = "p"."region_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 7 as position, 'services' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($12::bigint)
  where kind = 'service') as v on v.key = "p"."service_id"
  group by v.uuid, v.name, v.match_key, v.key) as used
  order by position, name collate "C";

-- codes that were not found
with p as materialized (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4))
  select filter, id, name, "matchKey", key, prices
  from (select 0 as position, 'products' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from product_at($5::bigint)) as v on v.key = "p"."product_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 1 as position, 'priceCategories' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($6::bigint)
  where kind = 'price-category') as v on v.key = "p"."price_category_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 2 as position, 'priceTypes' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select slug as key, uuid, name, match_key from dimension_value_at($7::bigint)
  where kind = 'price-type') as v on v.key = "p"."price_type"
  group by v.uuid, v.name, v.match_key, v.key union all select 3 as position, 'purities' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($8::bigint)
  where kind = 'purity') as v on v.key = "p"."purity_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 4 as position, 'incoterms' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($9::bigint)
  where kind = 'incoterm') as v on v.key = "p"."incoterm_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 5 as position, 'countries' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($10::bigint)
  where kind = 'country') as v on v.key = "p"."country_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 6 as position, 'regions' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($11::bigint)
  where kind = 'region') as v on v.key = "p"."region_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 7 as position, 'services' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($12::bigint)
  where kind = 'service') as v on v.key = "p"."service_id"
  group by v.uuid, v.name, v.match_key, v.key) as used
  order by position, name collate "C";
select p.code_key as key, market.slug
  from price_at_4($1::bigint) as p join market on market.id = p.market_id
  where p.code_key = any($2::text[]) and require_commit($3::bigint, $4);
select string_agg(code, e'
  ') as codes
  from (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4)) as p;

-- the values of every filter
with p as materialized (select price.* from price_at_4($1::bigint) as price
  where price.market_id = (select id from market where slug = $2)
  and require_commit($3::bigint, $4))
  select filter, id, name, "matchKey", key, prices
  from (select 0 as position, 'products' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from product_at($5::bigint)) as v on v.key = "p"."product_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 1 as position, 'priceCategories' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($6::bigint)
  where kind = 'price-category') as v on v.key = "p"."price_category_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 2 as position, 'priceTypes' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select slug as key, uuid, name, match_key from dimension_value_at($7::bigint)
  where kind = 'price-type') as v on v.key = "p"."price_type"
  group by v.uuid, v.name, v.match_key, v.key union all select 3 as position, 'incoterms' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($8::bigint)
  where kind = 'incoterm') as v on v.key = "p"."incoterm_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 4 as position, 'countries' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($9::bigint)
  where kind = 'country') as v on v.key = "p"."country_id"
  group by v.uuid, v.name, v.match_key, v.key union all select 5 as position, 'regions' as filter,
  v.uuid as id, v.name, v.match_key as "matchKey",
  v.key::text as key, count(*)::int as prices
  from p join (select id as key, uuid, name, match_key from dimension_value_at($10::bigint)
  where kind = 'region') as v on v.key = "p"."region_id"
  group by v.uuid, v.name, v.match_key, v.key) as used
  order by position, name collate "C";

-- how far the feed goes
select s.epoch, coalesce((select concat_ws('.', number, commit_id) from revision
  order by number desc limit 1), '0') as revision,
  coalesce((select concat_ws('.', c.number, r.commit_id)
  from (select first_seq + price_changes + points - 1 as number, revision
  from change_segment where first_seq is not null order by first_seq desc limit 1) as c
  join revision r on r.number = c.revision), '0') as number,
  (select json_object_agg(slug, id) from market) as markets,
  (case when ($1::bigint = 0 and s.epoch = $2) or exists (
  select from revision r
  where r.number between
  coalesce((select revision from change_segment where first_seq <= $3::bigint
  order by first_seq desc limit 1), 0)
  and coalesce((select revision from change_segment where first_seq > $4::bigint
  order by first_seq limit 1), 9223372036854775807)
  and s.epoch || r.commit_id = $5) then $6::bigint end)::text as start,
  false as "isFuture"
  from service s;

-- the position of an instant
select s.epoch, coalesce((select concat_ws('.', number, commit_id) from revision
  order by number desc limit 1), '0') as revision,
  coalesce((select concat_ws('.', c.number, r.commit_id)
  from (select first_seq + price_changes + points - 1 as number, revision
  from change_segment where first_seq is not null order by first_seq desc limit 1) as c
  join revision r on r.number = c.revision), '0') as number,
  (select json_object_agg(slug, id) from market) as markets,
  (coalesce((
  select first_seq + price_changes + points - 1 from change_segment
  where revision < coalesce((select number from revision
  where committed_at >= $1::timestamptz order by committed_at limit 1),
  9223372036854775807)
  order by revision desc, price_id desc limit 1), 0))::text as start,
  $2::timestamptz > greatest(
  clock_timestamp(), (select committed_at from revision order by number desc limit 1)) as "isFuture"
  from service s;

-- prices of a request for changes
with wanted as (select distinct key from unnest($1::text[]) as k (key))
  select p.key, p.id, market.slug as market
  from (
  select key, id, market_id from wanted join price on code_key = key
  union select key, id, market_id from wanted join price_history on code_key = key) as p
  join market on market.id = p.market_id
  order by p.id;

-- changes of some prices
with parts as materialized (select c.*, row_number() over (partition by c.price_id order by c.first_seq) as place
  from unnest($1::integer[]) as wanted (id)
  cross join lateral (select * from change_segment
  where price_id = wanted.id and first_seq > $2::bigint and first_seq <= $3::bigint and revision >= coalesce((
  select revision from change_segment where first_seq <= $4::bigint
  order by first_seq desc limit 1), 0)
  order by revision limit $5) as c),
  bound as materialized (
  select first_seq, concat_ws('.', first_seq + price_changes + points - 1, r.commit_id) as end
  from parts join revision r on r.number = parts.revision
  where place = $6 order by first_seq limit 1),
  examined as (
  (select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from change_segment c where first_seq <= $7::bigint
  order by first_seq desc limit 1)
  union all
  select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from parts c
  where c.first_seq <= coalesce((select first_seq from bound), $8::bigint)),
  candidates as (
  select c.*, c.first_seq + c.price_changes + c.points
  - greatest(c.first_seq, $9::bigint + 1) as rest
  from examined c
  where c.price_id = any($10::integer[])
  and c.first_seq + c.price_changes + c.points > $11::bigint + 1
  and (true)),
  counted as (
  select *, sum(rest) over (order by first_seq) - rest as before from candidates)
  select (select bound.end from bound) as end,
  concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id, c.market_id,
  (
  select code from price where id = c.price_id
  union all select code from price_history where id = c.price_id
  limit 1) as code,
  c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
  from (values (1)) as one
  left join (counted c join revision r on r.number = c.revision and c.before < $12)
  on true
  where require_commit($13::bigint, $14)
  order by c.first_seq;

-- corrections of two markets
with parts as materialized (select c.*, row_number() over (order by c.first_seq) as place
  from (select * from change_segment where market_id = $1::smallint and first_seq > $2::bigint and first_seq <= $3::bigint
  order by first_seq limit $4) as c union all select c.*, row_number() over (order by c.first_seq) as place
  from (select * from change_segment where market_id = $5::smallint and first_seq > $6::bigint and first_seq <= $7::bigint
  order by first_seq limit $8) as c),
  bound as materialized (
  select first_seq, concat_ws('.', first_seq + price_changes + points - 1, r.commit_id) as end
  from parts join revision r on r.number = parts.revision
  where place = $9 order by first_seq limit 1),
  examined as (
  (select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from change_segment c where first_seq <= $10::bigint
  order by first_seq desc limit 1)
  union all
  select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from parts c
  where c.first_seq <= coalesce((select first_seq from bound), $11::bigint)),
  candidates as (
  select c.*, c.first_seq + c.price_changes + c.points
  - greatest(c.first_seq, $12::bigint + 1) as rest
  from examined c
  where c.market_id = any($13::smallint[])
  and c.first_seq + c.price_changes + c.points > $14::bigint + 1
  and ((c.points > 0 and (select true from series_history h
  where h.price_id = c.price_id and h.revision_to = c.revision limit 1)))),
  counted as (
  select *, sum(rest) over (order by first_seq) - rest as before from candidates)
  select (select bound.end from bound) as end,
  concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id, c.market_id,
  (
  select code from price where id = c.price_id
  union all select code from price_history where id = c.price_id
  limit 1) as code,
  c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
  from (values (1)) as one
  left join (counted c join revision r on r.number = c.revision and c.before < $15)
  on true
  where require_commit($16::bigint, $17)
  order by c.first_seq;

-- every kind of change by its condition
with parts as materialized (select c.*, row_number() over (order by c.first_seq) as place
  from (select * from change_segment where market_id = $1::smallint and first_seq > $2::bigint and first_seq <= $3::bigint
  order by first_seq limit $4) as c union all select c.*, row_number() over (order by c.first_seq) as place
  from (select * from change_segment where market_id = $5::smallint and first_seq > $6::bigint and first_seq <= $7::bigint
  order by first_seq limit $8) as c),
  bound as materialized (
  select first_seq, concat_ws('.', first_seq + price_changes + points - 1, r.commit_id) as end
  from parts join revision r on r.number = parts.revision
  where place = $9 order by first_seq limit 1),
  examined as (
  (select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from change_segment c where first_seq <= $10::bigint
  order by first_seq desc limit 1)
  union all
  select c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
  c.first_date, c.last_date from parts c
  where c.first_seq <= coalesce((select first_seq from bound), $11::bigint)),
  candidates as (
  select c.*, c.first_seq + c.price_changes + c.points
  - greatest(c.first_seq, $12::bigint + 1) as rest
  from examined c
  where c.market_id = any($13::smallint[])
  and c.first_seq + c.price_changes + c.points > $14::bigint + 1
  and ((c.price_changes = 1 and exists (select from price_history h
  where h.id = c.price_id and h.revision_to = c.revision)) or (c.points > 0 and (select true from series_history h
  where h.price_id = c.price_id and h.revision_to = c.revision limit 1)) or (c.points > (select count(*) from (
  select from series_history h where h.price_id = c.price_id and h.revision_to = c.revision
  limit c.points) as h)))),
  counted as (
  select *, sum(rest) over (order by first_seq) - rest as before from candidates)
  select (select bound.end from bound) as end,
  concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id, c.market_id,
  (
  select code from price where id = c.price_id
  union all select code from price_history where id = c.price_id
  limit 1) as code,
  c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
  from (values (1)) as one
  left join (counted c join revision r on r.number = c.revision and c.before < $15)
  on true
  where require_commit($16::bigint, $17)
  order by c.first_seq;

-- changes of two markets
with found as (
  (select * from change_segment where first_seq <= $1::bigint
  order by first_seq desc limit 1)
  union all (select * from change_segment
  where market_id = $2::smallint and first_seq > $3::bigint and first_seq <= $4::bigint
  order by first_seq limit $5) union all (select * from change_segment
  where market_id = $6::smallint and first_seq > $7::bigint and first_seq <= $8::bigint
  order by first_seq limit $9)),
  unread as (
  select *, first_seq + price_changes + points
  - greatest(first_seq, $10::bigint + 1) as rest
  from found where market_id = any($11::smallint[])),
  counted as (
  select *, sum(rest) over (order by first_seq) - rest as before from unread where rest > 0)
  select concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id,
  c.market_id, p.code, c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
  from counted c join revision r on r.number = c.revision
  cross join lateral (
  select code from price where id = c.price_id
  union all select code from price_history where id = c.price_id
  limit 1) as p
  where c.before < $12 and require_commit($13::bigint, $14)
  order by c.first_seq;

-- changes of many markets
with found as (
  (select * from change_segment where first_seq <= $1::bigint
  order by first_seq desc limit 1)
  union all (select * from change_segment
  where market_id = any($2::smallint[]) and first_seq > $3::bigint and first_seq <= $4::bigint
  order by first_seq limit $5)),
  unread as (
  select *, first_seq + price_changes + points
  - greatest(first_seq, $6::bigint + 1) as rest
  from found where market_id = any($7::smallint[])),
  counted as (
  select *, sum(rest) over (order by first_seq) - rest as before from unread where rest > 0)
  select concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id,
  c.market_id, p.code, c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
  from counted c join revision r on r.number = c.revision
  cross join lateral (
  select code from price where id = c.price_id
  union all select code from price_history where id = c.price_id
  limit 1) as p
  where c.before < $8 and require_commit($9::bigint, $10)
  order by c.first_seq;

-- points that changed
select s.place, c.*
  from unnest($1::bigint[],
  $2::integer[],
  $3::date[], $4::date[],
  $5::integer[], $6::integer[])
  with ordinality as s (revision, price_id, first_date, last_date, skipped, taken, place)
  cross join lateral (
  select coalesce(became.date, was.date) as date,
  was.low as was_low, was.mid as was_mid, was.high as was_high,
  was.published_at as was_published_at, was.corrections as was_corrections,
  became.low as is_low, became.mid as is_mid, became.high as is_high,
  became.published_at as is_published_at, became.corrections as is_corrections
  from (
  select date, low, mid, high, published_at, corrections from series
  where price_id = s.price_id and date between s.first_date and s.last_date
  and revision = s.revision
  union all
  select date, low, mid, high, published_at, corrections from series_history
  where price_id = s.price_id and date between s.first_date and s.last_date
  and revision = s.revision) as became
  full join (
  select date, low, mid, high, published_at, corrections from series_history
  where price_id = s.price_id and revision_to = s.revision
  and date between s.first_date and s.last_date) as was
  on was.date = became.date
  order by 1 offset s.skipped limit s.taken) as c
  where require_commit($7::bigint, $8)
  order by s.place, c.date;

-- prices that changed
select s.place, side.is_before as "isBefore", reference.revision as reference, p.*
  from unnest($1::bigint[],
  $2::integer[])
  with ordinality as s (revision, price_id, place)
  cross join lateral (values (s.revision - 1, true), (s.revision, false)) as side (at, is_before)
  cross join lateral (select concat_ws('.', newest.revision, r.commit_id) as revision
  from (select coalesce(max(each.revision), 0) as revision from revision_scope each
  where each.scope = 'reference' and each.revision <= side.at) as newest
  left join revision r on r.number = newest.revision) as reference
  cross join lateral (
  select "id", "code", "price_type", "currency_id", "unit_id", "product_id", "name", "short_name", "specification", "assessment_launched_at", "price_category_id", "frequency_id", "payable_reference", "purity_id", "grade_id", "capacity_id", "cell_format_id", "mesh_size_id", "sub_product_id", "feedstock_id", "incoterm_id", "country_id", "region_id", "trade_type_id", "service_id", "vat_country", coalesce(observes, 'day') as observes from price where id = s.price_id and revision <= side.at
  union all
  select "id", "code", "price_type", "currency_id", "unit_id", "product_id", "name", "short_name", "specification", "assessment_launched_at", "price_category_id", "frequency_id", "payable_reference", "purity_id", "grade_id", "capacity_id", "cell_format_id", "mesh_size_id", "sub_product_id", "feedstock_id", "incoterm_id", "country_id", "region_id", "trade_type_id", "service_id", "vat_country", coalesce(observes, 'day') as observes from price_history
  where id = s.price_id and revision <= side.at and revision_to > side.at) as p
  where require_commit($3::bigint, $4);

-- the list of markets
select market.slug, count(price.id)::int as prices,
  min((select series.date from series
  where price_id = price.id order by date asc limit 1)) as "firstDate", max((select series.date from series
  where price_id = price.id order by date desc limit 1)) as "lastDate",
  max((select series.published_at from series
  where price_id = price.id order by date desc limit 1)) as "publishedAt"
  from market left join price on price.market_id = market.id
  where require_commit($1::bigint, $2)
  group by market.slug;
