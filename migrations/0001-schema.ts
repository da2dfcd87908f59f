import { type Kysely, sql } from 'kysely';

/** Tables whose superseded rows are kept for ever, each with a `<table>_history` beside it. */
const VERSIONED = [
  'currency',
  'unit_of_measure',
  'dimension_value',
  'product',
  'price',
  'series',
  'fx_rate',
];

/** The columns of `price` that refer to `dimension_value`, with the kind each must have. */
const DIMENSIONS = [
  ['price_category_id', 'price-category'],
  ['frequency_id', 'frequency'],
  ['purity_id', 'purity'],
  ['grade_id', 'grade'],
  ['capacity_id', 'capacity'],
  ['cell_format_id', 'cell-format'],
  ['mesh_size_id', 'mesh-size'],
  ['sub_product_id', 'sub-product'],
  ['feedstock_id', 'feedstock'],
  ['incoterm_id', 'incoterm'],
  ['country_id', 'country'],
  ['region_id', 'region'],
  ['trade_type_id', 'trade-type'],
  ['service_id', 'service'],
] as const;

const REVISIONS = `
create table service (
  id smallint primary key default 1 check (id = 1),
  epoch text not null check (epoch ~ '^[0-9a-z]{4,12}$')
);
comment on table service is 'One row: the epoch that stands before every revision number on the wire.';
insert into service (epoch) values (substr(md5(gen_random_uuid()::text), 1, 6));

create table market (
  id smallint primary key generated always as identity,
  slug text not null unique check (slug ~ '^[a-z]+(-[a-z]+)*$'),
  name text not null
);
comment on table market is 'The markets of the catalog, written by the migrate command.';

create table revision (
  number bigint primary key check (number > 0),
  committed_at timestamptz not null unique,
  reason text not null,
  opened_by xid8 not null default pg_current_xact_id()
);
comment on table revision is 'One row for each commit that changed data: its number, growing by one, and its time.';

create table revision_scope (
  scope text not null check (scope ~ '^(fx:[A-Z0-9]+|[a-z]+(-[a-z]+)*)$'),
  revision bigint not null references revision (number),
  primary key (scope, revision)
);
comment on table revision_scope is
  'What each revision touched: the slug of a market, reference, or fx:<source>. The newest of a scope is its greatest.';

create function current_revision() returns bigint language sql stable parallel safe as
  $$ select nullif(current_setting('prices.revision', true), '')::bigint $$;
comment on function current_revision() is 'The revision that this transaction has opened, or null.';

create function lock_revisions() returns void language sql volatile as
  $$ select pg_advisory_xact_lock(7130541502) $$;
comment on function lock_revisions() is
  'Waits until no other transaction writes data; held to the end of this one.';

create function open_revision(why text) returns bigint language plpgsql as $$
declare
  opened bigint := current_revision();
begin
  if opened is not null then
    return opened;
  end if;
  perform lock_revisions();
  select coalesce(max(number), 0) + 1 into opened from revision;
  insert into revision (number, committed_at, reason)
    values (opened, greatest(clock_timestamp(), (select max(committed_at) + interval '1 microsecond' from revision)), why);
  perform set_config('prices.revision', opened::text, true);
  return opened;
end $$;
comment on function open_revision(text) is
  'Takes the next revision for this transaction. Every change of data needs one.';

-- Runs last, at the commit: the time written is the time of the commit, and no number is spent on nothing.
create function seal_revision() returns trigger language plpgsql as $$
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
create constraint trigger revision_seal after insert on revision
  deferrable initially deferred for each row execute function seal_revision();

-- The setting alone could be forged; the row tells which transaction opened the revision.
create function check_revision() returns trigger language plpgsql as $$
begin
  if current_revision() is not null and not exists (select from revision
      where number = current_revision() and opened_by = pg_current_xact_id_if_assigned()) then
    raise exception 'revision % was not opened by this transaction', current_revision()
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return null;
end $$;

-- A commit takes moments; one that is stuck must not take the readers with it.
-- Volatile, so that what is read after the wait is read from a snapshot taken after it.
create function revision_as_of(moment timestamptz) returns bigint
  language plpgsql volatile set lock_timeout = '250ms' as $$
declare
  newest timestamptz;
begin
  select max(committed_at) into newest from revision;
  -- Later revisions get later times, so a moment before the newest one is settled.
  if newest is null or moment > newest then
    if moment >= clock_timestamp() then
      return null;
    end if;
    perform pg_advisory_xact_lock_shared(7130541503);
  end if;
  return coalesce(
    (select number from revision where committed_at <= moment order by committed_at desc limit 1), 0);
end $$;
comment on function revision_as_of(timestamptz) is
  'The last revision committed at or before a moment, 0 before the first, null for the future. The same for ever.';

create function refuse_without_revision() returns trigger language plpgsql as $$
begin
  raise exception 'a change of % needs a revision of its own', tg_table_name
    using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
end $$;

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of % is refused: what was published is kept for ever', lower(tg_op), tg_table_name;
end $$;

create function stamp_revision() returns trigger language plpgsql as $$
begin
  if current_revision() is null then
    raise exception 'a change of % needs a revision of its own', tg_table_name
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  new.revision := current_revision();
  return new;
end $$;
`;

