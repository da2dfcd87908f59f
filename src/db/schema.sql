-- The whole schema after all migrations, for reading: tables, functions and triggers in the order of
-- their creation. npm run generate writes this file, a test compares it, and db verify takes from it
-- what must be in force.

CREATE OR REPLACE FUNCTION public.new_commit_id()
 RETURNS text
 LANGUAGE sql
 PARALLEL SAFE
BEGIN ATOMIC
 SELECT substr(lower(translate(encode(uuid_send(gen_random_uuid()), 'base64'::text), '+/'::text, '01'::text)), 1, 6) AS substr;
END
;

comment on function new_commit_id() is 'Six random letters and digits that identify a commit.';

create table service (
  id smallint default 1 not null,
  epoch text not null,
  keys_version bigint default 0 not null,
  keys_change_id text default new_commit_id() not null,
  constraint service_pkey PRIMARY KEY (id),
  constraint service_epoch_check CHECK ((epoch ~ '^[0-9a-z]{4,12}$'::text)),
  constraint service_id_check CHECK ((id = 1))
);

comment on column service.keys_change_id is 'Identifies the last change of an API key: keys_version can repeat after a failover, this cannot.';

comment on column service.keys_version is 'Increases with every change of an API key or its scopes, in the same transaction.';

comment on table service is 'One row: the epoch, which is the prefix of every revision in the wire format, and the version of the API keys.';

create table market (
  id smallint generated always as identity not null,
  slug text not null,
  name text not null,
  constraint market_pkey PRIMARY KEY (id),
  constraint market_slug_key UNIQUE (slug),
  constraint market_slug_check CHECK ((slug ~ '^[a-z]+(-[a-z]+)*$'::text))
);

comment on table market is 'The markets of the catalog, written by the migrate command.';

create table write_lock (

);

comment on table write_lock is 'Has no rows. The transaction that writes data locks it in SHARE UPDATE EXCLUSIVE mode, which needs the right to update it.';

create table seal_lock (

);

comment on table seal_lock is 'Has no rows. Locked in SHARE UPDATE EXCLUSIVE mode from the time that a revision gets its commit time until it is visible.';

create table revision (
  number bigint not null,
  committed_at timestamp with time zone not null,
  reason text not null,
  opened_by xid8 default pg_current_xact_id() not null,
  commit_id text default new_commit_id() not null,
  constraint revision_pkey PRIMARY KEY (number),
  constraint revision_committed_at_key UNIQUE (committed_at),
  constraint revision_has_commit_id CHECK ((commit_id ~ '^[0-9a-z]{6}$'::text)),
  constraint revision_number_check CHECK ((number > 0))
);

comment on column revision.commit_id is 'Identifies the commit: its number can repeat after a failover, this cannot.';

comment on table revision is 'One row for each commit that changed data, with consecutive numbers and the commit time.';

create table revision_scope (
  scope text not null,
  revision bigint not null,
  constraint revision_scope_pkey PRIMARY KEY (scope, revision),
  constraint revision_scope_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint revision_scope_scope_check CHECK ((scope ~ '^(fx:[A-Z0-9]+|[a-z]+(-[a-z]+)*)$'::text))
);

comment on table revision_scope is 'Scopes that each revision changed: the slug of a market, reference, or fx:<source>. The greatest revision of a scope is its newest.';

CREATE INDEX revision_scope_revision ON public.revision_scope USING btree (revision);

CREATE OR REPLACE FUNCTION public.current_revision()
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select nullif(current_setting('prices.revision', true), '')::bigint $function$
;

comment on function current_revision() is 'The revision that this transaction has opened, or null.';

CREATE OR REPLACE FUNCTION public.needed_revision()
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
begin
  if current_revision() is null then
    raise exception 'a change of series needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return current_revision();
end $function$
;

comment on function needed_revision() is 'The revision that this transaction has opened. Fails with a hint if it has opened none.';

CREATE OR REPLACE FUNCTION public.lock_revisions()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  lock table write_lock in share update exclusive mode;
end $function$
;

comment on function lock_revisions() is 'Acquires the write lock until the end of the transaction.';

CREATE OR REPLACE FUNCTION public.open_revision(why text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function open_revision(text) is 'Opens the next revision in this transaction. Every change of data needs one.';

revoke execute on function open_revision(text) from public;

CREATE OR REPLACE FUNCTION public.check_revision()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  if current_revision() is not null and not exists (select from revision
      where number = current_revision() and opened_by = pg_current_xact_id_if_assigned()) then
    raise exception 'revision % was not opened by this transaction', current_revision()
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return null;
end $function$
;

comment on function check_revision() is 'Rejects a revision that another transaction has opened.';

CREATE OR REPLACE FUNCTION public.stamp_revision()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if current_revision() is null then
    raise exception 'a change of % needs a revision of its own', tg_table_name
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  new.revision := current_revision();
  return new;
end $function$
;

comment on function stamp_revision() is 'Sets the open revision in updated rows.';

CREATE OR REPLACE FUNCTION public.refuse_without_revision()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'a change of % needs a revision of its own', tg_table_name
    using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
end $function$
;

comment on function refuse_without_revision() is 'Rejects a change outside a revision.';

CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% of % is refused: what was published is kept for ever', lower(tg_op), tg_table_name;
end $function$
;

comment on function refuse_change() is 'Rejects changes of permanent rows.';

CREATE OR REPLACE FUNCTION public.refuse_after_seal()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if current_setting('prices.sealed', true) = current_revision()::text then
    raise exception 'revision % is sealed', current_revision()
      using hint = 'Leave its constraints deferred: it is sealed once, by the commit.';
  end if;
end $function$
;

comment on function refuse_after_seal() is 'Rejects a change of a revision that is already sealed.';

CREATE TRIGGER revision_frozen BEFORE DELETE OR UPDATE ON revision FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER revision_no_truncate BEFORE TRUNCATE ON revision FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER revision_scope_frozen BEFORE DELETE OR UPDATE ON revision_scope FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER revision_scope_by_triggers BEFORE INSERT ON revision_scope FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER revision_scope_no_truncate BEFORE TRUNCATE ON revision_scope FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.revision_as_of(moment timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
 SET lock_timeout TO '250ms'
AS $function$
declare
  newest timestamptz;
  tries integer := 500 * extract(epoch from current_setting('lock_timeout')::interval);
begin
  select max(committed_at) into newest from revision;
  -- Commit times increase, so an instant before the newest one is settled.
  if newest is null or moment > newest then
    if moment >= clock_timestamp() then
      return null;
    end if;
    while exists (select from pg_locks
        where relation = 'seal_lock'::regclass and mode = 'ShareUpdateExclusiveLock' and granted
          and database = (select oid from pg_database where datname = current_database())) loop
      if tries = 0 then
        raise lock_not_available using message = 'a commit before this moment does not end';
      end if;
      tries := tries - 1;
      perform pg_sleep(0.002);
    end loop;
  end if;
  return coalesce(
    (select number from revision where committed_at <= moment order by committed_at desc limit 1), 0);
end $function$
;

comment on function revision_as_of(timestamp with time zone) is 'The last revision committed at or before an instant, 0 before the first, null for the future. The result never changes.';

CREATE OR REPLACE FUNCTION public.revision_text(at bigint)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT (((s.epoch || COALESCE(( SELECT r.commit_id
            FROM revision r
           WHERE (r.number = revision_text.at)), ''::text)) || '.'::text) || revision_text.at)
    FROM service s;
END
;

comment on function revision_text(bigint) is 'A revision in the wire format.';

CREATE OR REPLACE FUNCTION public.commit_id_of(at bigint)
 RETURNS text
 LANGUAGE sql
 PARALLEL SAFE
BEGIN ATOMIC
 SELECT revision.commit_id
    FROM revision
   WHERE (revision.number = commit_id_of.at);
END
;

comment on function commit_id_of(bigint) is 'The commit id of a revision; null if it does not exist.';

CREATE OR REPLACE FUNCTION public.require_commit(at bigint, id text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
begin
  if id is null or exists (select from public.revision r where r.number = at and r.commit_id = id)
  then
    return true;
  end if;
  raise exception 'revision % is not the commit %', at, id
    using errcode = 'object_not_in_prerequisite_state',
      hint = 'The server lacks it, or took its number again.';
end $function$
;

comment on function require_commit(bigint,text) is 'True if a revision has this commit id, otherwise an error. A null id matches any commit.';

CREATE OR REPLACE FUNCTION public.refuse_new_key()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'what identifies a row of % never changes', tg_table_name
    using hint = 'Remove the row and insert another.';
end $function$
;

comment on function refuse_new_key() is 'Rejects changes of identifying columns.';

create table currency (
  id smallint generated always as identity not null,
  uuid uuid not null,
  iso text not null,
  name text not null,
  symbol text not null,
  revision bigint default current_revision() not null,
  constraint currency_pkey PRIMARY KEY (id),
  constraint currency_iso_key UNIQUE (iso),
  constraint currency_uuid_key UNIQUE (uuid),
  constraint currency_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint currency_iso_check CHECK ((iso ~ '^[A-Z]{3}$'::text)),
  constraint currency_name_check CHECK ((name <> ''::text)),
  constraint currency_symbol_check CHECK ((symbol <> ''::text))
);

comment on table currency is 'Currencies of ISO 4217, of prices and of conversions.';

create table unit_of_measure (
  id smallint generated always as identity not null,
  uuid uuid not null,
  slug text not null,
  name text not null,
  symbol text not null,
  name_key text not null,
  symbol_key text not null,
  rec20 text,
  dimension text not null,
  factor numeric not null,
  revision bigint default current_revision() not null,
  constraint unit_of_measure_pkey PRIMARY KEY (id),
  constraint unit_of_measure_id_dimension_key UNIQUE (id, dimension),
  constraint unit_of_measure_name_key_key UNIQUE (name_key),
  constraint unit_of_measure_slug_key UNIQUE (slug),
  constraint unit_of_measure_uuid_key UNIQUE (uuid),
  constraint unit_of_measure_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint unit_of_measure_dimension_check CHECK ((dimension = ANY (ARRAY['mass'::text, 'mass-dry'::text, 'mass-wet'::text, 'content'::text, 'content-dry'::text, 'energy'::text, 'count'::text, 'ratio'::text]))),
  constraint unit_of_measure_factor_check CHECK (((factor > (0)::numeric) AND (factor < '1000000000000000'::numeric))),
  constraint unit_of_measure_name_check CHECK ((name <> ''::text)),
  constraint unit_of_measure_symbol_check CHECK ((symbol <> ''::text))
);

comment on table unit_of_measure is 'Units with the exact factor to the base of their dimension (kg, kg contained, kWh, piece, percent). Units convert only within one dimension.';

create table dimension_value (
  id integer generated always as identity not null,
  uuid uuid not null,
  kind text not null,
  slug text not null,
  name text not null,
  short_name text,
  match_key text not null,
  revision bigint default current_revision() not null,
  constraint dimension_value_pkey PRIMARY KEY (id),
  constraint dimension_value_kind_match_key_key UNIQUE (kind, match_key),
  constraint dimension_value_kind_slug_key UNIQUE (kind, slug),
  constraint dimension_value_uuid_key UNIQUE (uuid),
  constraint dimension_value_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint dimension_value_frequency_closed CHECK (((kind <> 'frequency'::text) OR (short_name = ANY (ARRAY['D'::text, '2xW'::text, 'W'::text, '2W'::text, 'M'::text, 'Q'::text, 'A'::text])))),
  constraint dimension_value_kind_check CHECK ((kind = ANY (ARRAY['price-type'::text, 'price-category'::text, 'frequency'::text, 'purity'::text, 'grade'::text, 'capacity'::text, 'cell-format'::text, 'mesh-size'::text, 'sub-product'::text, 'feedstock'::text, 'incoterm'::text, 'country'::text, 'region'::text, 'trade-type'::text, 'service'::text]))),
  constraint dimension_value_match_key_check CHECK ((match_key <> ''::text)),
  constraint dimension_value_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text))),
  constraint dimension_value_price_type_closed CHECK (((kind <> 'price-type'::text) OR (slug = ANY (ARRAY['price'::text, 'payable'::text])))),
  constraint dimension_value_short_name_check CHECK ((short_name <> ''::text)),
  constraint dimension_value_slug_check CHECK ((slug ~ '^[^[:space:]]+$'::text))
);

comment on table dimension_value is 'The values of all dimensions: purities, incoterms, regions …, and price categories, types and frequencies.';

create table product (
  id integer generated always as identity not null,
  uuid uuid not null,
  market_id smallint not null,
  slug text not null,
  name text not null,
  alias text not null,
  chemical_code text not null,
  is_sustainable boolean not null,
  match_key text not null,
  revision bigint default current_revision() not null,
  constraint product_pkey PRIMARY KEY (id),
  constraint product_id_market_id_key UNIQUE (id, market_id),
  constraint product_market_id_match_key_key UNIQUE (market_id, match_key),
  constraint product_market_id_slug_key UNIQUE (market_id, slug),
  constraint product_uuid_key UNIQUE (uuid),
  constraint product_market_id_fkey FOREIGN KEY (market_id) REFERENCES market(id),
  constraint product_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint product_match_key_check CHECK ((match_key <> ''::text)),
  constraint product_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text)))
);

comment on table product is 'The products of each market.';

CREATE TRIGGER currency_identity_is_fixed BEFORE UPDATE ON currency FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.uuid IS DISTINCT FROM new.uuid OR old.iso IS DISTINCT FROM new.iso) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER unit_of_measure_identity_is_fixed BEFORE UPDATE ON unit_of_measure FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.uuid IS DISTINCT FROM new.uuid OR old.slug IS DISTINCT FROM new.slug OR old.dimension IS DISTINCT FROM new.dimension OR old.factor IS DISTINCT FROM new.factor) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER dimension_value_identity_is_fixed BEFORE UPDATE ON dimension_value FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.uuid IS DISTINCT FROM new.uuid OR old.kind IS DISTINCT FROM new.kind OR old.slug IS DISTINCT FROM new.slug) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER product_identity_is_fixed BEFORE UPDATE ON product FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.uuid IS DISTINCT FROM new.uuid OR old.market_id IS DISTINCT FROM new.market_id OR old.slug IS DISTINCT FROM new.slug) EXECUTE FUNCTION refuse_new_key();

create table price (
  id integer generated always as identity not null,
  market_id smallint not null,
  code text not null,
  code_key text not null,
  price_type text not null,
  currency_id smallint,
  unit_id smallint not null,
  unit_dimension text not null,
  product_id integer not null,
  name text not null,
  short_name text,
  specification jsonb default '[]'::jsonb not null,
  assessment_launched_at date,
  price_category_id integer not null,
  frequency_id integer not null,
  purity_id integer,
  grade_id integer,
  capacity_id integer,
  cell_format_id integer,
  mesh_size_id integer,
  sub_product_id integer,
  feedstock_id integer,
  incoterm_id integer,
  country_id integer,
  region_id integer,
  trade_type_id integer,
  service_id integer,
  revision bigint default current_revision() not null,
  observes text,
  vat_country text,
  payable_reference jsonb,
  constraint price_pkey PRIMARY KEY (id),
  constraint price_code_key UNIQUE (code),
  constraint price_code_key_key UNIQUE (code_key),
  constraint price_capacity_id_fkey FOREIGN KEY (capacity_id) REFERENCES dimension_value(id),
  constraint price_cell_format_id_fkey FOREIGN KEY (cell_format_id) REFERENCES dimension_value(id),
  constraint price_country_id_fkey FOREIGN KEY (country_id) REFERENCES dimension_value(id),
  constraint price_currency_id_fkey FOREIGN KEY (currency_id) REFERENCES currency(id),
  constraint price_feedstock_id_fkey FOREIGN KEY (feedstock_id) REFERENCES dimension_value(id),
  constraint price_frequency_id_fkey FOREIGN KEY (frequency_id) REFERENCES dimension_value(id),
  constraint price_grade_id_fkey FOREIGN KEY (grade_id) REFERENCES dimension_value(id),
  constraint price_incoterm_id_fkey FOREIGN KEY (incoterm_id) REFERENCES dimension_value(id),
  constraint price_market_id_fkey FOREIGN KEY (market_id) REFERENCES market(id),
  constraint price_mesh_size_id_fkey FOREIGN KEY (mesh_size_id) REFERENCES dimension_value(id),
  constraint price_price_category_id_fkey FOREIGN KEY (price_category_id) REFERENCES dimension_value(id),
  constraint price_product_id_market_id_fkey FOREIGN KEY (product_id, market_id) REFERENCES product(id, market_id),
  constraint price_purity_id_fkey FOREIGN KEY (purity_id) REFERENCES dimension_value(id),
  constraint price_region_id_fkey FOREIGN KEY (region_id) REFERENCES dimension_value(id),
  constraint price_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint price_service_id_fkey FOREIGN KEY (service_id) REFERENCES dimension_value(id),
  constraint price_sub_product_id_fkey FOREIGN KEY (sub_product_id) REFERENCES dimension_value(id),
  constraint price_trade_type_id_fkey FOREIGN KEY (trade_type_id) REFERENCES dimension_value(id),
  constraint price_unit_id_unit_dimension_fkey FOREIGN KEY (unit_id, unit_dimension) REFERENCES unit_of_measure(id, dimension),
  constraint price_assessment_launched_at_check CHECK (((assessment_launched_at >= '1800-01-01'::date) AND (assessment_launched_at <= '2199-12-31'::date))),
  constraint price_code_check CHECK ((code ~ '^[!-~]{1,64}$'::text)),
  constraint price_code_key_check CHECK ((code_key <> ''::text)),
  constraint price_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text))),
  constraint price_observes CHECK ((observes = ANY (ARRAY['day'::text, 'month-mean'::text, 'year-mean'::text]))),
  constraint price_payable_has_no_currency CHECK (((price_type = 'payable'::text) = (currency_id IS NULL))),
  constraint price_payable_is_percent CHECK (((price_type = 'payable'::text) = (unit_dimension = 'ratio'::text))),
  constraint price_price_type_check CHECK ((price_type = ANY (ARRAY['price'::text, 'payable'::text]))),
  constraint price_reference_of_payable CHECK (((payable_reference IS NULL) OR ((price_type = 'payable'::text) AND (jsonb_typeof(payable_reference) = 'array'::text) AND (payable_reference <> '[]'::jsonb)))),
  constraint price_short_name_check CHECK ((short_name <> ''::text)),
  constraint price_specification_check CHECK ((jsonb_typeof(specification) = 'array'::text)),
  constraint price_vat_country CHECK (((vat_country IS NULL) OR ((vat_country ~ '^[A-Z]{2}$'::text) AND (price_type = 'price'::text))))
);

