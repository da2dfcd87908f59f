import { type Kysely, sql } from 'kysely';

/** The bounds of a point by its decimals: at most 15 digits, of which at most 10 are decimals. */
const BOUNDS_BY_DECIMALS = Array.from({ length: 11 }, (_, decimals) => {
  const bound = `1e${15 - decimals}`;
  return `    when ${decimals} then coalesce(high, mid) < ${bound} and coalesce(low, mid) > -${bound}`;
}).join('\n');

/** Prices, the ledger of loads, and the points of prices. */
const SCHEMA = `
create table price (
  id integer primary key generated always as identity,
  market_id smallint not null references market (id),
  code text not null unique check (code ~ '^[!-~]{1,64}$'),
  code_key text not null unique check (code_key <> ''),
  price_type text not null check (price_type in ('price', 'payable')),
  currency_id smallint references currency (id),
  unit_id smallint not null,
  unit_dimension text not null,
  product_id integer not null,
  name text not null check (name <> '' and name !~ '[[:cntrl:]]'),
  short_name text check (short_name <> ''),
  specification jsonb not null default '[]' check (jsonb_typeof(specification) = 'array'),
  assessment_launched_at date check (assessment_launched_at between '1800-01-01' and '2199-12-31'),
  price_category_id integer not null references dimension_value (id),
  frequency_id integer not null references dimension_value (id),
  purity_id integer references dimension_value (id),
  grade_id integer references dimension_value (id),
  capacity_id integer references dimension_value (id),
  cell_format_id integer references dimension_value (id),
  mesh_size_id integer references dimension_value (id),
  sub_product_id integer references dimension_value (id),
  feedstock_id integer references dimension_value (id),
  incoterm_id integer references dimension_value (id),
  country_id integer references dimension_value (id),
  region_id integer references dimension_value (id),
  trade_type_id integer references dimension_value (id),
  service_id integer references dimension_value (id),
  revision bigint not null default current_revision() references revision (number),
  foreign key (unit_id, unit_dimension) references unit_of_measure (id, dimension),
  foreign key (product_id, market_id) references product (id, market_id),
  constraint price_payable_has_no_currency
    check ((price_type = 'payable') = (currency_id is null)),
  constraint price_payable_is_percent
    check ((price_type = 'payable') = (unit_dimension = 'ratio'))
);
comment on table price is
  'One assessed price or payable. Market, code, type, currency and unit never change; the rest is versioned.';
create index price_market on price (market_id);

create function refuse_new_identity() returns trigger language plpgsql as $$
begin
  raise exception 'market, code, type, currency and unit of price % never change', old.code
    using hint = 'Publish the new terms as a new price with a code of its own.';
end $$;
comment on function refuse_new_identity() is 'Rejects changes of the identity of a price.';
create trigger price_identity_is_fixed before update on price for each row
  when ((old.id, old.market_id, old.code, old.price_type, old.currency_id, old.unit_id)
    is distinct from (new.id, new.market_id, new.code, new.price_type, new.currency_id, new.unit_id))
  execute function refuse_new_identity();

create function check_dimension_kinds() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
declare
  wrong text;
begin
  select format('%s refers to "%s", a value of %s', c.name, v.name, v.kind) into wrong
    from (values
      ('price_category_id', 'price-category', new.price_category_id),
      ('frequency_id', 'frequency', new.frequency_id),
      ('purity_id', 'purity', new.purity_id),
      ('grade_id', 'grade', new.grade_id),
      ('capacity_id', 'capacity', new.capacity_id),
      ('cell_format_id', 'cell-format', new.cell_format_id),
      ('mesh_size_id', 'mesh-size', new.mesh_size_id),
      ('sub_product_id', 'sub-product', new.sub_product_id),
      ('feedstock_id', 'feedstock', new.feedstock_id),
      ('incoterm_id', 'incoterm', new.incoterm_id),
      ('country_id', 'country', new.country_id),
      ('region_id', 'region', new.region_id),
      ('trade_type_id', 'trade-type', new.trade_type_id),
      ('service_id', 'service', new.service_id)) as c (name, kind, id)
    join dimension_value v on v.id = c.id
    where v.kind <> c.kind
    limit 1;
  if wrong is not null then
    raise exception '% of price % is of the wrong kind', wrong, new.code;
  end if;
  return new;
end $$;
comment on function check_dimension_kinds() is
  'Rejects a price that references a value of the wrong dimension.';
create trigger price_dimension_kinds before insert or update on price
  for each row execute function check_dimension_kinds();

-- A foreign key checks each point separately, which took two thirds of the time of a bulk load.
-- series_touch checks all points of a statement at once, and this trigger protects prices with
-- points. Together they are equivalent, because all writers hold the write lock.
create function refuse_loss_of_points() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  if exists (select from series where price_id = old.id) then
    raise foreign_key_violation
      using message = format('price %s has points', old.code), table = 'series',
        hint = 'Withdraw its points first.';
  end if;
  return old;
end $$;
comment on function refuse_loss_of_points() is 'Rejects the removal of a price that has points.';
create trigger price_with_points_stays before delete on price
  for each row execute function refuse_loss_of_points();

create table load_batch (
  id integer primary key generated always as identity,
  format text not null,
  file_name text not null,
  sha256 bytea not null check (octet_length(sha256) = 32),
  mapping_sha256 bytea check (octet_length(mapping_sha256) = 32),
  vintage date,
  actor text not null,
  reason text,
  status text not null check (status in ('applied', 'refused')),
  started_at timestamptz not null,
  finished_at timestamptz not null,
  revision bigint references revision (number),
  prices_added integer not null default 0 check (prices_added >= 0),
  prices_changed integer not null default 0 check (prices_changed >= 0),
  prices_removed integer not null default 0 check (prices_removed >= 0),
  rows bigint not null check (rows >= 0),
  inserted bigint not null default 0 check (inserted >= 0),
  unchanged bigint not null default 0 check (unchanged >= 0),
  corrected bigint not null default 0 check (corrected >= 0),
  outdated bigint not null default 0 check (outdated >= 0),
  withdrawn bigint not null default 0 check (withdrawn >= 0),
  rejected bigint not null default 0 check (rejected >= 0),
  undoes integer references load_batch (id),
  undone_by integer references load_batch (id),
  constraint load_batch_adds_up check (status = 'refused'
    or rows = inserted + unchanged + corrected + outdated + withdrawn + rejected),
  constraint load_batch_undo_names_a_batch check ((format = 'undo') = (undoes is not null))
);
comment on table load_batch is
  'The ledger of loads, withdrawals and undos: rows = inserted + unchanged + corrected + outdated + withdrawn + rejected.';
comment on column load_batch.mapping_sha256 is
  'SHA-256 of the mapping of the load. The same file with another mapping is another load.';
comment on column load_batch.undone_by is
  'The batch that undid this one; null while it is in force.';
create index load_batch_revision on load_batch (revision);
-- A file whose batch was undone, or had rejected rows, may be loaded again.
create unique index load_batch_once on load_batch (sha256, format, mapping_sha256)
  nulls not distinct where status = 'applied' and undone_by is null and rejected = 0
    and format not in ('withdraw', 'undo');

-- Each check runs for each row of a bulk load, and each function of a numeric copies its argument,
-- so the checks call few functions. NaN and infinity have no scale and are outside every bound.
create table series (
  price_id integer not null,
  date date not null
    check (date between '1800-01-01' and '2199-12-31')
    check (date <= (now() at time zone interval '0')::date + 1),
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamptz not null
    check (published_at between '1800-01-01T00:00Z' and '2199-12-31T23:59Z'),
  corrections integer not null default 0 check (corrections >= 0),
  batch_id integer,
  revision bigint not null default needed_revision(),
  primary key (price_id, date) include (low, mid, high, published_at, corrections, revision),
  constraint series_low_mid_high check (low <= mid and mid <= high),
  constraint series_is_trimmed check (
    scale(mid) = min_scale(mid) and scale(low) = min_scale(low) and scale(high) = min_scale(high)),
  constraint series_has_15_digits check (case greatest(scale(low), scale(mid), scale(high))
${BOUNDS_BY_DECIMALS}
    else false
  end)
)
-- Reads of points are index-only scans, which read the table for each row of a page that changed
-- since the last vacuum. By default, that is after changes of a fifth of the table.
with (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_insert_scale_factor = 0.005);
comment on table series is
  'The current value of each price on each date. At most 15 significant digits at the finest decimals of the point.';
-- Moving a point to another market would change the old market without a new revision.
create trigger series_identity_is_fixed before update of price_id, date on series for each row
  when ((old.price_id, old.date) is distinct from (new.price_id, new.date))
  execute function refuse_new_key();

-- No foreign keys to prices and currencies: coverage outlives rows that an undo deletes, since an
-- undo can be undone.
create table load_coverage (
  batch_id integer not null references load_batch (id),
  price_id integer,
  currency_id smallint,
  first_date date not null,
  last_date date not null,
  check (num_nonnulls(price_id, currency_id) = 1),
  check (first_date <= last_date)
);
comment on table load_coverage is
  'Prices and currencies of a batch with a vintage, with ranges of dates. An older vintage never overwrites these.';
create index load_coverage_price on load_coverage (price_id, batch_id) where price_id is not null;
create index load_coverage_currency on load_coverage (currency_id, batch_id)
  where currency_id is not null;

create function jumps(one numeric, other numeric, factor numeric)
  returns boolean language sql immutable parallel safe
return case
  when one is null or other is null or one = other then false
  when sign(one) <> sign(other) then true
  else greatest(abs(one), abs(other)) > factor * least(abs(one), abs(other))
end;
comment on function jumps(numeric, numeric, numeric) is
  'True if two values differ by more than a factor. Zero, or the opposite sign, always differs by more.';

-- Arguments are {low, mid, high, day}; day is a day number, for the distance of two values.
create function value_jumps(one numeric[], other numeric[], factor numeric)
  returns boolean language sql immutable parallel safe
return coalesce(abs(one[4] - other[4]) <= 400 and (
  jumps(one[2], other[2], factor)
  or jumps(one[1], other[1], factor)
  or jumps(one[3], other[3], factor)), false);
comment on function value_jumps(numeric[], numeric[], numeric) is
  'True if low, mid or high of two values {low, mid, high, day} jump. Values more than 400 days apart never jump.';

create function take_value(
  taken numeric[], candidate numeric[], otherwise numeric[], is_fixed boolean, factor numeric)
  returns numeric[] language sql immutable parallel safe
return case
  when is_fixed or not value_jumps(taken, candidate, factor) then candidate
  else coalesce(otherwise, taken)
end;
comment on function take_value(numeric[], numeric[], numeric[], boolean, numeric) is
  'State transition of last_taken: accepts the next value if it is fixed or does not jump.';
create aggregate last_taken(numeric[], numeric[], boolean, numeric) (
  sfunc = take_value, stype = numeric[], parallel = safe);
comment on aggregate last_taken(numeric[], numeric[], boolean, numeric) is
  'The last accepted value of a series: a value that jumps from the last accepted one is skipped, and the value that it would replace is accepted instead.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(SCHEMA).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop aggregate last_taken(numeric[], numeric[], boolean, numeric);
    drop function take_value(numeric[], numeric[], numeric[], boolean, numeric),
      value_jumps(numeric[], numeric[], numeric), jumps(numeric, numeric, numeric);
    drop table load_coverage, series, load_batch, price;
    drop function refuse_loss_of_points(), check_dimension_kinds(), refuse_new_identity();
  `)
    .execute(db);
}