const REFERENCE = `
create table currency (
  id smallint primary key generated always as identity,
  uuid uuid not null unique,
  iso text not null unique check (iso ~ '^[A-Z]{3}$'),
  name text not null check (name <> ''),
  symbol text not null check (symbol <> '')
);
comment on table currency is 'Currencies of ISO 4217 that prices are in or can be converted to.';

create table unit_of_measure (
  id smallint primary key generated always as identity,
  uuid uuid not null unique,
  slug text not null unique,
  name text not null check (name <> ''),
  symbol text not null check (symbol <> ''),
  name_key text not null unique,
  symbol_key text not null,
  rec20 text,
  dimension text not null check (dimension in
    ('mass', 'mass-dry', 'mass-wet', 'content', 'content-dry', 'energy', 'count', 'ratio')),
  factor numeric not null check (factor > 0 and factor < 1e15),
  unique (id, dimension)
);
comment on table unit_of_measure is
  'Units, with the exact factor to the base of their dimension (kg, kg contained, kWh, piece, percent). They convert inside one dimension only.';

create table dimension_value (
  id integer primary key generated always as identity,
  uuid uuid not null unique,
  kind text not null check (kind in (${['price-type', ...DIMENSIONS.map(([, kind]) => kind)]
    .map((kind) => `'${kind}'`)
    .join(', ')})),
  slug text not null check (slug ~ '^[^[:space:]]+$'),
  name text not null check (name <> '' and name !~ '[[:cntrl:]]'),
  short_name text check (short_name <> ''),
  match_key text not null check (match_key <> ''),
  unique (kind, slug),
  unique (kind, match_key),
  constraint dimension_value_price_type_closed
    check (kind <> 'price-type' or slug in ('price', 'payable')),
  constraint dimension_value_frequency_closed
    check (kind <> 'frequency' or short_name in ('D', '2xW', 'W', '2W', 'M', 'Q', 'A'))
);
comment on table dimension_value is
  'The values of every dimension: purities, incoterms, regions …, and price categories, types and frequencies.';

create table product (
  id integer primary key generated always as identity,
  uuid uuid not null unique,
  market_id smallint not null references market (id),
  slug text not null,
  name text not null check (name <> '' and name !~ '[[:cntrl:]]'),
  alias text not null,
  chemical_code text not null,
  is_sustainable boolean not null,
  match_key text not null check (match_key <> ''),
  unique (market_id, slug),
  unique (market_id, match_key),
  unique (id, market_id)
);
comment on table product is 'What is priced, market by market.';
`;