comment on column price.observes is 'What a value is: of a day, or the mean of a month or a year. Null, if never stated, is a day.';

comment on column price.payable_reference is 'The prices that a payable is a percentage of, as [{"code", "side", "statistic", "element", "validFrom"}] in the order of their first days. Null if unknown.';

comment on column price.vat_country is 'Country, by its ISO 3166 code, whose value added tax the values include; null if not known to.';

comment on table price is 'One assessed price or payable. Market, code, type, currency and unit never change; the rest is versioned.';

CREATE INDEX price_market ON public.price USING btree (market_id);

CREATE OR REPLACE FUNCTION public.refuse_new_identity()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'market, code, type, currency and unit of price % never change', old.code
    using hint = 'Publish the new terms as a new price with a code of its own.';
end $function$
;

comment on function refuse_new_identity() is 'Rejects changes of the identity of a price.';

CREATE TRIGGER price_identity_is_fixed BEFORE UPDATE ON price FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.market_id IS DISTINCT FROM new.market_id OR old.code IS DISTINCT FROM new.code OR old.price_type IS DISTINCT FROM new.price_type OR old.currency_id IS DISTINCT FROM new.currency_id OR old.unit_id IS DISTINCT FROM new.unit_id) EXECUTE FUNCTION refuse_new_identity();

CREATE OR REPLACE FUNCTION public.check_dimension_kinds()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function check_dimension_kinds() is 'Rejects a price that references a value of the wrong dimension.';

CREATE TRIGGER price_dimension_kinds BEFORE INSERT OR UPDATE ON price FOR EACH ROW EXECUTE FUNCTION check_dimension_kinds();

CREATE OR REPLACE FUNCTION public.refuse_loss_of_points()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  if exists (select from series where price_id = old.id) then
    raise foreign_key_violation
      using message = format('price %s has points', old.code), table = 'series',
        hint = 'Withdraw its points first.';
  end if;
  return old;
end $function$
;

comment on function refuse_loss_of_points() is 'Rejects the removal of a price that has points.';

CREATE TRIGGER price_with_points_stays BEFORE DELETE ON price FOR EACH ROW EXECUTE FUNCTION refuse_loss_of_points();

create table load_batch (
  id integer generated always as identity not null,
  format text not null,
  file_name text not null,
  sha256 bytea not null,
  mapping_sha256 bytea,
  vintage date,
  actor text not null,
  reason text,
  status text not null,
  started_at timestamp with time zone not null,
  finished_at timestamp with time zone not null,
  revision bigint,
  prices_added integer default 0 not null,
  prices_changed integer default 0 not null,
  prices_removed integer default 0 not null,
  rows bigint not null,
  inserted bigint default 0 not null,
  unchanged bigint default 0 not null,
  corrected bigint default 0 not null,
  outdated bigint default 0 not null,
  withdrawn bigint default 0 not null,
  rejected bigint default 0 not null,
  undoes integer,
  undone_by integer,
  account text default SESSION_USER,
  constraint load_batch_pkey PRIMARY KEY (id),
  constraint load_batch_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint load_batch_undoes_fkey FOREIGN KEY (undoes) REFERENCES load_batch(id),
  constraint load_batch_undone_by_fkey FOREIGN KEY (undone_by) REFERENCES load_batch(id),
  constraint load_batch_adds_up CHECK (((status = 'refused'::text) OR (rows = (((((inserted + unchanged) + corrected) + outdated) + withdrawn) + rejected)))),
  constraint load_batch_corrected_check CHECK ((corrected >= 0)),
  constraint load_batch_inserted_check CHECK ((inserted >= 0)),
  constraint load_batch_mapping_sha256_check CHECK ((octet_length(mapping_sha256) = 32)),
  constraint load_batch_outdated_check CHECK ((outdated >= 0)),
  constraint load_batch_prices_added_check CHECK ((prices_added >= 0)),
  constraint load_batch_prices_changed_check CHECK ((prices_changed >= 0)),
  constraint load_batch_prices_removed_check CHECK ((prices_removed >= 0)),
  constraint load_batch_rejected_check CHECK ((rejected >= 0)),
  constraint load_batch_rows_check CHECK ((rows >= 0)),
  constraint load_batch_sha256_check CHECK ((octet_length(sha256) = 32)),
  constraint load_batch_status_check CHECK ((status = ANY (ARRAY['applied'::text, 'refused'::text]))),
  constraint load_batch_unchanged_check CHECK ((unchanged >= 0)),
  constraint load_batch_undo_names_a_batch CHECK (((format = 'undo'::text) = (undoes IS NOT NULL))),
  constraint load_batch_withdrawn_check CHECK ((withdrawn >= 0))
);

comment on column load_batch.account is 'The account that the session logged in as; null in rows from before this column.';

comment on column load_batch.mapping_sha256 is 'SHA-256 of the mapping of the load. The same file with another mapping is another load.';

comment on column load_batch.undone_by is 'The batch that undid this one; null while it is in force.';

comment on table load_batch is 'The ledger of loads, withdrawals and undos: rows = inserted + unchanged + corrected + outdated + withdrawn + rejected.';

CREATE INDEX load_batch_revision ON public.load_batch USING btree (revision);

CREATE UNIQUE INDEX load_batch_once ON public.load_batch USING btree (sha256, format, mapping_sha256) NULLS NOT DISTINCT WHERE ((status = 'applied'::text) AND (undone_by IS NULL) AND (rejected = 0) AND (format <> ALL (ARRAY['withdraw'::text, 'undo'::text])));

create table series (
  price_id integer not null,
  date date not null,
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamp with time zone not null,
  corrections integer default 0 not null,
  batch_id integer,
  revision bigint default needed_revision() not null,
  constraint series_pkey PRIMARY KEY (price_id, date) INCLUDE (low, mid, high, published_at, corrections, revision),
  constraint series_corrections_check CHECK ((corrections >= 0)),
  constraint series_date_check CHECK (((date >= '1800-01-01'::date) AND (date <= '2199-12-31'::date))),
  constraint series_date_check1 CHECK ((date <= (((now() AT TIME ZONE '00:00:00'::interval))::date + 1))),
  constraint series_has_15_digits CHECK (
CASE GREATEST(scale(low), scale(mid), scale(high))
    WHEN 0 THEN ((COALESCE(high, mid) < '1000000000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000000000'::numeric))
    WHEN 1 THEN ((COALESCE(high, mid) < '100000000000000'::numeric) AND (COALESCE(low, mid) > '-100000000000000'::numeric))
    WHEN 2 THEN ((COALESCE(high, mid) < '10000000000000'::numeric) AND (COALESCE(low, mid) > '-10000000000000'::numeric))
    WHEN 3 THEN ((COALESCE(high, mid) < '1000000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000000'::numeric))
    WHEN 4 THEN ((COALESCE(high, mid) < '100000000000'::numeric) AND (COALESCE(low, mid) > '-100000000000'::numeric))
    WHEN 5 THEN ((COALESCE(high, mid) < '10000000000'::numeric) AND (COALESCE(low, mid) > '-10000000000'::numeric))
    WHEN 6 THEN ((COALESCE(high, mid) < '1000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000'::numeric))
    WHEN 7 THEN ((COALESCE(high, mid) < '100000000'::numeric) AND (COALESCE(low, mid) > '-100000000'::numeric))
    WHEN 8 THEN ((COALESCE(high, mid) < '10000000'::numeric) AND (COALESCE(low, mid) > '-10000000'::numeric))
    WHEN 9 THEN ((COALESCE(high, mid) < '1000000'::numeric) AND (COALESCE(low, mid) > '-1000000'::numeric))
    WHEN 10 THEN ((COALESCE(high, mid) < '100000'::numeric) AND (COALESCE(low, mid) > '-100000'::numeric))
    ELSE false
END),
  constraint series_is_trimmed CHECK (((scale(mid) = min_scale(mid)) AND (scale(low) = min_scale(low)) AND (scale(high) = min_scale(high)))),
  constraint series_low_mid_high CHECK (((low <= mid) AND (mid <= high))),
  constraint series_published_at_check CHECK (((published_at >= '1800-01-01 00:00:00+00'::timestamp with time zone) AND (published_at <= '2199-12-31 23:59:00+00'::timestamp with time zone)))
)
with (autovacuum_vacuum_scale_factor=0.005, autovacuum_vacuum_insert_scale_factor=0.005);

comment on table series is 'The current value of each price on each date. At most 15 significant digits at the finest decimals of the point.';

CREATE TRIGGER series_identity_is_fixed BEFORE UPDATE OF price_id, date ON series FOR EACH ROW WHEN (old.price_id IS DISTINCT FROM new.price_id OR old.date IS DISTINCT FROM new.date) EXECUTE FUNCTION refuse_new_key();

create table load_coverage (
  batch_id integer not null,
  price_id integer,
  currency_id smallint,
  first_date date not null,
  last_date date not null,
  constraint load_coverage_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES load_batch(id),
  constraint load_coverage_check CHECK ((num_nonnulls(price_id, currency_id) = 1)),
  constraint load_coverage_check1 CHECK ((first_date <= last_date))
);

comment on table load_coverage is 'Prices and currencies of a batch with a vintage, with ranges of dates. An older vintage never overwrites these.';

CREATE INDEX load_coverage_price ON public.load_coverage USING btree (price_id, batch_id) WHERE (price_id IS NOT NULL);

CREATE INDEX load_coverage_currency ON public.load_coverage USING btree (currency_id, batch_id) WHERE (currency_id IS NOT NULL);

CREATE OR REPLACE FUNCTION public.jumps(one numeric, other numeric, factor numeric)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN ((one IS NULL) OR (other IS NULL) OR (one = other)) THEN false WHEN (sign(one) <> sign(other)) THEN true ELSE (GREATEST(abs(one), abs(other)) > (factor * LEAST(abs(one), abs(other)))) END
;

comment on function jumps(numeric,numeric,numeric) is 'True if two values differ by more than a factor. Zero, or the opposite sign, always differs by more.';

CREATE OR REPLACE FUNCTION public.value_jumps(one numeric[], other numeric[], factor numeric)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE(((abs(((one)[4] - (other)[4])) <= (400)::numeric) AND (jumps((one)[2], (other)[2], factor) OR jumps((one)[1], (other)[1], factor) OR jumps((one)[3], (other)[3], factor))), false)
;

comment on function value_jumps(numeric[],numeric[],numeric) is 'True if low, mid or high of two values {low, mid, high, day} jump. Values more than 400 days apart never jump.';

CREATE OR REPLACE FUNCTION public.take_value(taken numeric[], candidate numeric[], otherwise numeric[], is_fixed boolean, factor numeric)
 RETURNS numeric[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (is_fixed OR (NOT value_jumps(taken, candidate, factor))) THEN candidate ELSE COALESCE(otherwise, taken) END
;

comment on function take_value(numeric[],numeric[],numeric[],boolean,numeric) is 'State transition of last_taken: accepts the next value if it is fixed or does not jump.';

create aggregate last_taken(numeric[],numeric[],boolean,numeric) (sfunc = take_value, stype = numeric[], parallel = safe);

comment on aggregate last_taken(numeric[],numeric[],boolean,numeric) is 'The last accepted value of a series: a value that jumps from the last accepted one is skipped, and the value that it would replace is accepted instead.';

create table fx_source (
  slug text not null,
  name text not null,
  base_currency_id smallint not null,
  is_sample boolean default false not null,
  constraint fx_source_pkey PRIMARY KEY (slug),
  constraint fx_source_base_currency_id_fkey FOREIGN KEY (base_currency_id) REFERENCES currency(id),
  constraint fx_source_slug_check CHECK ((slug ~ '^[A-Z0-9]+$'::text))
);

comment on table fx_source is 'Publishers of exchange rates, with their base currency.';

create table fx_rate (
  source text not null,
  currency_id smallint not null,
  date date not null,
  rate numeric not null,
  batch_id integer,
  revision bigint default current_revision() not null,
  constraint fx_rate_pkey PRIMARY KEY (source, currency_id, date),
  constraint fx_rate_currency_id_fkey FOREIGN KEY (currency_id) REFERENCES currency(id),
  constraint fx_rate_source_fkey FOREIGN KEY (source) REFERENCES fx_source(slug),
  constraint fx_rate_date_check CHECK (((date >= '1800-01-01'::date) AND (date <= '2199-12-31'::date))),
  constraint fx_rate_date_check1 CHECK ((date <= (((now() AT TIME ZONE 'UTC'::text))::date + 1))),
  constraint fx_rate_has_15_digits CHECK ((rate < ('{1000000000000000,100000000000000,10000000000000,1000000000000,100000000000,10000000000,1000000000,100000000,10000000,1000000,100000}'::numeric[])[(1 + scale(rate))])),
  constraint fx_rate_is_a_positive_number CHECK (((COALESCE(scale(rate), 99) <= 10) AND (rate > (0)::numeric))),
  constraint fx_rate_is_trimmed CHECK ((scale(rate) = min_scale(rate)))
);

comment on table fx_rate is 'Exchange rates as published: units of the currency per unit of the base currency of the source.';

CREATE TRIGGER fx_source_is_kept BEFORE DELETE ON fx_source FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER fx_source_no_truncate BEFORE TRUNCATE ON fx_source FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER fx_source_identity_is_fixed BEFORE UPDATE ON fx_source FOR EACH ROW WHEN (old.slug IS DISTINCT FROM new.slug OR old.base_currency_id IS DISTINCT FROM new.base_currency_id OR old.is_sample IS DISTINCT FROM new.is_sample) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER fx_rate_identity_is_fixed BEFORE UPDATE OF source, currency_id, date ON fx_rate FOR EACH ROW WHEN (old.source IS DISTINCT FROM new.source OR old.currency_id IS DISTINCT FROM new.currency_id OR old.date IS DISTINCT FROM new.date) EXECUTE FUNCTION refuse_new_key();

create table currency_history (
  id smallint not null,
  uuid uuid not null,
  iso text not null,
  name text not null,
  symbol text not null,
  revision bigint not null,
  revision_to bigint not null,
  constraint currency_history_pkey PRIMARY KEY (id, revision),
  constraint currency_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint currency_history_check CHECK ((revision < revision_to)),
  constraint currency_iso_check CHECK ((iso ~ '^[A-Z]{3}$'::text)),
  constraint currency_name_check CHECK ((name <> ''::text)),
  constraint currency_symbol_check CHECK ((symbol <> ''::text))
);

comment on table currency_history is 'Superseded rows of currency: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER currency_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON currency FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER currency_history_by_triggers BEFORE INSERT ON currency_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER currency_insert_has_revision BEFORE INSERT ON currency FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER currency_stamp BEFORE UPDATE ON currency FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER currency_no_truncate BEFORE TRUNCATE ON currency FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER currency_history_frozen BEFORE DELETE OR UPDATE ON currency_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER currency_history_no_truncate BEFORE TRUNCATE ON currency_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.currency_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of currency needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into currency_history (id, uuid, iso, name, symbol, revision, revision_to)
        select id, uuid, iso, name, symbol, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function currency_keep() is 'Copies superseded rows of currency to its history.';

revoke execute on function currency_keep() from public;

CREATE OR REPLACE FUNCTION public.currency_at(at bigint)
 RETURNS TABLE(id smallint, uuid uuid, iso text, name text, symbol text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT currency.id,
     currency.uuid,
     currency.iso,
     currency.name,
     currency.symbol,
     currency.revision
    FROM currency
   WHERE (currency.revision <= currency_at.at)
 UNION ALL
  SELECT currency_history.id,
     currency_history.uuid,
     currency_history.iso,
     currency_history.name,
     currency_history.symbol,
     currency_history.revision
    FROM currency_history
   WHERE ((currency_history.revision <= currency_at.at) AND (currency_history.revision_to > currency_at.at));
END
;

comment on function currency_at(bigint) is 'The rows of currency at a revision.';

CREATE TRIGGER currency_keep_updated AFTER UPDATE ON currency REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION currency_keep();

CREATE TRIGGER currency_keep_deleted AFTER DELETE ON currency REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION currency_keep();

create table unit_of_measure_history (
  id smallint not null,
  uuid uuid not null,
  slug text not null,
  name text not null,
  symbol text not null,
  name_key text not null,
  symbol_key text not null,
  rec20 text,
  dimension text not null,
  factor numeric not null,
  revision bigint not null,
  revision_to bigint not null,
  constraint unit_of_measure_history_pkey PRIMARY KEY (id, revision),
  constraint unit_of_measure_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint unit_of_measure_dimension_check CHECK ((dimension = ANY (ARRAY['mass'::text, 'mass-dry'::text, 'mass-wet'::text, 'content'::text, 'content-dry'::text, 'energy'::text, 'count'::text, 'ratio'::text]))),
  constraint unit_of_measure_factor_check CHECK (((factor > (0)::numeric) AND (factor < '1000000000000000'::numeric))),
  constraint unit_of_measure_history_check CHECK ((revision < revision_to)),
  constraint unit_of_measure_name_check CHECK ((name <> ''::text)),
  constraint unit_of_measure_symbol_check CHECK ((symbol <> ''::text))
);

comment on table unit_of_measure_history is 'Superseded rows of unit_of_measure: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER unit_of_measure_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON unit_of_measure FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER unit_of_measure_history_by_triggers BEFORE INSERT ON unit_of_measure_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER unit_of_measure_insert_has_revision BEFORE INSERT ON unit_of_measure FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER unit_of_measure_stamp BEFORE UPDATE ON unit_of_measure FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER unit_of_measure_no_truncate BEFORE TRUNCATE ON unit_of_measure FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER unit_of_measure_history_frozen BEFORE DELETE OR UPDATE ON unit_of_measure_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER unit_of_measure_history_no_truncate BEFORE TRUNCATE ON unit_of_measure_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.unit_of_measure_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of unit_of_measure needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into unit_of_measure_history (id, uuid, slug, name, symbol, name_key, symbol_key, rec20, dimension, factor, revision, revision_to)
        select id, uuid, slug, name, symbol, name_key, symbol_key, rec20, dimension, factor, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function unit_of_measure_keep() is 'Copies superseded rows of unit_of_measure to its history.';

revoke execute on function unit_of_measure_keep() from public;

CREATE OR REPLACE FUNCTION public.unit_of_measure_at(at bigint)
 RETURNS TABLE(id smallint, uuid uuid, slug text, name text, symbol text, name_key text, symbol_key text, rec20 text, dimension text, factor numeric, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT unit_of_measure.id,
     unit_of_measure.uuid,
     unit_of_measure.slug,
     unit_of_measure.name,
     unit_of_measure.symbol,
     unit_of_measure.name_key,
     unit_of_measure.symbol_key,
     unit_of_measure.rec20,
     unit_of_measure.dimension,
     unit_of_measure.factor,
     unit_of_measure.revision
    FROM unit_of_measure
   WHERE (unit_of_measure.revision <= unit_of_measure_at.at)
 UNION ALL
  SELECT unit_of_measure_history.id,
     unit_of_measure_history.uuid,
     unit_of_measure_history.slug,
     unit_of_measure_history.name,
     unit_of_measure_history.symbol,
     unit_of_measure_history.name_key,
     unit_of_measure_history.symbol_key,
     unit_of_measure_history.rec20,
     unit_of_measure_history.dimension,
     unit_of_measure_history.factor,
     unit_of_measure_history.revision
    FROM unit_of_measure_history
   WHERE ((unit_of_measure_history.revision <= unit_of_measure_at.at) AND (unit_of_measure_history.revision_to > unit_of_measure_at.at));
END
;

comment on function unit_of_measure_at(bigint) is 'The rows of unit_of_measure at a revision.';

CREATE TRIGGER unit_of_measure_keep_updated AFTER UPDATE ON unit_of_measure REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION unit_of_measure_keep();

CREATE TRIGGER unit_of_measure_keep_deleted AFTER DELETE ON unit_of_measure REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION unit_of_measure_keep();

create table dimension_value_history (
  id integer not null,
  uuid uuid not null,
  kind text not null,
  slug text not null,
  name text not null,
  short_name text,
  match_key text not null,
  revision bigint not null,
  revision_to bigint not null,
  constraint dimension_value_history_pkey PRIMARY KEY (id, revision),
  constraint dimension_value_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint dimension_value_frequency_closed CHECK (((kind <> 'frequency'::text) OR (short_name = ANY (ARRAY['D'::text, '2xW'::text, 'W'::text, '2W'::text, 'M'::text, 'Q'::text, 'A'::text])))),
  constraint dimension_value_history_check CHECK ((revision < revision_to)),
  constraint dimension_value_kind_check CHECK ((kind = ANY (ARRAY['price-type'::text, 'price-category'::text, 'frequency'::text, 'purity'::text, 'grade'::text, 'capacity'::text, 'cell-format'::text, 'mesh-size'::text, 'sub-product'::text, 'feedstock'::text, 'incoterm'::text, 'country'::text, 'region'::text, 'trade-type'::text, 'service'::text]))),
  constraint dimension_value_match_key_check CHECK ((match_key <> ''::text)),
  constraint dimension_value_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text))),
  constraint dimension_value_price_type_closed CHECK (((kind <> 'price-type'::text) OR (slug = ANY (ARRAY['price'::text, 'payable'::text])))),
  constraint dimension_value_short_name_check CHECK ((short_name <> ''::text)),
  constraint dimension_value_slug_check CHECK ((slug ~ '^[^[:space:]]+$'::text))
);

comment on table dimension_value_history is 'Superseded rows of dimension_value: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER dimension_value_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON dimension_value FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER dimension_value_history_by_triggers BEFORE INSERT ON dimension_value_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER dimension_value_insert_has_revision BEFORE INSERT ON dimension_value FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER dimension_value_stamp BEFORE UPDATE ON dimension_value FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER dimension_value_no_truncate BEFORE TRUNCATE ON dimension_value FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER dimension_value_history_frozen BEFORE DELETE OR UPDATE ON dimension_value_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER dimension_value_history_no_truncate BEFORE TRUNCATE ON dimension_value_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.dimension_value_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of dimension_value needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into dimension_value_history (id, uuid, kind, slug, name, short_name, match_key, revision, revision_to)
        select id, uuid, kind, slug, name, short_name, match_key, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function dimension_value_keep() is 'Copies superseded rows of dimension_value to its history.';

revoke execute on function dimension_value_keep() from public;

CREATE OR REPLACE FUNCTION public.dimension_value_at(at bigint)
 RETURNS TABLE(id integer, uuid uuid, kind text, slug text, name text, short_name text, match_key text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT dimension_value.id,
     dimension_value.uuid,
     dimension_value.kind,
     dimension_value.slug,
     dimension_value.name,
     dimension_value.short_name,
     dimension_value.match_key,
     dimension_value.revision
    FROM dimension_value
   WHERE (dimension_value.revision <= dimension_value_at.at)
 UNION ALL
  SELECT dimension_value_history.id,
     dimension_value_history.uuid,
     dimension_value_history.kind,
     dimension_value_history.slug,
     dimension_value_history.name,
     dimension_value_history.short_name,
     dimension_value_history.match_key,
     dimension_value_history.revision
    FROM dimension_value_history
   WHERE ((dimension_value_history.revision <= dimension_value_at.at) AND (dimension_value_history.revision_to > dimension_value_at.at));
END
;

comment on function dimension_value_at(bigint) is 'The rows of dimension_value at a revision.';

CREATE TRIGGER dimension_value_keep_updated AFTER UPDATE ON dimension_value REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION dimension_value_keep();

CREATE TRIGGER dimension_value_keep_deleted AFTER DELETE ON dimension_value REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION dimension_value_keep();

create table product_history (
  id integer not null,
  uuid uuid not null,
  market_id smallint not null,
  slug text not null,
  name text not null,
  alias text not null,
  chemical_code text not null,
  is_sustainable boolean not null,
  match_key text not null,
  revision bigint not null,
  revision_to bigint not null,
  constraint product_history_pkey PRIMARY KEY (id, revision),
  constraint product_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint product_history_check CHECK ((revision < revision_to)),
  constraint product_match_key_check CHECK ((match_key <> ''::text)),
  constraint product_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text)))
);

comment on table product_history is 'Superseded rows of product: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER product_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON product FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER product_history_by_triggers BEFORE INSERT ON product_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER product_insert_has_revision BEFORE INSERT ON product FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER product_stamp BEFORE UPDATE ON product FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER product_no_truncate BEFORE TRUNCATE ON product FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER product_history_frozen BEFORE DELETE OR UPDATE ON product_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER product_history_no_truncate BEFORE TRUNCATE ON product_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.product_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of product needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into product_history (id, uuid, market_id, slug, name, alias, chemical_code, is_sustainable, match_key, revision, revision_to)
        select id, uuid, market_id, slug, name, alias, chemical_code, is_sustainable, match_key, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function product_keep() is 'Copies superseded rows of product to its history.';

revoke execute on function product_keep() from public;