const PRICES = `
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
  ${DIMENSIONS.map(
    ([column]) =>
      `${column} integer ${/category|frequency/.test(column) ? 'not null ' : ''}references dimension_value (id)`,
  ).join(',\n  ')},
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

create table load_batch (
  id integer primary key generated always as identity,
  format text not null,
  file_name text not null,
  sha256 bytea not null check (octet_length(sha256) = 32),
  vintage date,
  actor text not null,
  reason text,
  status text not null check (status in ('applied', 'refused')),
  started_at timestamptz not null,
  finished_at timestamptz not null,
  revision bigint references revision (number),
  prices_added integer not null default 0 check (prices_added >= 0),
  prices_changed integer not null default 0 check (prices_changed >= 0),
  rows bigint not null check (rows >= 0),
  inserted bigint not null default 0 check (inserted >= 0),
  unchanged bigint not null default 0 check (unchanged >= 0),
  corrected bigint not null default 0 check (corrected >= 0),
  outdated bigint not null default 0 check (outdated >= 0),
  rejected bigint not null default 0 check (rejected >= 0),
  constraint load_batch_adds_up
    check (status = 'refused' or rows = inserted + unchanged + corrected + outdated + rejected)
);
comment on table load_batch is
  'The ledger of loads: rows = inserted + unchanged + corrected + outdated + rejected.';
create unique index load_batch_once on load_batch (sha256, format) where status = 'applied';

create table series (
  price_id integer not null references price (id),
  date date not null
    check (date between '1800-01-01' and '2199-12-31')
    check (date <= (now() at time zone 'UTC')::date + 1),
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamptz not null
    check (published_at between '1800-01-01T00:00Z' and '2199-12-31T23:59Z'),
  corrections integer not null default 0 check (corrections >= 0),
  batch_id integer,
  revision bigint not null default current_revision(),
  primary key (price_id, date) include (low, mid, high, published_at, corrections, revision),
  constraint series_low_mid_high check (low <= mid and mid <= high and low <= high),
  constraint series_is_a_number check (
    coalesce(scale(mid), 99) <= 10
    and (low is null or coalesce(scale(low), 99) <= 10)
    and (high is null or coalesce(scale(high), 99) <= 10)),
  constraint series_is_trimmed check (
    scale(mid) = min_scale(mid) and scale(low) = min_scale(low) and scale(high) = min_scale(high)),
  constraint series_has_15_digits check (
    greatest(abs(low), abs(mid), abs(high)) <
      ('{1e15,1e14,1e13,1e12,1e11,1e10,1e9,1e8,1e7,1e6,1e5}'::numeric[])
        [1 + greatest(scale(low), scale(mid), scale(high))])
);
comment on table series is
  'The current value of each price on each date. At most 15 significant digits at the finest decimals of the point.';
`;

const RATES = `
create table fx_source (
  slug text primary key check (slug ~ '^[A-Z0-9]+$'),
  name text not null,
  base_currency_id smallint not null references currency (id),
  is_sample boolean not null default false
);
comment on table fx_source is 'Who publishes exchange rates, and against which base currency.';

create table fx_rate (
  source text not null references fx_source (slug),
  currency_id smallint not null references currency (id),
  date date not null
    check (date between '1800-01-01' and '2199-12-31')
    check (date <= (now() at time zone 'UTC')::date + 1),
  rate numeric not null,
  batch_id integer,
  revision bigint not null default current_revision(),
  primary key (source, currency_id, date),
  constraint fx_rate_is_a_positive_number check (coalesce(scale(rate), 99) <= 10 and rate > 0),
  constraint fx_rate_is_trimmed check (scale(rate) = min_scale(rate)),
  constraint fx_rate_has_15_digits check (
    rate < ('{1e15,1e14,1e13,1e12,1e11,1e10,1e9,1e8,1e7,1e6,1e5}'::numeric[])[1 + scale(rate)])
);
comment on table fx_rate is 'Exchange rates as published: units of the currency for one of the base of its source.';

create table load_coverage (
  batch_id integer not null references load_batch (id),
  price_id integer references price (id),
  currency_id smallint references currency (id),
  first_date date not null,
  last_date date not null,
  check (num_nonnulls(price_id, currency_id) = 1),
  check (first_date <= last_date)
);
comment on table load_coverage is
  'Which prices and currencies a batch with a vintage held, and for which dates: an older vintage never overwrites these.';
create unique index load_coverage_price on load_coverage (price_id, batch_id) where price_id is not null;
create unique index load_coverage_currency on load_coverage (currency_id, batch_id) where currency_id is not null;
`;

const KEYS = `
create table access_scope (
  scope text primary key check (scope ~ '^prices:([*]|[a-z]+(-[a-z]+)*)$'),
  market_id smallint unique references market (id)
);
comment on table access_scope is 'Every scope that a key may hold, written by the migrate command.';

create table api_key (
  id integer primary key generated always as identity,
  public_id text not null unique check (public_id ~ '^[0-9A-Za-z]{10}$'),
  name text not null check (name <> ''),
  owner text,
  digest bytea not null check (octet_length(digest) = 32),
  digest_alg smallint not null default 1 check (digest_alg = 1),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (expires_at > created_at),
  revoked_at timestamptz,
  revoked_reason text,
  check ((revoked_at is null) = (revoked_reason is null))
);
comment on table api_key is 'API keys: the public id and SHA-256 of each, never the key.';

create table api_key_scope (
  api_key_id integer not null references api_key (id),
  scope text not null references access_scope (scope),
  primary key (api_key_id, scope)
);
comment on table api_key_scope is 'The scopes of each API key.';
`;