CREATE OR REPLACE FUNCTION public.product_at(at bigint)
 RETURNS TABLE(id integer, uuid uuid, market_id smallint, slug text, name text, alias text, chemical_code text, is_sustainable boolean, match_key text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT product.id,
     product.uuid,
     product.market_id,
     product.slug,
     product.name,
     product.alias,
     product.chemical_code,
     product.is_sustainable,
     product.match_key,
     product.revision
    FROM product
   WHERE (product.revision <= product_at.at)
 UNION ALL
  SELECT product_history.id,
     product_history.uuid,
     product_history.market_id,
     product_history.slug,
     product_history.name,
     product_history.alias,
     product_history.chemical_code,
     product_history.is_sustainable,
     product_history.match_key,
     product_history.revision
    FROM product_history
   WHERE ((product_history.revision <= product_at.at) AND (product_history.revision_to > product_at.at));
END
;

comment on function product_at(bigint) is 'The rows of product at a revision.';

CREATE TRIGGER product_keep_updated AFTER UPDATE ON product REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION product_keep();

CREATE TRIGGER product_keep_deleted AFTER DELETE ON product REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION product_keep();

create table price_history (
  id integer not null,
  market_id smallint not null,
  code text not null,
  code_key text not null,
  price_type text not null,
  currency_id smallint,
  unit_id smallint not null,
  unit_dimension text not null,
  product_id integer not null,
  name text not null,
  short_name text,
  specification jsonb not null,
  assessment_launched_at date,
  price_category_id integer not null,
  frequency_id integer not null,
  purity_id integer,
  grade_id integer,
  capacity_id integer,
  cell_format_id integer,
  mesh_size_id integer,
  sub_product_id integer,
  feedstock_id integer,
  incoterm_id integer,
  country_id integer,
  region_id integer,
  trade_type_id integer,
  service_id integer,
  revision bigint not null,
  revision_to bigint not null,
  observes text,
  vat_country text,
  payable_reference jsonb,
  constraint price_history_pkey PRIMARY KEY (id, revision),
  constraint price_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint price_assessment_launched_at_check CHECK (((assessment_launched_at >= '1800-01-01'::date) AND (assessment_launched_at <= '2199-12-31'::date))),
  constraint price_code_check CHECK ((code ~ '^[!-~]{1,64}$'::text)),
  constraint price_code_key_check CHECK ((code_key <> ''::text)),
  constraint price_history_check CHECK ((revision < revision_to)),
  constraint price_history_observes CHECK ((observes = ANY (ARRAY['day'::text, 'month-mean'::text, 'year-mean'::text]))),
  constraint price_history_reference_of_payable CHECK (((payable_reference IS NULL) OR ((price_type = 'payable'::text) AND (jsonb_typeof(payable_reference) = 'array'::text) AND (payable_reference <> '[]'::jsonb)))),
  constraint price_history_vat_country CHECK (((vat_country IS NULL) OR ((vat_country ~ '^[A-Z]{2}$'::text) AND (price_type = 'price'::text)))),
  constraint price_name_check CHECK (((name <> ''::text) AND (name !~ '[[:cntrl:]]'::text))),
  constraint price_payable_has_no_currency CHECK (((price_type = 'payable'::text) = (currency_id IS NULL))),
  constraint price_payable_is_percent CHECK (((price_type = 'payable'::text) = (unit_dimension = 'ratio'::text))),
  constraint price_price_type_check CHECK ((price_type = ANY (ARRAY['price'::text, 'payable'::text]))),
  constraint price_short_name_check CHECK ((short_name <> ''::text)),
  constraint price_specification_check CHECK ((jsonb_typeof(specification) = 'array'::text))
);

comment on table price_history is 'Superseded rows of price: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER price_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON price FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER price_history_by_triggers BEFORE INSERT ON price_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_insert_has_revision BEFORE INSERT ON price FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER price_stamp BEFORE UPDATE ON price FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER price_no_truncate BEFORE TRUNCATE ON price FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_history_frozen BEFORE DELETE OR UPDATE ON price_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_history_no_truncate BEFORE TRUNCATE ON price_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.price_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of price needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into price_history (id, market_id, code, code_key, price_type, currency_id, unit_id, unit_dimension, product_id, name, short_name, specification, assessment_launched_at, price_category_id, frequency_id, purity_id, grade_id, capacity_id, cell_format_id, mesh_size_id, sub_product_id, feedstock_id, incoterm_id, country_id, region_id, trade_type_id, service_id, revision, observes, vat_country, payable_reference, revision_to)
        select id, market_id, code, code_key, price_type, currency_id, unit_id, unit_dimension, product_id, name, short_name, specification, assessment_launched_at, price_category_id, frequency_id, purity_id, grade_id, capacity_id, cell_format_id, mesh_size_id, sub_product_id, feedstock_id, incoterm_id, country_id, region_id, trade_type_id, service_id, revision, observes, vat_country, payable_reference, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function price_keep() is 'Copies superseded rows of price to its history.';

revoke execute on function price_keep() from public;

CREATE OR REPLACE FUNCTION public.price_at(at bigint)
 RETURNS TABLE(id integer, market_id smallint, code text, code_key text, price_type text, currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text, short_name text, specification jsonb, assessment_launched_at date, price_category_id integer, frequency_id integer, purity_id integer, grade_id integer, capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer, feedstock_id integer, incoterm_id integer, country_id integer, region_id integer, trade_type_id integer, service_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT price.id,
     price.market_id,
     price.code,
     price.code_key,
     price.price_type,
     price.currency_id,
     price.unit_id,
     price.unit_dimension,
     price.product_id,
     price.name,
     price.short_name,
     price.specification,
     price.assessment_launched_at,
     price.price_category_id,
     price.frequency_id,
     price.purity_id,
     price.grade_id,
     price.capacity_id,
     price.cell_format_id,
     price.mesh_size_id,
     price.sub_product_id,
     price.feedstock_id,
     price.incoterm_id,
     price.country_id,
     price.region_id,
     price.trade_type_id,
     price.service_id,
     price.revision
    FROM price
   WHERE (price.revision <= price_at.at)
 UNION ALL
  SELECT price_history.id,
     price_history.market_id,
     price_history.code,
     price_history.code_key,
     price_history.price_type,
     price_history.currency_id,
     price_history.unit_id,
     price_history.unit_dimension,
     price_history.product_id,
     price_history.name,
     price_history.short_name,
     price_history.specification,
     price_history.assessment_launched_at,
     price_history.price_category_id,
     price_history.frequency_id,
     price_history.purity_id,
     price_history.grade_id,
     price_history.capacity_id,
     price_history.cell_format_id,
     price_history.mesh_size_id,
     price_history.sub_product_id,
     price_history.feedstock_id,
     price_history.incoterm_id,
     price_history.country_id,
     price_history.region_id,
     price_history.trade_type_id,
     price_history.service_id,
     price_history.revision
    FROM price_history
   WHERE ((price_history.revision <= price_at.at) AND (price_history.revision_to > price_at.at));
END
;

comment on function price_at(bigint) is 'The rows of price at a revision.';

CREATE TRIGGER price_keep_updated AFTER UPDATE ON price REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION price_keep();

CREATE TRIGGER price_keep_deleted AFTER DELETE ON price REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION price_keep();

create table series_history (
  price_id integer not null,
  date date not null,
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamp with time zone not null,
  corrections integer not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint series_history_pkey PRIMARY KEY (price_id, date, revision),
  constraint series_corrections_check CHECK ((corrections >= 0)),
  constraint series_date_check CHECK (((date >= '1800-01-01'::date) AND (date <= '2199-12-31'::date))),
  constraint series_date_check1 CHECK ((date <= (((now() AT TIME ZONE '00:00:00'::interval))::date + 1))),
  constraint series_has_15_digits CHECK (
CASE GREATEST(scale(low), scale(mid), scale(high))
    WHEN 0 THEN ((COALESCE(high, mid) < '1000000000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000000000'::numeric))
    WHEN 1 THEN ((COALESCE(high, mid) < '100000000000000'::numeric) AND (COALESCE(low, mid) > '-100000000000000'::numeric))
    WHEN 2 THEN ((COALESCE(high, mid) < '10000000000000'::numeric) AND (COALESCE(low, mid) > '-10000000000000'::numeric))
    WHEN 3 THEN ((COALESCE(high, mid) < '1000000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000000'::numeric))
    WHEN 4 THEN ((COALESCE(high, mid) < '100000000000'::numeric) AND (COALESCE(low, mid) > '-100000000000'::numeric))
    WHEN 5 THEN ((COALESCE(high, mid) < '10000000000'::numeric) AND (COALESCE(low, mid) > '-10000000000'::numeric))
    WHEN 6 THEN ((COALESCE(high, mid) < '1000000000'::numeric) AND (COALESCE(low, mid) > '-1000000000'::numeric))
    WHEN 7 THEN ((COALESCE(high, mid) < '100000000'::numeric) AND (COALESCE(low, mid) > '-100000000'::numeric))
    WHEN 8 THEN ((COALESCE(high, mid) < '10000000'::numeric) AND (COALESCE(low, mid) > '-10000000'::numeric))
    WHEN 9 THEN ((COALESCE(high, mid) < '1000000'::numeric) AND (COALESCE(low, mid) > '-1000000'::numeric))
    WHEN 10 THEN ((COALESCE(high, mid) < '100000'::numeric) AND (COALESCE(low, mid) > '-100000'::numeric))
    ELSE false
END),
  constraint series_history_check CHECK ((revision < revision_to)),
  constraint series_is_trimmed CHECK (((scale(mid) = min_scale(mid)) AND (scale(low) = min_scale(low)) AND (scale(high) = min_scale(high)))),
  constraint series_low_mid_high CHECK (((low <= mid) AND (mid <= high))),
  constraint series_published_at_check CHECK (((published_at >= '1800-01-01 00:00:00+00'::timestamp with time zone) AND (published_at <= '2199-12-31 23:59:00+00'::timestamp with time zone)))
);

comment on table series_history is 'Superseded rows of series: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER series_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON series FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER series_history_by_triggers BEFORE INSERT ON series_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER series_stamp BEFORE UPDATE ON series FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER series_no_truncate BEFORE TRUNCATE ON series FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER series_history_frozen BEFORE DELETE OR UPDATE ON series_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER series_history_no_truncate BEFORE TRUNCATE ON series_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.series_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of series needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into series_history (price_id, date, low, mid, high, published_at, corrections, batch_id, revision, revision_to)
        select price_id, date, low, mid, high, published_at, corrections, batch_id, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function series_keep() is 'Copies superseded rows of series to its history.';

revoke execute on function series_keep() from public;

CREATE OR REPLACE FUNCTION public.series_at(at bigint)
 RETURNS TABLE(price_id integer, date date, low numeric, mid numeric, high numeric, published_at timestamp with time zone, corrections integer, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT series.price_id,
     series.date,
     series.low,
     series.mid,
     series.high,
     series.published_at,
     series.corrections,
     series.batch_id,
     series.revision
    FROM series
   WHERE (series.revision <= series_at.at)
 UNION ALL
  SELECT series_history.price_id,
     series_history.date,
     series_history.low,
     series_history.mid,
     series_history.high,
     series_history.published_at,
     series_history.corrections,
     series_history.batch_id,
     series_history.revision
    FROM series_history
   WHERE ((series_history.revision <= series_at.at) AND (series_history.revision_to > series_at.at));
END
;

comment on function series_at(bigint) is 'The rows of series at a revision.';

CREATE TRIGGER series_keep_updated AFTER UPDATE ON series REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION series_keep();

CREATE TRIGGER series_keep_deleted AFTER DELETE ON series REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION series_keep();

create table fx_rate_history (
  source text not null,
  currency_id smallint not null,
  date date not null,
  rate numeric not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint fx_rate_history_pkey PRIMARY KEY (source, currency_id, date, revision),
  constraint fx_rate_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint fx_rate_date_check CHECK (((date >= '1800-01-01'::date) AND (date <= '2199-12-31'::date))),
  constraint fx_rate_date_check1 CHECK ((date <= (((now() AT TIME ZONE 'UTC'::text))::date + 1))),
  constraint fx_rate_has_15_digits CHECK ((rate < ('{1000000000000000,100000000000000,10000000000000,1000000000000,100000000000,10000000000,1000000000,100000000,10000000,1000000,100000}'::numeric[])[(1 + scale(rate))])),
  constraint fx_rate_history_check CHECK ((revision < revision_to)),
  constraint fx_rate_is_a_positive_number CHECK (((COALESCE(scale(rate), 99) <= 10) AND (rate > (0)::numeric))),
  constraint fx_rate_is_trimmed CHECK ((scale(rate) = min_scale(rate)))
);

comment on table fx_rate_history is 'Superseded rows of fx_rate: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER fx_rate_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON fx_rate FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER fx_rate_history_by_triggers BEFORE INSERT ON fx_rate_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER fx_rate_insert_has_revision BEFORE INSERT ON fx_rate FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER fx_rate_stamp BEFORE UPDATE ON fx_rate FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER fx_rate_no_truncate BEFORE TRUNCATE ON fx_rate FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER fx_rate_history_frozen BEFORE DELETE OR UPDATE ON fx_rate_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER fx_rate_history_no_truncate BEFORE TRUNCATE ON fx_rate_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.fx_rate_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of fx_rate needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into fx_rate_history (source, currency_id, date, rate, batch_id, revision, revision_to)
        select source, currency_id, date, rate, batch_id, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function fx_rate_keep() is 'Copies superseded rows of fx_rate to its history.';

revoke execute on function fx_rate_keep() from public;

CREATE OR REPLACE FUNCTION public.fx_rate_at(at bigint)
 RETURNS TABLE(source text, currency_id smallint, date date, rate numeric, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT fx_rate.source,
     fx_rate.currency_id,
     fx_rate.date,
     fx_rate.rate,
     fx_rate.batch_id,
     fx_rate.revision
    FROM fx_rate
   WHERE (fx_rate.revision <= fx_rate_at.at)
 UNION ALL
  SELECT fx_rate_history.source,
     fx_rate_history.currency_id,
     fx_rate_history.date,
     fx_rate_history.rate,
     fx_rate_history.batch_id,
     fx_rate_history.revision
    FROM fx_rate_history
   WHERE ((fx_rate_history.revision <= fx_rate_at.at) AND (fx_rate_history.revision_to > fx_rate_at.at));
END
;

comment on function fx_rate_at(bigint) is 'The rows of fx_rate at a revision.';

CREATE TRIGGER fx_rate_keep_updated AFTER UPDATE ON fx_rate REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION fx_rate_keep();

CREATE TRIGGER fx_rate_keep_deleted AFTER DELETE ON fx_rate REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION fx_rate_keep();

CREATE INDEX series_history_superseded ON public.series_history USING btree (price_id, revision_to, date);

CREATE INDEX fx_rate_history_superseded ON public.fx_rate_history USING btree (source, revision_to);

CREATE OR REPLACE FUNCTION public.latest_point_at(of_price integer, at bigint)
 RETURNS TABLE(date date, published_at timestamp with time zone)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT newest.date,
     newest.published_at
    FROM (( SELECT s.date,
             s.published_at
            FROM series s
           WHERE ((s.price_id = latest_point_at.of_price) AND (s.revision <= latest_point_at.at))
           ORDER BY s.date DESC
          LIMIT 1)
         UNION ALL
         ( SELECT h.date,
             h.published_at
            FROM series_history h
           WHERE ((h.price_id = latest_point_at.of_price) AND (h.revision <= latest_point_at.at) AND (h.revision_to > latest_point_at.at))
           ORDER BY h.date DESC
          LIMIT 1)) newest
   ORDER BY newest.date DESC
  LIMIT 1;
END
;

comment on function latest_point_at(integer,bigint) is 'Date and publication time of the latest point of a price at a revision.';

create table change_segment (
  revision bigint not null,
  price_id integer not null,
  market_id smallint not null,
  first_seq bigint,
  price_changes smallint default 0 not null,
  points integer default 0 not null,
  first_date date,
  last_date date,
  constraint change_segment_pkey PRIMARY KEY (revision, price_id),
  constraint change_segment_first_seq_key UNIQUE (first_seq),
  constraint change_segment_market_id_fkey FOREIGN KEY (market_id) REFERENCES market(id),
  constraint change_segment_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint change_segment_has_range CHECK ((((first_date IS NULL) = (last_date IS NULL)) AND (first_date <= last_date))),
  constraint change_segment_points_check CHECK ((points >= 0)),
  constraint change_segment_points_have_range CHECK (((points = 0) OR (first_date IS NOT NULL))),
  constraint change_segment_price_changes_check CHECK ((price_changes = ANY (ARRAY[0, 1])))
);

comment on table change_segment is 'The changes of one price in one revision: numbers first_seq … first_seq + price_changes + points - 1, the change of the price itself first, then its points by date.';

CREATE INDEX change_segment_price ON public.change_segment USING btree (price_id, revision);

CREATE INDEX change_segment_market ON public.change_segment USING btree (market_id, first_seq);

CREATE OR REPLACE FUNCTION public.set_market_of_segment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.market_id := coalesce(
    (select p.market_id from price p where p.id = new.price_id),
    (select h.market_id from price_history h where h.id = new.price_id limit 1),
    -- A price inserted and deleted in one revision is in neither, but has a segment.
    (select s.market_id from change_segment s
      where s.revision = new.revision and s.price_id = new.price_id));
  return new;
end $function$
;

comment on function set_market_of_segment() is 'Sets the market of a segment from its price.';

CREATE TRIGGER change_segment_market BEFORE INSERT ON change_segment FOR EACH ROW EXECUTE FUNCTION set_market_of_segment();

CREATE TRIGGER change_segment_frozen BEFORE INSERT OR DELETE OR UPDATE ON change_segment FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER change_segment_no_truncate BEFORE TRUNCATE ON change_segment FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.count_changed_points(of_price integer, at bigint, first date, last date)
 RETURNS integer
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT ((( SELECT count(*) AS count
            FROM series s
           WHERE ((s.price_id = count_changed_points.of_price) AND ((s.date >= count_changed_points.first) AND (s.date <= count_changed_points.last)) AND (s.revision = count_changed_points.at))) + ( SELECT count(*) AS count
            FROM series_history h
           WHERE ((h.price_id = count_changed_points.of_price) AND (h.revision_to = count_changed_points.at) AND ((h.date >= count_changed_points.first) AND (h.date <= count_changed_points.last)) AND (NOT (EXISTS ( SELECT
                    FROM series s
                   WHERE ((s.price_id = count_changed_points.of_price) AND (s.date = h.date) AND (s.revision = count_changed_points.at)))))))))::integer AS int4;
END
;

comment on function count_changed_points(integer,bigint,date,date) is 'Number of points of a price that a revision added, corrected or withdrew between two dates.';

CREATE OR REPLACE FUNCTION public.count_price_changes(of_price integer, at bigint)
 RETURNS smallint
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT ((((EXISTS ( SELECT
            FROM price p
           WHERE ((p.id = count_price_changes.of_price) AND (p.revision = count_price_changes.at)))) OR (EXISTS ( SELECT
            FROM price_history h
           WHERE ((h.id = count_price_changes.of_price) AND (h.revision_to = count_price_changes.at))))))::integer)::smallint AS int2;
END
;

comment on function count_price_changes(integer,bigint) is '1 if a revision changed the attributes of a price, otherwise 0.';

CREATE OR REPLACE FUNCTION public.number_changes(at bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function number_changes(bigint) is 'Numbers the changes of a revision after those of earlier revisions, which commit one at a time.';

revoke execute on function number_changes(bigint) from public;

CREATE OR REPLACE FUNCTION public.seal_revision()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function seal_revision() is 'Sets the commit time of a revision and numbers its changes, at the commit.';

revoke execute on function seal_revision() from public;

CREATE CONSTRAINT TRIGGER revision_seal AFTER INSERT ON revision DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION seal_revision();

CREATE OR REPLACE FUNCTION public.series_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function series_touch() is 'Records the prices and dates that a statement changed. Rejects points without a price or a revision.';

revoke execute on function series_touch() from public;

CREATE OR REPLACE FUNCTION public.price_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
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
end $function$
;

comment on function price_touch() is 'Records the prices that a statement changed.';

revoke execute on function price_touch() from public;

CREATE OR REPLACE FUNCTION public.currency_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (select 'reference' where exists (select from changed)) as touched (scope)
  on conflict do nothing;
  return null;
end $function$
;

comment on function currency_touch() is 'Records that a revision changed currency.';

revoke execute on function currency_touch() from public;

CREATE OR REPLACE FUNCTION public.unit_of_measure_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (select 'reference' where exists (select from changed)) as touched (scope)
  on conflict do nothing;
  return null;
end $function$
;

comment on function unit_of_measure_touch() is 'Records that a revision changed unit_of_measure.';

revoke execute on function unit_of_measure_touch() from public;

CREATE OR REPLACE FUNCTION public.dimension_value_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (select 'reference' where exists (select from changed)) as touched (scope)
  on conflict do nothing;
  return null;
end $function$
;

comment on function dimension_value_touch() is 'Records that a revision changed dimension_value.';

revoke execute on function dimension_value_touch() from public;

CREATE OR REPLACE FUNCTION public.product_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (select 'reference' where exists (select from changed)) as touched (scope)
  on conflict do nothing;
  return null;
end $function$
;

comment on function product_touch() is 'Records that a revision changed product.';

revoke execute on function product_touch() from public;

CREATE OR REPLACE FUNCTION public.fx_rate_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select touched.scope, current_revision() from (select distinct 'fx:' || source from changed) as touched (scope)
  on conflict do nothing;
  return null;
end $function$
;

comment on function fx_rate_touch() is 'Records that a revision changed fx_rate.';

revoke execute on function fx_rate_touch() from public;

CREATE TRIGGER currency_touch_inserted AFTER INSERT ON currency REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION currency_touch();

CREATE TRIGGER currency_touch_updated AFTER UPDATE ON currency REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION currency_touch();

CREATE TRIGGER currency_touch_deleted AFTER DELETE ON currency REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION currency_touch();

CREATE TRIGGER unit_of_measure_touch_inserted AFTER INSERT ON unit_of_measure REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION unit_of_measure_touch();

CREATE TRIGGER unit_of_measure_touch_updated AFTER UPDATE ON unit_of_measure REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION unit_of_measure_touch();

CREATE TRIGGER unit_of_measure_touch_deleted AFTER DELETE ON unit_of_measure REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION unit_of_measure_touch();

CREATE TRIGGER dimension_value_touch_inserted AFTER INSERT ON dimension_value REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION dimension_value_touch();

CREATE TRIGGER dimension_value_touch_updated AFTER UPDATE ON dimension_value REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION dimension_value_touch();

CREATE TRIGGER dimension_value_touch_deleted AFTER DELETE ON dimension_value REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION dimension_value_touch();

CREATE TRIGGER product_touch_inserted AFTER INSERT ON product REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION product_touch();

CREATE TRIGGER product_touch_updated AFTER UPDATE ON product REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION product_touch();

CREATE TRIGGER product_touch_deleted AFTER DELETE ON product REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION product_touch();

CREATE TRIGGER price_touch_inserted AFTER INSERT ON price REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_touch();

CREATE TRIGGER price_touch_updated AFTER UPDATE ON price REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_touch();

CREATE TRIGGER price_touch_deleted AFTER DELETE ON price REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_touch();

CREATE TRIGGER series_touch_inserted AFTER INSERT ON series REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION series_touch();

CREATE TRIGGER series_touch_updated AFTER UPDATE ON series REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION series_touch();

CREATE TRIGGER series_touch_deleted AFTER DELETE ON series REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION series_touch();

CREATE TRIGGER fx_rate_touch_inserted AFTER INSERT ON fx_rate REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fx_rate_touch();

CREATE TRIGGER fx_rate_touch_updated AFTER UPDATE ON fx_rate REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fx_rate_touch();

CREATE TRIGGER fx_rate_touch_deleted AFTER DELETE ON fx_rate REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fx_rate_touch();

CREATE OR REPLACE FUNCTION public.prices_made_in(at bigint)
 RETURNS SETOF integer
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
BEGIN ATOMIC
 SELECT p.id
    FROM price p
   WHERE (((p.revision = prices_made_in.at) OR (EXISTS ( SELECT
            FROM price_history h
           WHERE ((h.id = p.id) AND (h.revision = prices_made_in.at))))) AND (NOT (EXISTS ( SELECT
            FROM price_history h
           WHERE ((h.id = p.id) AND (h.revision_to = prices_made_in.at))))));
END
;

comment on function prices_made_in(bigint) is 'Present prices that a revision added.';

CREATE OR REPLACE FUNCTION public.names_made_in(at bigint)
 RETURNS TABLE(kind text, id integer, name text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
BEGIN ATOMIC
 WITH made AS MATERIALIZED (
          SELECT 'product'::text AS kind,
             d.id,
             d.name
            FROM product d
           WHERE (((d.revision = names_made_in.at) OR (EXISTS ( SELECT
                    FROM product_history h
                   WHERE ((h.id = d.id) AND (h.revision = names_made_in.at))))) AND (NOT (EXISTS ( SELECT
                    FROM product_history h
                   WHERE ((h.id = d.id) AND (h.revision_to = names_made_in.at))))))
         UNION ALL
          SELECT d.kind,
             d.id,
             d.name
            FROM dimension_value d
           WHERE (((d.revision = names_made_in.at) OR (EXISTS ( SELECT
                    FROM dimension_value_history h
                   WHERE ((h.id = d.id) AND (h.revision = names_made_in.at))))) AND (NOT (EXISTS ( SELECT
                    FROM dimension_value_history h
                   WHERE ((h.id = d.id) AND (h.revision_to = names_made_in.at))))))
         UNION ALL
          SELECT 'currency'::text,
             c.id,
             c.iso
            FROM currency c
           WHERE (((c.revision = names_made_in.at) OR (EXISTS ( SELECT
                    FROM currency_history h
                   WHERE ((h.id = c.id) AND (h.revision = names_made_in.at))))) AND (NOT (EXISTS ( SELECT
                    FROM currency_history h
                   WHERE ((h.id = c.id) AND (h.revision_to = names_made_in.at))))))
         ), kept AS MATERIALIZED (
          SELECT p.id,
             p.market_id,
             p.code,
             p.code_key,
             p.price_type,
             p.currency_id,
             p.unit_id,
             p.unit_dimension,
             p.product_id,
             p.name,
             p.short_name,
             p.specification,
             p.assessment_launched_at,
             p.price_category_id,
             p.frequency_id,
             p.purity_id,
             p.grade_id,
             p.capacity_id,
             p.cell_format_id,
             p.mesh_size_id,
             p.sub_product_id,
             p.feedstock_id,
             p.incoterm_id,
             p.country_id,
             p.region_id,
             p.trade_type_id,
             p.service_id,
             p.revision
            FROM price p
           WHERE ((EXISTS ( SELECT
                    FROM made)) AND (NOT (p.id IN ( SELECT prices_made_in(names_made_in.at) AS prices_made_in))))
         ), used AS MATERIALIZED (
          SELECT 'product'::text AS kind,
             kept.product_id AS id
            FROM kept
         UNION
          SELECT 'currency'::text,
             kept.currency_id
            FROM kept
         UNION
          SELECT 'currency'::text,
             s.base_currency_id
            FROM fx_source s
         UNION
          SELECT 'currency'::text,
             m_1.id
            FROM made m_1,
             fx_source s
           WHERE ((m_1.kind = 'currency'::text) AND (EXISTS ( SELECT
                    FROM fx_rate r
                   WHERE ((r.source = s.slug) AND (r.currency_id = m_1.id) AND (r.revision <> names_made_in.at)))))
         UNION
          SELECT 'value'::text,
             value.id
            FROM (kept
              CROSS JOIN LATERAL unnest(ARRAY[kept.price_category_id, kept.frequency_id, kept.purity_id, kept.grade_id, kept.capacity_id, kept.cell_format_id, kept.mesh_size_id, kept.sub_product_id, kept.feedstock_id, kept.incoterm_id, kept.country_id, kept.region_id, kept.trade_type_id, kept.service_id]) value(id))
         )
  SELECT m.kind,
     m.id,
     m.name
    FROM made m
   WHERE (NOT (EXISTS ( SELECT
            FROM used u
           WHERE ((u.id = m.id) AND (u.kind =
                 CASE
                     WHEN (m.kind = ANY (ARRAY['product'::text, 'currency'::text])) THEN m.kind
                     ELSE 'value'::text
                 END)))));
END
;

comment on function names_made_in(bigint) is 'Products, dimension values and currencies that a revision added and no other revision uses.';

CREATE OR REPLACE FUNCTION public.take_back()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
declare
  taken load_batch;
  batch load_batch;
  taken_by integer := new.id;
  made integer[];
begin
  select * into taken from load_batch where id = new.undoes for update;
  if new.status <> 'applied' or taken.status <> 'applied' or taken.undone_by is not null then
    raise exception 'batch % is not in force', taken.id;
  end if;
  if new.revision is distinct from current_revision() then
    raise exception 'batch % has to be written in its own revision', new.id;
  end if;

  -- Undoing an undo restores the batch that it undid, and so on along the chain.
  batch := taken;
  loop
    if batch.undone_by is not null and batch.undone_by <> taken_by then
      raise exception 'batch % was taken back by batch %', batch.id, batch.undone_by;
    end if;
    update load_batch set undone_by = case when batch.undone_by is null then taken_by end
      where id = batch.id;
    exit when batch.undoes is null;
    taken_by := batch.id;
    select * into batch from load_batch where id = batch.undoes for update;
  end loop;

  if new.revision is null or taken.revision is null then
    return null;
  end if;
  delete from price where id in (select prices_made_in(taken.revision));
  -- Read before the deletion, which would change the result of the function.
  made := array(select m.id from names_made_in(taken.revision) m where m.kind = 'product');
  delete from product where id = any(made);
  made := array(select m.id from names_made_in(taken.revision) m where m.kind = 'currency');
  delete from currency where id = any(made);
  made := array(select m.id from names_made_in(taken.revision) m
    where m.kind not in ('product', 'currency'));
  delete from dimension_value where id = any(made);
  return null;
end $function$
;

comment on function take_back() is 'Undoes the batch of an undo: deletes its prices and names, unless others use them.';

revoke execute on function take_back() from public;

CREATE TRIGGER load_batch_takes_back AFTER INSERT ON load_batch FOR EACH ROW WHEN (new.undoes IS NOT NULL) EXECUTE FUNCTION take_back();

create table access_scope (
  scope text not null,
  market_id smallint,
  constraint access_scope_pkey PRIMARY KEY (scope),
  constraint access_scope_market_id_key UNIQUE (market_id),
  constraint access_scope_market_id_fkey FOREIGN KEY (market_id) REFERENCES market(id),
  constraint access_scope_scope_check CHECK ((scope ~ '^prices:([*]|[a-z]+(-[a-z]+)*)$'::text))
);

comment on table access_scope is 'All scopes of API keys, written by the migrate command.';

create table api_key (
  id integer generated always as identity not null,
  public_id text not null,
  name text not null,
  owner text,
  digest bytea not null,
  digest_alg smallint default 1 not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  revoked_reason text,
  replaced_by integer,
  rate_per_minute integer,
  rate_burst integer,
  concurrent integer,
  last_used_at timestamp with time zone,
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_public_id_key UNIQUE (public_id),
  constraint api_key_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES api_key(id),
  constraint api_key_check CHECK ((expires_at > created_at)),
  constraint api_key_check1 CHECK (((revoked_at IS NULL) = (revoked_reason IS NULL))),
  constraint api_key_concurrent_check CHECK ((concurrent >= 0)),
  constraint api_key_digest_alg_check CHECK ((digest_alg = 1)),
  constraint api_key_digest_check CHECK ((octet_length(digest) = 32)),
  constraint api_key_name_check CHECK ((name <> ''::text)),
  constraint api_key_public_id_check CHECK ((public_id ~ '^[0-9A-Za-z]{10}$'::text)),
  constraint api_key_rate_burst_check CHECK ((rate_burst > 0)),
  constraint api_key_rate_is_whole CHECK (((rate_per_minute IS NULL) = (rate_burst IS NULL))),
  constraint api_key_rate_per_minute_check CHECK ((rate_per_minute >= 0))
);

comment on column api_key.last_used_at is 'No longer written: the last use is in key_use.';

comment on column api_key.rate_per_minute is 'Limit of this key; 0 for no limit, null for that of the service.';

comment on table api_key is 'API keys: public id and SHA-256, never the key itself.';

create table api_key_scope (
  api_key_id integer not null,
  scope text not null,
  constraint api_key_scope_pkey PRIMARY KEY (api_key_id, scope),
  constraint api_key_scope_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id),
  constraint api_key_scope_scope_fkey FOREIGN KEY (scope) REFERENCES access_scope(scope)
);

comment on table api_key_scope is 'The scopes of each API key.';

CREATE OR REPLACE FUNCTION public.refuse_key_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  raise exception 'truncate of % is refused: the audit would not show it', tg_table_name
    using hint = 'Revoke keys, or delete their rows.';
end $function$
;

comment on function refuse_key_truncate() is 'Rejects the removal of keys without an audit entry.';

CREATE TRIGGER api_key_no_truncate BEFORE TRUNCATE ON api_key FOR EACH STATEMENT EXECUTE FUNCTION refuse_key_truncate();

CREATE TRIGGER api_key_scope_no_truncate BEFORE TRUNCATE ON api_key_scope FOR EACH STATEMENT EXECUTE FUNCTION refuse_key_truncate();

CREATE OR REPLACE FUNCTION public.count_key_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  update service set keys_version = keys_version + 1, keys_change_id = new_commit_id();
  return null;
end $function$
;

comment on function count_key_change() is 'Counts a change of API keys, so that services read them again.';

revoke execute on function count_key_change() from public;

CREATE TRIGGER api_key_counted AFTER INSERT OR DELETE OR TRUNCATE ON api_key FOR EACH STATEMENT EXECUTE FUNCTION count_key_change();

CREATE TRIGGER api_key_change_counted AFTER UPDATE ON api_key FOR EACH ROW WHEN ((to_jsonb(old.*) - 'last_used_at'::text) IS DISTINCT FROM (to_jsonb(new.*) - 'last_used_at'::text)) EXECUTE FUNCTION count_key_change();

CREATE TRIGGER api_key_scope_counted AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON api_key_scope FOR EACH STATEMENT EXECUTE FUNCTION count_key_change();

create table key_audit (
  id bigint generated always as identity not null,
  at timestamp with time zone default clock_timestamp() not null,
  actor text not null,
  action text not null,
  public_id text not null,
  before jsonb,
  after jsonb,
  reason text,
  account text default SESSION_USER,
  constraint key_audit_pkey PRIMARY KEY (id),
  constraint key_audit_action_check CHECK ((action = ANY (ARRAY['created'::text, 'rotated'::text, 'revoked'::text, 'expiry-changed'::text, 'limits-changed'::text, 'changed'::text, 'deleted'::text, 'first-used'::text, 'denied-burst'::text])))
);

comment on column key_audit.account is 'The account that the session logged in as; null in rows from before this column.';

comment on table key_audit is 'Audit of API keys: actions and actors. Rows are permanent.';

CREATE INDEX key_audit_key ON public.key_audit USING btree (public_id, id);

CREATE TRIGGER key_audit_frozen BEFORE DELETE OR UPDATE ON key_audit FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER key_audit_no_truncate BEFORE TRUNCATE ON key_audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.key_actor()
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$ select coalesce(nullif(current_setting('prices.actor', true), ''), session_user::text) $function$
;

comment on function key_actor() is 'The actor of a key change: the setting prices.actor, otherwise the account.';

CREATE OR REPLACE FUNCTION public.key_reason()
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$ select nullif(current_setting('prices.reason', true), '') $function$
;

comment on function key_reason() is 'The reason of a key change: the setting prices.reason, or null.';

CREATE OR REPLACE FUNCTION public.audit_key()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
declare
  hidden text[] := '{digest,digest_alg,last_used_at,id}';
  was jsonb := case when tg_op = 'INSERT' then null else to_jsonb(old) - hidden end;
  becomes jsonb := case when tg_op = 'DELETE' then null else to_jsonb(new) - hidden end;
begin
  if tg_op = 'UPDATE' then
    if (old.id, old.public_id, old.digest, old.digest_alg) is distinct from
      (new.id, new.public_id, new.digest, new.digest_alg) then
      raise exception 'the digest of key % never changes, nor what it is called', old.public_id;
    end if;
    if old.last_used_at is null and new.last_used_at is not null then
      insert into key_audit (actor, action, public_id, after)
        values (key_actor(), 'first-used', new.public_id,
          jsonb_build_object('last_used_at', new.last_used_at));
    end if;
    if was is not distinct from becomes then
      return null;
    end if;
  end if;
  insert into key_audit (actor, action, public_id, before, after, reason)
    values (key_actor(),
      case when tg_op = 'INSERT' then 'created'
        when tg_op = 'DELETE' then 'deleted'
        when old.revoked_at is null and new.revoked_at is not null then 'revoked'
        when old.replaced_by is distinct from new.replaced_by then 'rotated'
        when old.expires_at is distinct from new.expires_at then 'expiry-changed'
        when (old.rate_per_minute, old.rate_burst, old.concurrent) is distinct from
          (new.rate_per_minute, new.rate_burst, new.concurrent) then 'limits-changed'
        else 'changed' end,
      coalesce(new.public_id, old.public_id), was, becomes, coalesce(key_reason(), new.revoked_reason));
  return null;
end $function$
;

comment on function audit_key() is 'Records a change of a key in the audit.';

revoke execute on function audit_key() from public;

CREATE TRIGGER api_key_audit AFTER INSERT OR DELETE OR UPDATE ON api_key FOR EACH ROW EXECUTE FUNCTION audit_key();

CREATE OR REPLACE FUNCTION public.audit_key_scope()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into key_audit (actor, action, public_id, before, after, reason)
    select key_actor(), 'changed', k.public_id,
      case when tg_op <> 'INSERT' then jsonb_build_object('scope', old.scope) end,
      case when tg_op <> 'DELETE' then jsonb_build_object('scope', new.scope) end, key_reason()
    from api_key k where k.id = coalesce(new.api_key_id, old.api_key_id);
  return null;
end $function$
;

comment on function audit_key_scope() is 'Records a change of a scope of a key in the audit.';

revoke execute on function audit_key_scope() from public;

CREATE TRIGGER api_key_scope_audit AFTER INSERT OR DELETE OR UPDATE ON api_key_scope FOR EACH ROW EXECUTE FUNCTION audit_key_scope();

CREATE OR REPLACE FUNCTION public.note_denied(ids text[], denied integer[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
  insert into key_audit (actor, action, public_id, after, reason)
    select key_actor(), 'denied-burst', k.public_id, jsonb_build_object('denied', d.denied),
        format('%s requests were refused within a minute', d.denied)
      from unnest(ids, denied) as d (id, denied) join api_key k on k.public_id = d.id
      where not exists (select from key_audit a
        where a.public_id = k.public_id and a.action = 'denied-burst'
          and a.at > clock_timestamp() - interval '1 hour')
$function$
;

comment on function note_denied(text[],integer[]) is 'Records keys with bursts of rejected requests. The second array has the rejections in a minute by id.';

revoke execute on function note_denied(text[],integer[]) from public;

create unlogged table rate_usage (
  instance uuid not null,
  name text not null,
  taken bigint not null,
  updated_at timestamp with time zone default clock_timestamp() not null,
  constraint rate_usage_pkey PRIMARY KEY (instance, name)
);

comment on table rate_usage is 'Rate limit counts of each running instance, read by the others. Unlogged, since they expire soon.';

CREATE INDEX rate_usage_updated ON public.rate_usage USING btree (updated_at);

create table key_use (
  public_id text not null,
  last_used_at timestamp with time zone not null,
  constraint key_use_pkey PRIMARY KEY (public_id)
);

comment on table key_use is 'Time of the last use of each API key, to the minute. No foreign key, which would lock the row of the key.';

CREATE OR REPLACE FUNCTION public.note_used(ids text[], instants timestamp with time zone[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
  with added as (
    insert into key_use (public_id, last_used_at)
      select k.public_id, u.at
        from unnest(ids, instants) as u (id, at) join api_key k on k.public_id = u.id
        order by k.public_id
      on conflict do nothing
      returning public_id, last_used_at)
  insert into key_audit (actor, action, public_id, after)
    select key_actor(), 'first-used', public_id, jsonb_build_object('last_used_at', last_used_at)
      from added;
  with later as (
    select k.public_id, u.at
      from unnest(ids, instants) as u (id, at) join key_use k on k.public_id = u.id
      where k.last_used_at < u.at
      order by k.public_id for update of k)
  update key_use k set last_used_at = later.at
    from later where k.public_id = later.public_id and k.last_used_at < later.at;
$function$
;

comment on function note_used(text[],timestamp with time zone[]) is 'Records the last use of keys, and their first use in the audit. The second array has the instants by id.';

revoke execute on function note_used(text[],timestamp with time zone[]) from public;

CREATE OR REPLACE FUNCTION public.price_at_2(at bigint)
 RETURNS TABLE(id integer, market_id smallint, code text, code_key text, price_type text, currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text, short_name text, specification jsonb, assessment_launched_at date, price_category_id integer, frequency_id integer, purity_id integer, grade_id integer, capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer, feedstock_id integer, incoterm_id integer, country_id integer, region_id integer, trade_type_id integer, service_id integer, observes text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT price.id,
     price.market_id,
     price.code,
     price.code_key,
     price.price_type,
     price.currency_id,
     price.unit_id,
     price.unit_dimension,
     price.product_id,
     price.name,
     price.short_name,
     price.specification,
     price.assessment_launched_at,
     price.price_category_id,
     price.frequency_id,
     price.purity_id,
     price.grade_id,
     price.capacity_id,
     price.cell_format_id,
     price.mesh_size_id,
     price.sub_product_id,
     price.feedstock_id,
     price.incoterm_id,
     price.country_id,
     price.region_id,
     price.trade_type_id,
     price.service_id,
     COALESCE(price.observes, 'day'::text) AS "coalesce",
     price.revision
    FROM price
   WHERE (price.revision <= price_at_2.at)
 UNION ALL
  SELECT price_history.id,
     price_history.market_id,
     price_history.code,
     price_history.code_key,
     price_history.price_type,
     price_history.currency_id,
     price_history.unit_id,
     price_history.unit_dimension,
     price_history.product_id,
     price_history.name,
     price_history.short_name,
     price_history.specification,
     price_history.assessment_launched_at,
     price_history.price_category_id,
     price_history.frequency_id,
     price_history.purity_id,
     price_history.grade_id,
     price_history.capacity_id,
     price_history.cell_format_id,
     price_history.mesh_size_id,
     price_history.sub_product_id,
     price_history.feedstock_id,
     price_history.incoterm_id,
     price_history.country_id,
     price_history.region_id,
     price_history.trade_type_id,
     price_history.service_id,
     COALESCE(price_history.observes, 'day'::text) AS "coalesce",
     price_history.revision
    FROM price_history
   WHERE ((price_history.revision <= price_at_2.at) AND (price_history.revision_to > price_at_2.at));
END
;

comment on function price_at_2(bigint) is 'The rows of price at a revision. What was never stated to be a mean is of a day.';

create table search_alias (
  id integer generated always as identity not null,
  words text not null,
  alias text not null,
  revision bigint default current_revision() not null,
  constraint search_alias_pkey PRIMARY KEY (id),
  constraint search_alias_words_alias_key UNIQUE (words, alias),
  constraint search_alias_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint search_alias_alias_check CHECK (((alias ~ '[^[:space:]]'::text) AND (alias !~ '[[:cntrl:]]'::text))),
  constraint search_alias_words_check CHECK (((words ~ '[^[:space:]]'::text) AND (words !~ '[[:cntrl:]]'::text)))
);

comment on table search_alias is 'Other names for search: a price with all words in one of its attributes is found by the alias too.';

create table search_alias_history (
  id integer not null,
  words text not null,
  alias text not null,
  revision bigint not null,
  revision_to bigint not null,
  constraint search_alias_history_pkey PRIMARY KEY (id, revision),
  constraint search_alias_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint search_alias_alias_check CHECK (((alias ~ '[^[:space:]]'::text) AND (alias !~ '[[:cntrl:]]'::text))),
  constraint search_alias_history_check CHECK ((revision < revision_to)),
  constraint search_alias_words_check CHECK (((words ~ '[^[:space:]]'::text) AND (words !~ '[[:cntrl:]]'::text)))
);

comment on table search_alias_history is 'Superseded rows of search_alias: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER search_alias_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON search_alias FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER search_alias_history_by_triggers BEFORE INSERT ON search_alias_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER search_alias_insert_has_revision BEFORE INSERT ON search_alias FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER search_alias_stamp BEFORE UPDATE ON search_alias FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER search_alias_no_truncate BEFORE TRUNCATE ON search_alias FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER search_alias_history_frozen BEFORE DELETE OR UPDATE ON search_alias_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER search_alias_history_no_truncate BEFORE TRUNCATE ON search_alias_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.search_alias_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  if current_revision() is null and exists (select from superseded) then
    raise exception 'a change of search_alias needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  insert into search_alias_history (id, words, alias, revision, revision_to)
    select id, words, alias, revision, current_revision() from superseded
      where revision < current_revision();
  return null;
end $function$
;

comment on function search_alias_keep() is 'Copies superseded rows of search_alias to its history.';

revoke execute on function search_alias_keep() from public;

CREATE OR REPLACE FUNCTION public.search_alias_at(at bigint)
 RETURNS TABLE(id integer, words text, alias text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT search_alias.id,
     search_alias.words,
     search_alias.alias,
     search_alias.revision
    FROM search_alias
   WHERE (search_alias.revision <= search_alias_at.at)
 UNION ALL
  SELECT search_alias_history.id,
     search_alias_history.words,
     search_alias_history.alias,
     search_alias_history.revision
    FROM search_alias_history
   WHERE ((search_alias_history.revision <= search_alias_at.at) AND (search_alias_history.revision_to > search_alias_at.at));
END
;

comment on function search_alias_at(bigint) is 'The rows of search_alias at a revision.';

CREATE OR REPLACE FUNCTION public.search_alias_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $function$
;

comment on function search_alias_touch() is 'Records that a revision changed search_alias.';

revoke execute on function search_alias_touch() from public;

CREATE TRIGGER search_alias_keep_updated AFTER UPDATE ON search_alias REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION search_alias_keep();

CREATE TRIGGER search_alias_keep_deleted AFTER DELETE ON search_alias REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION search_alias_keep();

CREATE TRIGGER search_alias_touch_inserted AFTER INSERT ON search_alias REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION search_alias_touch();

CREATE TRIGGER search_alias_touch_updated AFTER UPDATE ON search_alias REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION search_alias_touch();

CREATE TRIGGER search_alias_touch_deleted AFTER DELETE ON search_alias REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION search_alias_touch();

create table holiday_list (
  id integer generated always as identity not null,
  slug text not null,
  source text not null,
  known_from date not null,
  known_until date not null,
  days jsonb default '[]'::jsonb not null,
  working_days jsonb default '[]'::jsonb not null,
  batch_id integer,
  revision bigint default current_revision() not null,
  constraint holiday_list_pkey PRIMARY KEY (id),
  constraint holiday_list_slug_key UNIQUE (slug),
  constraint holiday_list_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint holiday_list_days_check CHECK ((jsonb_typeof(days) = 'array'::text)),
  constraint holiday_list_in_order CHECK ((known_from <= known_until)),
  constraint holiday_list_known_from_check CHECK (((known_from >= '1800-01-01'::date) AND (known_from <= '2199-12-31'::date))),
  constraint holiday_list_known_until_check CHECK (((known_until >= '1800-01-01'::date) AND (known_until <= '2199-12-31'::date))),
  constraint holiday_list_slug_formed CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 64))),
  constraint holiday_list_source_check CHECK (((source <> ''::text) AND (source !~ '[[:cntrl:]]'::text))),
  constraint holiday_list_working_days_check CHECK ((jsonb_typeof(working_days) = 'array'::text))
);

comment on column holiday_list.days is 'The holidays as [{"date": "2026-12-25", "name": "Christmas Day"}], in the order of their dates.';

comment on column holiday_list.working_days is 'Days of weekends that are worked, as ["2026-02-14"], in their order.';

comment on table holiday_list is 'Closed days of a place, as far as they are decreed: between known_from and known_until, nothing is known beyond.';

create table calendar (
  id integer generated always as identity not null,
  slug text not null,
  rule jsonb not null,
  due_time text not null,
  zone text not null,
  holiday_list_id integer,
  policy text not null,
  make_up_days boolean default false not null,
  batch_id integer,
  revision bigint default current_revision() not null,
  constraint calendar_pkey PRIMARY KEY (id),
  constraint calendar_slug_key UNIQUE (slug),
  constraint calendar_holiday_list_id_fkey FOREIGN KEY (holiday_list_id) REFERENCES holiday_list(id),
  constraint calendar_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint calendar_due_time_check CHECK ((due_time ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'::text)),
  constraint calendar_make_up_days_of_list CHECK (((NOT make_up_days) OR (holiday_list_id IS NOT NULL))),
  constraint calendar_policy_check CHECK ((policy = ANY (ARRAY['skip'::text, 'carry'::text, 'nearest'::text, 'preceding'::text]))),
  constraint calendar_rule_check CHECK ((jsonb_typeof(rule) = ANY (ARRAY['string'::text, 'object'::text]))),
  constraint calendar_slug_formed CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 64))),
  constraint calendar_zone_check CHECK ((zone ~ '^[A-Za-z][A-Za-z0-9_+/-]*$'::text))
);

comment on table calendar is 'Publication calendars: the days on which prices are due (rule), the local time, and what becomes of a closed day (policy). docs/calendars.md explains the columns.';

create table price_calendar (
  price_id integer not null,
  calendar_id integer not null,
  batch_id integer,
  revision bigint default current_revision() not null,
  constraint price_calendar_pkey PRIMARY KEY (price_id),
  constraint price_calendar_calendar_id_fkey FOREIGN KEY (calendar_id) REFERENCES calendar(id),
  constraint price_calendar_price_id_fkey FOREIGN KEY (price_id) REFERENCES price(id) ON DELETE CASCADE,
  constraint price_calendar_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number)
);

comment on table price_calendar is 'The calendar that each price follows. Prices without a row follow none.';

CREATE TRIGGER holiday_list_identity_is_fixed BEFORE UPDATE ON holiday_list FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.slug IS DISTINCT FROM new.slug) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER calendar_identity_is_fixed BEFORE UPDATE ON calendar FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.slug IS DISTINCT FROM new.slug) EXECUTE FUNCTION refuse_new_key();

CREATE TRIGGER price_calendar_identity_is_fixed BEFORE UPDATE OF price_id ON price_calendar FOR EACH ROW WHEN (old.price_id IS DISTINCT FROM new.price_id) EXECUTE FUNCTION refuse_new_key();

create table holiday_list_history (
  id integer not null,
  slug text not null,
  source text not null,
  known_from date not null,
  known_until date not null,
  days jsonb not null,
  working_days jsonb not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint holiday_list_history_pkey PRIMARY KEY (id, revision),
  constraint holiday_list_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint holiday_list_days_check CHECK ((jsonb_typeof(days) = 'array'::text)),
  constraint holiday_list_history_check CHECK ((revision < revision_to)),
  constraint holiday_list_in_order CHECK ((known_from <= known_until)),
  constraint holiday_list_known_from_check CHECK (((known_from >= '1800-01-01'::date) AND (known_from <= '2199-12-31'::date))),
  constraint holiday_list_known_until_check CHECK (((known_until >= '1800-01-01'::date) AND (known_until <= '2199-12-31'::date))),
  constraint holiday_list_slug_formed CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 64))),
  constraint holiday_list_source_check CHECK (((source <> ''::text) AND (source !~ '[[:cntrl:]]'::text))),
  constraint holiday_list_working_days_check CHECK ((jsonb_typeof(working_days) = 'array'::text))
);

comment on table holiday_list_history is 'Superseded rows of holiday_list: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER holiday_list_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON holiday_list FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER holiday_list_history_by_triggers BEFORE INSERT ON holiday_list_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER holiday_list_insert_has_revision BEFORE INSERT ON holiday_list FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER holiday_list_stamp BEFORE UPDATE ON holiday_list FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER holiday_list_no_truncate BEFORE TRUNCATE ON holiday_list FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER holiday_list_history_frozen BEFORE DELETE OR UPDATE ON holiday_list_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER holiday_list_history_no_truncate BEFORE TRUNCATE ON holiday_list_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.holiday_list_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of holiday_list needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into holiday_list_history (id, slug, source, known_from, known_until, days, working_days, batch_id, revision, revision_to)
        select id, slug, source, known_from, known_until, days, working_days, batch_id, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function holiday_list_keep() is 'Copies superseded rows of holiday_list to its history.';

revoke execute on function holiday_list_keep() from public;

CREATE OR REPLACE FUNCTION public.holiday_list_at(at bigint)
 RETURNS TABLE(id integer, slug text, source text, known_from date, known_until date, days jsonb, working_days jsonb, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT holiday_list.id,
     holiday_list.slug,
     holiday_list.source,
     holiday_list.known_from,
     holiday_list.known_until,
     holiday_list.days,
     holiday_list.working_days,
     holiday_list.batch_id,
     holiday_list.revision
    FROM holiday_list
   WHERE (holiday_list.revision <= holiday_list_at.at)
 UNION ALL
  SELECT holiday_list_history.id,
     holiday_list_history.slug,
     holiday_list_history.source,
     holiday_list_history.known_from,
     holiday_list_history.known_until,
     holiday_list_history.days,
     holiday_list_history.working_days,
     holiday_list_history.batch_id,
     holiday_list_history.revision
    FROM holiday_list_history
   WHERE ((holiday_list_history.revision <= holiday_list_at.at) AND (holiday_list_history.revision_to > holiday_list_at.at));
END
;

comment on function holiday_list_at(bigint) is 'The rows of holiday_list at a revision.';

CREATE TRIGGER holiday_list_keep_updated AFTER UPDATE ON holiday_list REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION holiday_list_keep();

CREATE TRIGGER holiday_list_keep_deleted AFTER DELETE ON holiday_list REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION holiday_list_keep();

CREATE OR REPLACE FUNCTION public.holiday_list_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $function$
;

comment on function holiday_list_touch() is 'Records that a revision changed holiday_list.';

revoke execute on function holiday_list_touch() from public;

CREATE TRIGGER holiday_list_touch_inserted AFTER INSERT ON holiday_list REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION holiday_list_touch();

CREATE TRIGGER holiday_list_touch_updated AFTER UPDATE ON holiday_list REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION holiday_list_touch();

CREATE TRIGGER holiday_list_touch_deleted AFTER DELETE ON holiday_list REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION holiday_list_touch();

create table calendar_history (
  id integer not null,
  slug text not null,
  rule jsonb not null,
  due_time text not null,
  zone text not null,
  holiday_list_id integer,
  policy text not null,
  make_up_days boolean not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint calendar_history_pkey PRIMARY KEY (id, revision),
  constraint calendar_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint calendar_due_time_check CHECK ((due_time ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'::text)),
  constraint calendar_history_check CHECK ((revision < revision_to)),
  constraint calendar_make_up_days_of_list CHECK (((NOT make_up_days) OR (holiday_list_id IS NOT NULL))),
  constraint calendar_policy_check CHECK ((policy = ANY (ARRAY['skip'::text, 'carry'::text, 'nearest'::text, 'preceding'::text]))),
  constraint calendar_rule_check CHECK ((jsonb_typeof(rule) = ANY (ARRAY['string'::text, 'object'::text]))),
  constraint calendar_slug_formed CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 64))),
  constraint calendar_zone_check CHECK ((zone ~ '^[A-Za-z][A-Za-z0-9_+/-]*$'::text))
);

comment on table calendar_history is 'Superseded rows of calendar: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER calendar_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON calendar FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER calendar_history_by_triggers BEFORE INSERT ON calendar_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER calendar_insert_has_revision BEFORE INSERT ON calendar FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER calendar_stamp BEFORE UPDATE ON calendar FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER calendar_no_truncate BEFORE TRUNCATE ON calendar FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER calendar_history_frozen BEFORE DELETE OR UPDATE ON calendar_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER calendar_history_no_truncate BEFORE TRUNCATE ON calendar_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.calendar_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of calendar needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into calendar_history (id, slug, rule, due_time, zone, holiday_list_id, policy, make_up_days, batch_id, revision, revision_to)
        select id, slug, rule, due_time, zone, holiday_list_id, policy, make_up_days, batch_id, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function calendar_keep() is 'Copies superseded rows of calendar to its history.';

revoke execute on function calendar_keep() from public;

CREATE OR REPLACE FUNCTION public.calendar_at(at bigint)
 RETURNS TABLE(id integer, slug text, rule jsonb, due_time text, zone text, holiday_list_id integer, policy text, make_up_days boolean, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT calendar.id,
     calendar.slug,
     calendar.rule,
     calendar.due_time,
     calendar.zone,
     calendar.holiday_list_id,
     calendar.policy,
     calendar.make_up_days,
     calendar.batch_id,
     calendar.revision
    FROM calendar
   WHERE (calendar.revision <= calendar_at.at)
 UNION ALL
  SELECT calendar_history.id,
     calendar_history.slug,
     calendar_history.rule,
     calendar_history.due_time,
     calendar_history.zone,
     calendar_history.holiday_list_id,
     calendar_history.policy,
     calendar_history.make_up_days,
     calendar_history.batch_id,
     calendar_history.revision
    FROM calendar_history
   WHERE ((calendar_history.revision <= calendar_at.at) AND (calendar_history.revision_to > calendar_at.at));
END
;

comment on function calendar_at(bigint) is 'The rows of calendar at a revision.';

CREATE TRIGGER calendar_keep_updated AFTER UPDATE ON calendar REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION calendar_keep();

CREATE TRIGGER calendar_keep_deleted AFTER DELETE ON calendar REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION calendar_keep();

CREATE OR REPLACE FUNCTION public.calendar_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $function$
;

comment on function calendar_touch() is 'Records that a revision changed calendar.';

revoke execute on function calendar_touch() from public;

CREATE TRIGGER calendar_touch_inserted AFTER INSERT ON calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION calendar_touch();

CREATE TRIGGER calendar_touch_updated AFTER UPDATE ON calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION calendar_touch();

CREATE TRIGGER calendar_touch_deleted AFTER DELETE ON calendar REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION calendar_touch();

create table price_calendar_history (
  price_id integer not null,
  calendar_id integer not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint price_calendar_history_pkey PRIMARY KEY (price_id, revision),
  constraint price_calendar_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint price_calendar_history_check CHECK ((revision < revision_to))
);

comment on table price_calendar_history is 'Superseded rows of price_calendar: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER price_calendar_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON price_calendar FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER price_calendar_history_by_triggers BEFORE INSERT ON price_calendar_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_calendar_insert_has_revision BEFORE INSERT ON price_calendar FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER price_calendar_stamp BEFORE UPDATE ON price_calendar FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER price_calendar_no_truncate BEFORE TRUNCATE ON price_calendar FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_calendar_history_frozen BEFORE DELETE OR UPDATE ON price_calendar_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER price_calendar_history_no_truncate BEFORE TRUNCATE ON price_calendar_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.price_calendar_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of price_calendar needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into price_calendar_history (price_id, calendar_id, batch_id, revision, revision_to)
        select price_id, calendar_id, batch_id, revision, current_revision() from superseded where revision < current_revision();
      return null;
    end $function$
;

comment on function price_calendar_keep() is 'Copies superseded rows of price_calendar to its history.';

revoke execute on function price_calendar_keep() from public;

CREATE OR REPLACE FUNCTION public.price_calendar_at(at bigint)
 RETURNS TABLE(price_id integer, calendar_id integer, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT price_calendar.price_id,
     price_calendar.calendar_id,
     price_calendar.batch_id,
     price_calendar.revision
    FROM price_calendar
   WHERE (price_calendar.revision <= price_calendar_at.at)
 UNION ALL
  SELECT price_calendar_history.price_id,
     price_calendar_history.calendar_id,
     price_calendar_history.batch_id,
     price_calendar_history.revision
    FROM price_calendar_history
   WHERE ((price_calendar_history.revision <= price_calendar_at.at) AND (price_calendar_history.revision_to > price_calendar_at.at));
END
;

comment on function price_calendar_at(bigint) is 'The rows of price_calendar at a revision.';

CREATE TRIGGER price_calendar_keep_updated AFTER UPDATE ON price_calendar REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION price_calendar_keep();

CREATE TRIGGER price_calendar_keep_deleted AFTER DELETE ON price_calendar REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION price_calendar_keep();

CREATE OR REPLACE FUNCTION public.price_calendar_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
    union
    select m.slug, current_revision() from changed c
      join (select id, market_id from price union select id, market_id from price_history) as p
        on p.id = c.price_id
      join market m on m.id = p.market_id
  on conflict do nothing;
  return null;
end $function$
;

comment on function price_calendar_touch() is 'Records that a revision changed price_calendar.';

revoke execute on function price_calendar_touch() from public;

CREATE TRIGGER price_calendar_touch_inserted AFTER INSERT ON price_calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_calendar_touch();

CREATE TRIGGER price_calendar_touch_updated AFTER UPDATE ON price_calendar REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_calendar_touch();

CREATE TRIGGER price_calendar_touch_deleted AFTER DELETE ON price_calendar REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION price_calendar_touch();

create schema if not exists published;

comment on schema published is 'Views for readers of SQL. Their names and columns stay; new columns are appended.';

create or replace view published.price as
 SELECT m.slug AS market,
    p.code,
    p.name,
    p.short_name,
    type.name AS price_type,
    product.name AS product,
    product.alias AS product_alias,
    product.chemical_code,
    product.is_sustainable,
    category.name AS price_category,
    frequency.name AS frequency,
    c.iso AS currency,
    u.name AS unit_of_measure,
    purity.name AS purity,
    grade.name AS grade,
    capacity.name AS capacity,
    cell_format.name AS cell_format,
    mesh_size.name AS mesh_size,
    sub_product.name AS sub_product,
    feedstock.name AS feedstock,
    incoterm.name AS incoterm,
    country.name AS country,
    region.name AS region,
    trade_type.name AS trade_type,
    service.name AS service,
    p.specification,
    p.assessment_launched_at,
    COALESCE(p.observes, 'day'::text) AS observes,
    latest.date AS last_assessed_at,
    latest.published_at AS latest_published_at,
    p.revision,
    p.vat_country,
    (p.payable_reference -> '-1'::integer) ->> 'code'::text AS reference_code,
    (p.payable_reference -> '-1'::integer) ->> 'side'::text AS reference_side,
    (p.payable_reference -> '-1'::integer) ->> 'statistic'::text AS reference_statistic,
    (p.payable_reference -> '-1'::integer) ->> 'element'::text AS reference_element,
    ((p.payable_reference -> '-1'::integer) ->> 'validFrom'::text)::date AS reference_valid_from
   FROM price p
     JOIN market m ON m.id = p.market_id
     JOIN product ON product.id = p.product_id
     JOIN unit_of_measure u ON u.id = p.unit_id
     LEFT JOIN currency c ON c.id = p.currency_id
     JOIN dimension_value type ON type.kind = 'price-type'::text AND type.slug = p.price_type
     JOIN dimension_value category ON category.id = p.price_category_id
     JOIN dimension_value frequency ON frequency.id = p.frequency_id
     LEFT JOIN dimension_value purity ON purity.id = p.purity_id
     LEFT JOIN dimension_value grade ON grade.id = p.grade_id
     LEFT JOIN dimension_value capacity ON capacity.id = p.capacity_id
     LEFT JOIN dimension_value cell_format ON cell_format.id = p.cell_format_id
     LEFT JOIN dimension_value mesh_size ON mesh_size.id = p.mesh_size_id
     LEFT JOIN dimension_value sub_product ON sub_product.id = p.sub_product_id
     LEFT JOIN dimension_value feedstock ON feedstock.id = p.feedstock_id
     LEFT JOIN dimension_value incoterm ON incoterm.id = p.incoterm_id
     LEFT JOIN dimension_value country ON country.id = p.country_id
     LEFT JOIN dimension_value region ON region.id = p.region_id
     LEFT JOIN dimension_value trade_type ON trade_type.id = p.trade_type_id
     LEFT JOIN dimension_value service ON service.id = p.service_id
     LEFT JOIN LATERAL ( SELECT s.date,
            s.published_at
           FROM series s
          WHERE s.price_id = p.id
          ORDER BY s.date DESC
         LIMIT 1) latest ON true;

comment on column published.price.assessment_launched_at is 'First day of the assessment, or null';

comment on column published.price.capacity is 'Capacity of a cell; null if it has none';

comment on column published.price.cell_format is 'Format of a cell; null if it has none';

comment on column published.price.chemical_code is 'Chemical formula of the product';

comment on column published.price.code is 'Code of the price, unique over all markets';

comment on column published.price.country is 'Country; null if it has none';

comment on column published.price.currency is 'ISO 4217 code of the currency of the numbers; null for a payable';

comment on column published.price.feedstock is 'Feedstock; null if it has none';

comment on column published.price.frequency is 'Name of the assessment frequency';

comment on column published.price.grade is 'Grade; null if it has none';

comment on column published.price.incoterm is 'Incoterm; null if it has none';

comment on column published.price.is_sustainable is 'True for a low-carbon or recycled variety';

comment on column published.price.last_assessed_at is 'Day of the latest point; null without one';

comment on column published.price.latest_published_at is 'Publication of the latest point; null without one';

comment on column published.price.market is 'Slug of the market';

comment on column published.price.mesh_size is 'Mesh size; null if it has none';

comment on column published.price.name is 'Name of the price';

comment on column published.price.observes is 'What a value is: of a day, or the mean of a month or a year';

comment on column published.price.price_category is 'Name of the category';

comment on column published.price.price_type is 'Name of the type: a price in a currency, or a payable in percent';

comment on column published.price.product is 'Name of the product';

comment on column published.price.product_alias is 'Short name of the product in the trade';

comment on column published.price.purity is 'Purity; null if it has none';

comment on column published.price.reference_code is 'Code of the price that a payable is a percentage of; null if unknown';

comment on column published.price.reference_element is 'Element of the payable, such as Ni';

comment on column published.price.reference_side is 'Side of that price: low, mid or high';

comment on column published.price.reference_statistic is 'A session of that price, or the average of a month: session or month-average';

comment on column published.price.reference_valid_from is 'First day of this reference';

comment on column published.price.region is 'Region; null if it has none';

comment on column published.price.revision is 'Revision that wrote these attributes';

comment on column published.price.service is 'Service; null if it has none';

comment on column published.price.short_name is 'Short name, or null';

comment on column published.price.specification is 'Properties without a column: a list of name, value and order';

comment on column published.price.sub_product is 'Sub-product; null if it has none';

comment on column published.price.trade_type is 'Trade type; null if it has none';

comment on column published.price.unit_of_measure is 'Present name of the unit of the numbers; Percent for a payable';

comment on column published.price.vat_country is 'Country, by its ISO 3166 code, whose VAT the values include; null if not known to';

comment on view published.price is 'The present prices: a row for each, with the names of its attributes as in the CSV.';

create or replace view published.point as
 SELECT m.slug AS market,
    p.code,
    s.date,
    s.low,
    s.mid,
    s.high,
    c.iso AS currency,
    u.name AS unit_of_measure,
    s.published_at,
    s.corrections,
    s.revision
   FROM series s
     JOIN price p ON p.id = s.price_id
     JOIN market m ON m.id = p.market_id
     JOIN unit_of_measure u ON u.id = p.unit_id
     LEFT JOIN currency c ON c.id = p.currency_id;

comment on column published.point.code is 'Code of the price, unique over all markets';

comment on column published.point.corrections is 'Number of corrections by then';

comment on column published.point.currency is 'ISO 4217 code of the currency of the numbers; null for a payable';

comment on column published.point.date is 'Day of the point';

comment on column published.point.high is 'High end, or null';

comment on column published.point.low is 'Low end, or null';

comment on column published.point.market is 'Slug of the market';

comment on column published.point.mid is 'Mid; not always the average of low and high';

comment on column published.point.published_at is 'Time at which this value was published';

comment on column published.point.revision is 'Revision that wrote this value';

comment on column published.point.unit_of_measure is 'Present name of the unit of the numbers; Percent for a payable';

comment on view published.point is 'The present value of each price on each date.';

create or replace view published.point_version as
 SELECT m.slug AS market,
    p.code,
    s.date,
    s.low,
    s.mid,
    s.high,
    COALESCE(c.iso, ( SELECT past.iso
           FROM currency_history past
          WHERE past.id = p.currency_id
          ORDER BY past.revision DESC
         LIMIT 1)) AS currency,
    u.name AS unit_of_measure,
    s.published_at,
    s.corrections,
    s.revision,
    s.revision_to
   FROM ( SELECT series.price_id,
            series.date,
            series.low,
            series.mid,
            series.high,
            series.published_at,
            series.corrections,
            series.revision,
            NULL::bigint AS revision_to
           FROM series
        UNION ALL
         SELECT series_history.price_id,
            series_history.date,
            series_history.low,
            series_history.mid,
            series_history.high,
            series_history.published_at,
            series_history.corrections,
            series_history.revision,
            series_history.revision_to
           FROM series_history) s
     JOIN ( SELECT price.id,
            price.market_id,
            price.code,
            price.currency_id,
            price.unit_id
           FROM price
        UNION ALL
         SELECT h.id,
            h.market_id,
            h.code,
            h.currency_id,
            h.unit_id
           FROM price_history h
          WHERE NOT (EXISTS ( SELECT
                   FROM price
                  WHERE price.id = h.id)) AND h.revision = (( SELECT max(newest.revision) AS max
                   FROM price_history newest
                  WHERE newest.id = h.id))) p ON p.id = s.price_id
     JOIN market m ON m.id = p.market_id
     JOIN unit_of_measure u ON u.id = p.unit_id
     LEFT JOIN currency c ON c.id = p.currency_id;

comment on column published.point_version.code is 'Code of the price, unique over all markets';

comment on column published.point_version.corrections is 'Number of corrections by then';

comment on column published.point_version.currency is 'ISO 4217 code of the currency of the numbers; null for a payable';

comment on column published.point_version.date is 'Day of the point';

comment on column published.point_version.high is 'High end, or null';

comment on column published.point_version.low is 'Low end, or null';

comment on column published.point_version.market is 'Slug of the market';

comment on column published.point_version.mid is 'Mid; not always the average of low and high';

comment on column published.point_version.published_at is 'Time at which this value was published';

comment on column published.point_version.revision is 'Revision that wrote this value';

comment on column published.point_version.revision_to is 'Revision that replaced or withdrew this value; null for a present value';

comment on column published.point_version.unit_of_measure is 'Present name of the unit of the numbers; Percent for a payable';

comment on view published.point_version is 'Every value that a price ever had on a date, with the revisions in which it was in force.';

CREATE OR REPLACE FUNCTION published.point_asof(at bigint)
 RETURNS TABLE(market text, code text, date date, low numeric, mid numeric, high numeric, currency text, unit_of_measure text, published_at timestamp with time zone, corrections integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT v.market,
     v.code,
     v.date,
     v.low,
     v.mid,
     v.high,
     v.currency,
     v.unit_of_measure,
     v.published_at,
     v.corrections,
     v.revision
    FROM published.point_version v
   WHERE ((v.revision <= point_asof.at) AND ((v.revision_to IS NULL) OR (v.revision_to > point_asof.at)));
END
;

comment on function published.point_asof(bigint) is 'The points as they were at a revision, with the columns of published.point.';

create or replace view published.rate as
 SELECT r.source,
    base.iso AS base,
    c.iso AS currency,
    r.date,
    r.rate,
    s.is_sample,
    r.revision
   FROM fx_rate r
     JOIN fx_source s ON s.slug = r.source
     JOIN currency base ON base.id = s.base_currency_id
     JOIN currency c ON c.id = r.currency_id;

comment on column published.rate.base is 'ISO 4217 code of the base currency of the source';

comment on column published.rate.currency is 'ISO 4217 code of the quoted currency';

comment on column published.rate.date is 'Day of the rate';

comment on column published.rate.is_sample is 'True for invented rates';

comment on column published.rate.rate is 'Units of the quoted currency for one unit of the base';

comment on column published.rate.revision is 'Revision that wrote this rate';

comment on column published.rate.source is 'Publisher of the rate; SAMPLE is invented data';

comment on view published.rate is 'The present exchange rates, as their sources published them.';

create or replace view published.revision as
 SELECT r.number AS revision,
    ((s.epoch || r.commit_id) || '.'::text) || r.number AS name,
    r.committed_at AS recorded_at
   FROM revision r
     CROSS JOIN service s;

comment on column published.revision.name is 'The revision as the API writes it in $metadata.revision and in options.revision';

comment on column published.revision.recorded_at is 'Time of the commit; grows strictly';

comment on column published.revision.revision is 'Number, as in the other views and for point_asof';

comment on view published.revision is 'The commits of data. Each has a number one greater than that of the commit before it.';

create or replace view published.change as
 SELECT c.first_seq + change.place AS number,
    ((s.epoch || r.commit_id) || '.'::text) || (c.first_seq + change.place) AS seq,
    r.committed_at AS recorded_at,
    change.operation,
    m.slug AS market,
    p.code,
    change.date,
    c.revision,
    change.before_low,
    change.before_mid,
    change.before_high,
    change.before_published_at,
    change.before_corrections,
    change.after_low,
    change.after_mid,
    change.after_high,
    change.after_published_at,
    change.after_corrections,
    change.before_name,
    change.after_name
   FROM change_segment c
     JOIN revision r ON r.number = c.revision
     JOIN market m ON m.id = c.market_id
     JOIN ( SELECT price.id,
            price.market_id,
            price.code,
            price.currency_id,
            price.unit_id
           FROM price
        UNION ALL
         SELECT h.id,
            h.market_id,
            h.code,
            h.currency_id,
            h.unit_id
           FROM price_history h
          WHERE NOT (EXISTS ( SELECT
                   FROM price
                  WHERE price.id = h.id)) AND h.revision = (( SELECT max(newest.revision) AS max
                   FROM price_history newest
                  WHERE newest.id = h.id))) p ON p.id = c.price_id
     CROSS JOIN service s
     CROSS JOIN LATERAL ( SELECT 0::bigint AS place,
            NULL::date AS date,
                CASE
                    WHEN became.name IS NULL THEN 'withdrawn'::text
                    WHEN was.name IS NULL THEN 'price-added'::text
                    ELSE 'price-changed'::text
                END AS operation,
            NULL::numeric AS before_low,
            NULL::numeric AS before_mid,
            NULL::numeric AS before_high,
            NULL::timestamp with time zone AS before_published_at,
            NULL::integer AS before_corrections,
            NULL::numeric AS after_low,
            NULL::numeric AS after_mid,
            NULL::numeric AS after_high,
            NULL::timestamp with time zone AS after_published_at,
            NULL::integer AS after_corrections,
            was.name AS before_name,
            became.name AS after_name
           FROM ( VALUES (1)) one
             LEFT JOIN ( SELECT price.name
                   FROM price
                  WHERE price.id = c.price_id AND price.revision = c.revision
                UNION ALL
                 SELECT price_history.name
                   FROM price_history
                  WHERE price_history.id = c.price_id AND price_history.revision = c.revision) became ON true
             LEFT JOIN ( SELECT price_history.name
                   FROM price_history
                  WHERE price_history.id = c.price_id AND price_history.revision_to = c.revision) was ON true
          WHERE c.price_changes = 1
        UNION ALL
         SELECT c.price_changes + row_number() OVER (ORDER BY (COALESCE(became.date, was.date))) - 1,
            COALESCE(became.date, was.date) AS "coalesce",
                CASE
                    WHEN became.date IS NULL THEN 'withdrawn'::text
                    WHEN was.date IS NULL THEN 'published'::text
                    ELSE 'corrected'::text
                END AS "case",
            was.low AS before_low,
            was.mid AS before_mid,
            was.high AS before_high,
            was.published_at AS before_published_at,
            was.corrections AS before_corrections,
            became.low AS after_low,
            became.mid AS after_mid,
            became.high AS after_high,
            became.published_at AS after_published_at,
            became.corrections AS after_corrections,
            NULL::text AS before_name,
            NULL::text AS after_name
           FROM ( SELECT series.date,
                    series.low,
                    series.mid,
                    series.high,
                    series.published_at,
                    series.corrections
                   FROM series
                  WHERE series.price_id = c.price_id AND series.date >= c.first_date AND series.date <= c.last_date AND series.revision = c.revision
                UNION ALL
                 SELECT series_history.date,
                    series_history.low,
                    series_history.mid,
                    series_history.high,
                    series_history.published_at,
                    series_history.corrections
                   FROM series_history
                  WHERE series_history.price_id = c.price_id AND series_history.date >= c.first_date AND series_history.date <= c.last_date AND series_history.revision = c.revision) became
             FULL JOIN ( SELECT series_history.date,
                    series_history.low,
                    series_history.mid,
                    series_history.high,
                    series_history.published_at,
                    series_history.corrections
                   FROM series_history
                  WHERE series_history.price_id = c.price_id AND series_history.revision_to = c.revision AND series_history.date >= c.first_date AND series_history.date <= c.last_date) was ON was.date = became.date) change;

comment on column published.change.after_corrections is 'Number of corrections after the change';

comment on column published.change.after_high is 'High end of the point after the change, or null';

comment on column published.change.after_low is 'Low end of the point after the change, or null';

comment on column published.change.after_mid is 'Mid of the point after the change; null if there was none';

comment on column published.change.after_name is 'Name of the price after a change of its attributes; null for a point';

comment on column published.change.after_published_at is 'Publication of the value after the change';

comment on column published.change.before_corrections is 'Number of corrections before the change';

comment on column published.change.before_high is 'High end of the point before the change, or null';

comment on column published.change.before_low is 'Low end of the point before the change, or null';

comment on column published.change.before_mid is 'Mid of the point before the change; null if there was none';

comment on column published.change.before_name is 'Name of the price before a change of its attributes; null for a point';

comment on column published.change.before_published_at is 'Publication of the value before the change';

comment on column published.change.code is 'Code of the price, unique over all markets';

comment on column published.change.date is 'Day of the point; null for a change of the price itself';

comment on column published.change.market is 'Slug of the market';

comment on column published.change.number is 'Place in the feed, growing by one without a gap';

comment on column published.change.operation is 'price-added, price-changed, published, corrected or withdrawn';

comment on column published.change.recorded_at is 'Time of the commit';

comment on column published.change.revision is 'Revision that made the change';

comment on column published.change.seq is 'The position as the API writes it: a value of after in GET /v3/changes';

comment on view published.change is 'The change feed: a row for each new, corrected or withdrawn point, and each change of a price.';

create table vat_rate (
  id integer generated always as identity not null,
  country text not null,
  valid_from date not null,
  rate numeric not null,
  batch_id integer,
  revision bigint default current_revision() not null,
  constraint vat_rate_pkey PRIMARY KEY (id),
  constraint vat_rate_once UNIQUE (country, valid_from),
  constraint vat_rate_revision_fkey FOREIGN KEY (revision) REFERENCES revision(number),
  constraint vat_rate_country_formed CHECK ((country ~ '^[A-Z]{2}$'::text)),
  constraint vat_rate_rate_check CHECK (((rate >= (0)::numeric) AND (rate <= (100)::numeric) AND (scale(rate) <= 4))),
  constraint vat_rate_valid_from_check CHECK (((valid_from >= '1800-01-01'::date) AND (valid_from <= '2199-12-31'::date)))
);

comment on column vat_rate.country is 'ISO 3166 code of two letters.';

comment on column vat_rate.rate is 'The rate in percent of the price without the tax.';

comment on table vat_rate is 'Rates of value added tax: each is valid from its day until the next one of its country.';

CREATE TRIGGER vat_rate_identity_is_fixed BEFORE UPDATE ON vat_rate FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id OR old.country IS DISTINCT FROM new.country OR old.valid_from IS DISTINCT FROM new.valid_from) EXECUTE FUNCTION refuse_new_key();

create table vat_rate_history (
  id integer not null,
  country text not null,
  valid_from date not null,
  rate numeric not null,
  batch_id integer,
  revision bigint not null,
  revision_to bigint not null,
  constraint vat_rate_history_pkey PRIMARY KEY (id, revision),
  constraint vat_rate_history_revision_to_fkey FOREIGN KEY (revision_to) REFERENCES revision(number),
  constraint vat_rate_country_formed CHECK ((country ~ '^[A-Z]{2}$'::text)),
  constraint vat_rate_history_check CHECK ((revision < revision_to)),
  constraint vat_rate_rate_check CHECK (((rate >= (0)::numeric) AND (rate <= (100)::numeric) AND (scale(rate) <= 4))),
  constraint vat_rate_valid_from_check CHECK (((valid_from >= '1800-01-01'::date) AND (valid_from <= '2199-12-31'::date)))
);

comment on table vat_rate_history is 'Superseded rows of vat_rate: in force from revision up to revision_to, exclusive.';

CREATE TRIGGER vat_rate_revision_is_open BEFORE INSERT OR DELETE OR UPDATE ON vat_rate FOR EACH STATEMENT EXECUTE FUNCTION check_revision();

CREATE TRIGGER vat_rate_history_by_triggers BEFORE INSERT ON vat_rate_history FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE TRIGGER vat_rate_insert_has_revision BEFORE INSERT ON vat_rate FOR EACH ROW WHEN (current_revision() IS NULL OR new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION refuse_without_revision();

CREATE TRIGGER vat_rate_stamp BEFORE UPDATE ON vat_rate FOR EACH ROW WHEN (new.revision IS DISTINCT FROM current_revision()) EXECUTE FUNCTION stamp_revision();

CREATE TRIGGER vat_rate_no_truncate BEFORE TRUNCATE ON vat_rate FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER vat_rate_history_frozen BEFORE DELETE OR UPDATE ON vat_rate_history FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER vat_rate_history_no_truncate BEFORE TRUNCATE ON vat_rate_history FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION public.vat_rate_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  if current_revision() is null and exists (select from superseded) then
    raise exception 'a change of vat_rate needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  insert into vat_rate_history (id, country, valid_from, rate, batch_id, revision, revision_to)
    select id, country, valid_from, rate, batch_id, revision, current_revision() from superseded
      where revision < current_revision();
  return null;
end $function$
;

comment on function vat_rate_keep() is 'Copies superseded rows of vat_rate to its history.';

revoke execute on function vat_rate_keep() from public;

CREATE TRIGGER vat_rate_keep_updated AFTER UPDATE ON vat_rate REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION vat_rate_keep();

CREATE TRIGGER vat_rate_keep_deleted AFTER DELETE ON vat_rate REFERENCING OLD TABLE AS superseded FOR EACH STATEMENT EXECUTE FUNCTION vat_rate_keep();

CREATE OR REPLACE FUNCTION public.vat_rate_at(at bigint)
 RETURNS TABLE(id integer, country text, valid_from date, rate numeric, batch_id integer, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT vat_rate.id,
     vat_rate.country,
     vat_rate.valid_from,
     vat_rate.rate,
     vat_rate.batch_id,
     vat_rate.revision
    FROM vat_rate
   WHERE (vat_rate.revision <= vat_rate_at.at)
 UNION ALL
  SELECT vat_rate_history.id,
     vat_rate_history.country,
     vat_rate_history.valid_from,
     vat_rate_history.rate,
     vat_rate_history.batch_id,
     vat_rate_history.revision
    FROM vat_rate_history
   WHERE ((vat_rate_history.revision <= vat_rate_at.at) AND (vat_rate_history.revision_to > vat_rate_at.at));
END
;

comment on function vat_rate_at(bigint) is 'The rows of vat_rate at a revision.';

CREATE OR REPLACE FUNCTION public.vat_rate_touch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $function$
;

comment on function vat_rate_touch() is 'Records that a revision changed vat_rate.';

revoke execute on function vat_rate_touch() from public;

CREATE TRIGGER vat_rate_touch_inserted AFTER INSERT ON vat_rate REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION vat_rate_touch();

CREATE TRIGGER vat_rate_touch_updated AFTER UPDATE ON vat_rate REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION vat_rate_touch();

CREATE TRIGGER vat_rate_touch_deleted AFTER DELETE ON vat_rate REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION vat_rate_touch();

CREATE OR REPLACE FUNCTION public.price_at_3(at bigint)
 RETURNS TABLE(id integer, market_id smallint, code text, code_key text, price_type text, currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text, short_name text, specification jsonb, assessment_launched_at date, price_category_id integer, frequency_id integer, purity_id integer, grade_id integer, capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer, feedstock_id integer, incoterm_id integer, country_id integer, region_id integer, trade_type_id integer, service_id integer, observes text, vat_country text, revision bigint)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT price.id,
     price.market_id,
     price.code,
     price.code_key,
     price.price_type,
     price.currency_id,
     price.unit_id,
     price.unit_dimension,
     price.product_id,
     price.name,
     price.short_name,
     price.specification,
     price.assessment_launched_at,
     price.price_category_id,
     price.frequency_id,
     price.purity_id,
     price.grade_id,
     price.capacity_id,
     price.cell_format_id,
     price.mesh_size_id,
     price.sub_product_id,
     price.feedstock_id,
     price.incoterm_id,
     price.country_id,
     price.region_id,
     price.trade_type_id,
     price.service_id,
     COALESCE(price.observes, 'day'::text) AS "coalesce",
     price.vat_country,
     price.revision
    FROM price
   WHERE (price.revision <= price_at_3.at)
 UNION ALL
  SELECT price_history.id,
     price_history.market_id,
     price_history.code,
     price_history.code_key,
     price_history.price_type,
     price_history.currency_id,
     price_history.unit_id,
     price_history.unit_dimension,
     price_history.product_id,
     price_history.name,
     price_history.short_name,
     price_history.specification,
     price_history.assessment_launched_at,
     price_history.price_category_id,
     price_history.frequency_id,
     price_history.purity_id,
     price_history.grade_id,
     price_history.capacity_id,
     price_history.cell_format_id,
     price_history.mesh_size_id,
     price_history.sub_product_id,
     price_history.feedstock_id,
     price_history.incoterm_id,
     price_history.country_id,
     price_history.region_id,
     price_history.trade_type_id,
     price_history.service_id,
     COALESCE(price_history.observes, 'day'::text) AS "coalesce",
     price_history.vat_country,
     price_history.revision
    FROM price_history
   WHERE ((price_history.revision <= price_at_3.at) AND (price_history.revision_to > price_at_3.at));
END
;

comment on function price_at_3(bigint) is 'The rows of price at a revision. What was never stated to be a mean is of a day.';

create or replace view published.vat_rate as
 SELECT country,
    valid_from,
    rate,
    revision
   FROM vat_rate;

comment on column published.vat_rate.country is 'ISO 3166 code of two letters';

comment on column published.vat_rate.rate is 'The rate in percent of the price without VAT';

comment on column published.vat_rate.revision is 'Revision that wrote this rate';

comment on column published.vat_rate.valid_from is 'First day of the rate';

comment on view published.vat_rate is 'The present rates of VAT: each is valid from its day until the next one of its country.';

CREATE OR REPLACE FUNCTION public.price_at_4(at bigint)
 RETURNS TABLE(id integer, market_id smallint, code text, code_key text, price_type text, currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text, short_name text, specification jsonb, assessment_launched_at date, price_category_id integer, frequency_id integer, purity_id integer, grade_id integer, capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer, feedstock_id integer, incoterm_id integer, country_id integer, region_id integer, trade_type_id integer, service_id integer, revision bigint, observes text, vat_country text, payable_reference jsonb)
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT price.id,
     price.market_id,
     price.code,
     price.code_key,
     price.price_type,
     price.currency_id,
     price.unit_id,
     price.unit_dimension,
     price.product_id,
     price.name,
     price.short_name,
     price.specification,
     price.assessment_launched_at,
     price.price_category_id,
     price.frequency_id,
     price.purity_id,
     price.grade_id,
     price.capacity_id,
     price.cell_format_id,
     price.mesh_size_id,
     price.sub_product_id,
     price.feedstock_id,
     price.incoterm_id,
     price.country_id,
     price.region_id,
     price.trade_type_id,
     price.service_id,
     price.revision,
     COALESCE(price.observes, 'day'::text) AS "coalesce",
     price.vat_country,
     price.payable_reference
    FROM price
   WHERE (price.revision <= price_at_4.at)
 UNION ALL
  SELECT price_history.id,
     price_history.market_id,
     price_history.code,
     price_history.code_key,
     price_history.price_type,
     price_history.currency_id,
     price_history.unit_id,
     price_history.unit_dimension,
     price_history.product_id,
     price_history.name,
     price_history.short_name,
     price_history.specification,
     price_history.assessment_launched_at,
     price_history.price_category_id,
     price_history.frequency_id,
     price_history.purity_id,
     price_history.grade_id,
     price_history.capacity_id,
     price_history.cell_format_id,
     price_history.mesh_size_id,
     price_history.sub_product_id,
     price_history.feedstock_id,
     price_history.incoterm_id,
     price_history.country_id,
     price_history.region_id,
     price_history.trade_type_id,
     price_history.service_id,
     price_history.revision,
     COALESCE(price_history.observes, 'day'::text) AS "coalesce",
     price_history.vat_country,
     price_history.payable_reference
    FROM price_history
   WHERE ((price_history.revision <= price_at_4.at) AND (price_history.revision_to > price_at_4.at));
END
;

comment on function price_at_4(bigint) is 'The rows of price at a revision. What was never stated to be a mean is of a day.';

create table webhook (
  id integer generated always as identity not null,
  public_id text not null,
  url text not null,
  api_key_id integer not null,
  markets text[],
  codes text[],
  operations text[],
  created_at timestamp with time zone default clock_timestamp() not null,
  created_by text default key_actor() not null,
  "position" bigint not null,
  paused_until timestamp with time zone,
  delivered_at timestamp with time zone,
  failing_since timestamp with time zone,
  disabled_at timestamp with time zone,
  disabled_reason text,
  constraint webhook_pkey PRIMARY KEY (id),
  constraint webhook_public_id_key UNIQUE (public_id),
  constraint webhook_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id) ON DELETE CASCADE,
  constraint webhook_check CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
  constraint webhook_position_check CHECK (("position" >= 0)),
  constraint webhook_public_id_check CHECK ((public_id ~ '^wh_[0-9A-Za-z]{10}$'::text)),
  constraint webhook_url_formed CHECK (((url ~ '^https?://[!-~]+$'::text) AND (length(url) <= 1024)))
);

comment on column webhook."position" is 'The last revision for which messages were made.';

comment on column webhook.api_key_id is 'The API key whose scopes bound the messages. A key that was rotated stands for its replacement.';

comment on column webhook.failing_since is 'The first failed attempt since the last delivery; null if the last attempt was delivered.';

comment on column webhook.paused_until is 'The end of the last Retry-After of the receiver.';

comment on table webhook is 'Subscriptions of receivers to doorbells. A null filter selects everything that the API key may read.';

create table webhook_secret (
  id integer generated always as identity not null,
  webhook_id integer not null,
  secret text not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  expires_at timestamp with time zone,
  constraint webhook_secret_pkey PRIMARY KEY (id),
  constraint webhook_secret_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhook(id) ON DELETE CASCADE,
  constraint webhook_secret_secret_check CHECK ((secret ~ '^whsec_[0-9A-Za-z+/]{32,86}={0,2}$'::text))
);

comment on table webhook_secret is 'Secrets that sign messages: one for each subscription, two during a rotation. Only the account that sends reads them.';

CREATE INDEX webhook_secret_of ON public.webhook_secret USING btree (webhook_id);

create table webhook_message (
  id uuid default gen_random_uuid() not null,
  webhook_id integer not null,
  type text not null,
  revision bigint,
  content jsonb not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  due_at timestamp with time zone default clock_timestamp() not null,
  claimed_until timestamp with time zone,
  attempts smallint default 0 not null,
  last_result text,
  outcome text,
  ended_at timestamp with time zone,
  constraint webhook_message_pkey PRIMARY KEY (id),
  constraint webhook_message_of_commit UNIQUE (webhook_id, revision),
  constraint webhook_message_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES webhook(id) ON DELETE CASCADE,
  constraint webhook_message_check CHECK (((outcome IS NULL) = (ended_at IS NULL))),
  constraint webhook_message_check1 CHECK (((type = 'prices.changed'::text) = (revision IS NOT NULL))),
  constraint webhook_message_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'failed'::text, 'refused'::text, 'gone'::text]))),
  constraint webhook_message_type_check CHECK ((type = ANY (ARRAY['prices.changed'::text, 'price.late'::text, 'webhook.test'::text])))
);

comment on column webhook_message.last_result is 'The status or the error of the last attempt; never the answer of the receiver.';

comment on table webhook_message is 'Messages to receivers. One without an outcome waits until due_at. A sender claims it for a while.';

CREATE INDEX webhook_message_waiting ON public.webhook_message USING btree (webhook_id, due_at, id) WHERE (outcome IS NULL);

CREATE INDEX webhook_message_claimed ON public.webhook_message USING btree (webhook_id) WHERE ((outcome IS NULL) AND (claimed_until IS NOT NULL));

CREATE INDEX webhook_message_ended ON public.webhook_message USING btree (ended_at) WHERE (outcome IS NOT NULL);

create table webhook_count (
  outcome text not null,
  attempts bigint not null,
  constraint webhook_count_pkey PRIMARY KEY (outcome)
);

comment on table webhook_count is 'Attempts to send messages, by outcome, since the first one.';

create table webhook_late (
  code text not null,
  day date not null,
  constraint webhook_late_pkey PRIMARY KEY (code)
);

comment on table webhook_late is 'Prices that are late, with the missing day, for which messages were made.';

CREATE OR REPLACE FUNCTION public.audit_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'public', 'pg_temp'
AS $function$
declare
  changed webhook := coalesce(new, old);
  described jsonb := jsonb_build_object('webhook', changed.public_id,
    'receiver', substring(changed.url, '^https?://[^/?]+'));
begin
  insert into key_audit (actor, action, public_id, before, after, reason)
    select key_actor(), 'changed', k.public_id,
      case when tg_op = 'DELETE' then described end,
      case when tg_op = 'INSERT' then described end, key_reason()
    from api_key k where k.id = changed.api_key_id;
  return null;
end $function$
;

comment on function audit_webhook() is 'Records a new or removed webhook in the audit of its API key.';

revoke execute on function audit_webhook() from public;

CREATE TRIGGER webhook_audit AFTER INSERT OR DELETE ON webhook FOR EACH ROW EXECUTE FUNCTION audit_webhook();

CREATE TRIGGER webhook_no_truncate BEFORE TRUNCATE ON webhook FOR EACH STATEMENT EXECUTE FUNCTION refuse_key_truncate();