/** The scope that a change of each versioned table touches, given its changed rows. */
const touchedScopes: Record<string, string> = {
  series: `select distinct m.slug from (select distinct price_id from changed) c
    join price p on p.id = c.price_id join market m on m.id = p.market_id`,
  price: 'select distinct m.slug from changed c join market m on m.id = c.market_id',
  fx_rate: `select distinct 'fx:' || source from changed`,
};

const primaryKeys: Record<string, string> = {
  series: 'price_id, date',
  fx_rate: 'source, currency_id, date',
};

/** History, revision stamps, touched scopes and the reading function of one table. */
const versioned = (table: string): string => `
${
  ['series', 'fx_rate'].includes(table)
    ? ''
    : `alter table ${table} add column revision bigint not null default current_revision() references revision (number);`
}
create table ${table}_history (
  like ${table},
  revision_to bigint not null references revision (number),
  check (revision < revision_to),
  primary key (${primaryKeys[table] ?? 'id'}, revision)
);
comment on table ${table}_history is
  'Superseded rows of ${table}: what held from revision up to, but not at, revision_to.';

create trigger ${table}_revision_is_open before insert or update or delete on ${table}
  execute function check_revision();
create trigger ${table}_history_by_triggers before insert on ${table}_history for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger ${table}_insert_has_revision before insert on ${table} for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();
create trigger ${table}_stamp before update on ${table} for each row execute function stamp_revision();
create trigger ${table}_no_truncate before truncate on ${table} execute function refuse_change();
create trigger ${table}_history_frozen before update or delete on ${table}_history
  for each row execute function refuse_change();
create trigger ${table}_history_no_truncate before truncate on ${table}_history
  execute function refuse_change();

-- The columns are named by a loop at creation, so that the trigger itself stays static SQL.
do $do$
declare
  columns text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum) into columns from pg_attribute
    where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped;
  execute format($f$
    create function ${table}_keep() returns trigger language plpgsql as $$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of ${table} needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into ${table}_history (%1$s, revision_to)
        select %1$s, current_revision() from superseded where revision < current_revision();
      return null;
    end $$;
    create function ${table}_at(at bigint) returns setof ${table} language sql stable parallel safe
    begin atomic
      select %1$s from ${table} where revision <= at
      union all
      select %1$s from ${table}_history where revision <= at and revision_to > at;
    end
  $f$, columns);
end $do$;
comment on function ${table}_at(bigint) is 'The rows of ${table} exactly as they were at a revision.';

create function ${table}_touch() returns trigger language plpgsql as $$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision()
    from (${touchedScopes[table] ?? "select 'reference' where exists (select from changed)"}) as touched (scope)
  on conflict do nothing;
  return null;
end $$;
create trigger ${table}_keep_updated after update on ${table}
  referencing old table as superseded for each statement execute function ${table}_keep();
create trigger ${table}_keep_deleted after delete on ${table}
  referencing old table as superseded for each statement execute function ${table}_keep();
create trigger ${table}_touch_inserted after insert on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_updated after update on ${table}
  referencing new table as changed for each statement execute function ${table}_touch();
create trigger ${table}_touch_deleted after delete on ${table}
  referencing old table as changed for each statement execute function ${table}_touch();
`;

const RULES = `
create trigger revision_frozen before update or delete on revision for each row
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger revision_no_truncate before truncate on revision execute function refuse_change();
create trigger revision_scope_frozen before update or delete on revision_scope
  for each row execute function refuse_change();
create trigger revision_scope_by_triggers before insert on revision_scope for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger revision_scope_no_truncate before truncate on revision_scope
  execute function refuse_change();

create index series_history_superseded on series_history (price_id, revision_to, date);
create index fx_rate_history_superseded on fx_rate_history (source, revision_to);

-- Two short looks at the ends of two indexes; a look through series_at would read every point.
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
  'Day and publication of the latest point of a price at a revision.';

create function refuse_new_identity() returns trigger language plpgsql as $$
begin
  raise exception 'market, code, type, currency and unit of price % never change', old.code
    using hint = 'Publish the new terms as a new price with a code of its own.';
end $$;
create trigger price_identity_is_fixed before update on price for each row
  when ((old.id, old.market_id, old.code, old.price_type, old.currency_id, old.unit_id)
    is distinct from (new.id, new.market_id, new.code, new.price_type, new.currency_id, new.unit_id))
  execute function refuse_new_identity();

create function check_dimension_kinds() returns trigger language plpgsql as $$
declare
  wrong text;
begin
  select format('%s refers to "%s", a value of %s', c.name, v.name, v.kind) into wrong
    from (values ${DIMENSIONS.map(([column, kind]) => `('${column}', '${kind}', new.${column})`).join(', ')})
      as c (name, kind, id)
    join dimension_value v on v.id = c.id
    where v.kind <> c.kind
    limit 1;
  if wrong is not null then
    raise exception '% of price % is of the wrong kind', wrong, new.code;
  end if;
  return new;
end $$;
create trigger price_dimension_kinds before insert or update on price
  for each row execute function check_dimension_kinds();

create function refuse_new_key() returns trigger language plpgsql as $$
begin
  raise exception 'what identifies a row of % never changes', tg_table_name
    using hint = 'Remove the row and insert another.';
end $$;
create trigger dimension_value_identity_is_fixed before update on dimension_value for each row
  when ((old.id, old.uuid, old.kind, old.slug) is distinct from (new.id, new.uuid, new.kind, new.slug))
  execute function refuse_new_key();
-- A point that moved to another market would leave its old one without a new revision.
create trigger series_identity_is_fixed before update of price_id, date on series for each row
  when ((old.price_id, old.date) is distinct from (new.price_id, new.date))
  execute function refuse_new_key();
create trigger fx_rate_identity_is_fixed before update of source, currency_id, date on fx_rate
  for each row
  when ((old.source, old.currency_id, old.date) is distinct from (new.source, new.currency_id, new.date))
  execute function refuse_new_key();
-- A source carries no revision; what its rates mean must be the same in every past.
create trigger fx_source_is_kept before delete on fx_source
  for each row execute function refuse_change();
create trigger fx_source_no_truncate before truncate on fx_source execute function refuse_change();
create trigger fx_source_identity_is_fixed before update on fx_source for each row
  when ((old.slug, old.base_currency_id, old.is_sample)
    is distinct from (new.slug, new.base_currency_id, new.is_sample))
  execute function refuse_new_key();
create trigger unit_of_measure_identity_is_fixed before update on unit_of_measure for each row
  when ((old.id, old.uuid, old.slug, old.dimension, old.factor)
    is distinct from (new.id, new.uuid, new.slug, new.dimension, new.factor))
  execute function refuse_new_key();
create trigger product_identity_is_fixed before update on product for each row
  when ((old.id, old.uuid, old.market_id, old.slug)
    is distinct from (new.id, new.uuid, new.market_id, new.slug))
  execute function refuse_new_key();
create trigger currency_identity_is_fixed before update on currency for each row
  when ((old.id, old.uuid, old.iso) is distinct from (new.id, new.uuid, new.iso))
  execute function refuse_new_key();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  const parts = [REVISIONS, REFERENCE, PRICES, RATES, KEYS, ...VERSIONED.map(versioned), RULES];
  for (const part of parts) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  const tables = [
    'api_key_scope',
    'api_key',
    'access_scope',
    'load_coverage',
    ...[...VERSIONED].reverse().flatMap((table) => [`${table}_history`, table]),
    'fx_source',
    'load_batch',
    'market',
    'revision_scope',
    'revision',
    'service',
  ];
  await sql`drop function latest_point_at(integer, bigint)`.execute(db);
  for (const table of VERSIONED) {
    await sql.raw(`drop function ${table}_at(bigint)`).execute(db);
  }
  await sql.raw(`drop table ${tables.join(', ')}`).execute(db);
  const functions = [
    ...VERSIONED.flatMap((table) => [`${table}_keep()`, `${table}_touch()`]),
    'refuse_new_key()',
    'check_dimension_kinds()',
    'refuse_new_identity()',
    'stamp_revision()',
    'refuse_change()',
    'refuse_without_revision()',
    'check_revision()',
    'seal_revision()',
    'revision_as_of(timestamptz)',
    'open_revision(text)',
    'lock_revisions()',
    'current_revision()',
  ];
  await sql.raw(`drop function ${functions.join(', ')}`).execute(db);
}
