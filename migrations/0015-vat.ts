import { type Kysely, sql } from 'kysely';

/** Value added tax: the rates of each country, and the prices that include it. */

/** The rights of the owner, for rows that no account may write directly. */
const AS_OWNER = 'security definer set search_path = pg_catalog, public, pg_temp';

const RATES = `
create table vat_rate (
  id integer primary key generated always as identity,
  country text not null
    constraint vat_rate_country_formed check (country ~ '^[A-Z]{2}$'),
  valid_from date not null check (valid_from between '1800-01-01' and '2199-12-31'),
  rate numeric not null check (rate >= 0 and rate <= 100 and scale(rate) <= 4),
  batch_id integer,
  revision bigint not null default current_revision() references revision (number),
  constraint vat_rate_once unique (country, valid_from)
);
comment on table vat_rate is
  'Rates of value added tax: each is valid from its day until the next one of its country.';
comment on column vat_rate.country is 'ISO 3166 code of two letters.';
comment on column vat_rate.rate is 'The rate in percent of the price without the tax.';

create trigger vat_rate_identity_is_fixed before update on vat_rate for each row
  when ((old.id, old.country, old.valid_from)
    is distinct from (new.id, new.country, new.valid_from))
  execute function refuse_new_key();
`;

const RATE_COLUMNS = 'id, country, valid_from, rate, batch_id, revision';

/** History, revision stamps and the reading function, as in 0013-calendars. */
const VERSIONED_RATES = `
create table vat_rate_history (
  like vat_rate including constraints,
  revision_to bigint not null references revision (number),
  check (revision < revision_to),
  primary key (id, revision)
);
comment on table vat_rate_history is
  'Superseded rows of vat_rate: in force from revision up to revision_to, exclusive.';

create trigger vat_rate_revision_is_open before insert or update or delete on vat_rate
  execute function check_revision();
create trigger vat_rate_history_by_triggers before insert on vat_rate_history for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger vat_rate_insert_has_revision before insert on vat_rate for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();
create trigger vat_rate_stamp before update on vat_rate for each row
  when (new.revision is distinct from current_revision()) execute function stamp_revision();
create trigger vat_rate_no_truncate before truncate on vat_rate execute function refuse_change();
create trigger vat_rate_history_frozen before update or delete on vat_rate_history
  for each row execute function refuse_change();
create trigger vat_rate_history_no_truncate before truncate on vat_rate_history
  execute function refuse_change();

create function vat_rate_keep() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  if current_revision() is null and exists (select from superseded) then
    raise exception 'a change of vat_rate needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  insert into vat_rate_history (${RATE_COLUMNS}, revision_to)
    select ${RATE_COLUMNS}, current_revision() from superseded
      where revision < current_revision();
  return null;
end $$;
comment on function vat_rate_keep() is 'Copies superseded rows of vat_rate to its history.';
revoke execute on function vat_rate_keep() from public;
create trigger vat_rate_keep_updated after update on vat_rate
  referencing old table as superseded for each statement execute function vat_rate_keep();
create trigger vat_rate_keep_deleted after delete on vat_rate
  referencing old table as superseded for each statement execute function vat_rate_keep();

create function vat_rate_at(at bigint) returns table (
    id integer, country text, valid_from date, rate numeric, batch_id integer, revision bigint)
  language sql stable parallel safe
begin atomic
  select ${RATE_COLUMNS} from vat_rate where revision <= at
  union all
  select ${RATE_COLUMNS} from vat_rate_history where revision <= at and revision_to > at;
end;
comment on function vat_rate_at(bigint) is 'The rows of vat_rate at a revision.';

create function vat_rate_touch() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  perform refuse_after_seal();
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $$;
comment on function vat_rate_touch() is 'Records that a revision changed vat_rate.';
revoke execute on function vat_rate_touch() from public;
create trigger vat_rate_touch_inserted after insert on vat_rate
  referencing new table as changed for each statement execute function vat_rate_touch();
create trigger vat_rate_touch_updated after update on vat_rate
  referencing new table as changed for each statement execute function vat_rate_touch();
create trigger vat_rate_touch_deleted after delete on vat_rate
  referencing old table as changed for each statement execute function vat_rate_touch();
`;

const COLUMNS = [
  ...['id', 'market_id', 'code', 'code_key', 'price_type', 'currency_id', 'unit_id'],
  ...['unit_dimension', 'product_id', 'name', 'short_name', 'specification'],
  ...['assessment_launched_at', 'price_category_id', 'frequency_id', 'purity_id', 'grade_id'],
  ...['capacity_id', 'cell_format_id', 'mesh_size_id', 'sub_product_id', 'feedstock_id'],
  ...['incoterm_id', 'country_id', 'region_id', 'trade_type_id', 'service_id'],
].join(', ');

const FORMED = "check (vat_country is null or vat_country ~ '^[A-Z]{2}$' and price_type = 'price')";

/**
 * The attribute `vat_country` of a price: the country whose value added tax its values include.
 * Null is a price that is not known to include any.
 *
 * The check of the table is validated at once: all rows are null, and there are few prices.
 */
const PRICES = `
select lock_revisions();

alter table price add column vat_country text
  constraint price_vat_country ${FORMED};
alter table price_history add column vat_country text
  constraint price_history_vat_country ${FORMED};
comment on column price.vat_country is
  'Country, by its ISO 3166 code, whose value added tax the values include; null if not known to.';

create or replace function price_keep() returns trigger language plpgsql ${AS_OWNER} as $$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of price needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into price_history (${COLUMNS}, observes, vat_country, revision, revision_to)
        select ${COLUMNS}, observes, vat_country, revision, current_revision()
          from superseded where revision < current_revision();
      return null;
    end $$;

create function price_at_3(at bigint) returns table (
    id integer, market_id smallint, code text, code_key text, price_type text,
    currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text,
    short_name text, specification jsonb, assessment_launched_at date,
    price_category_id integer, frequency_id integer, purity_id integer, grade_id integer,
    capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer,
    feedstock_id integer, incoterm_id integer, country_id integer, region_id integer,
    trade_type_id integer, service_id integer, observes text, vat_country text, revision bigint)
  language sql stable parallel safe
begin atomic
  select ${COLUMNS}, coalesce(observes, 'day'), vat_country, revision
    from price where revision <= price_at_3.at
  union all
  select ${COLUMNS}, coalesce(observes, 'day'), vat_country, revision
    from price_history where revision <= price_at_3.at and revision_to > price_at_3.at;
end;
comment on function price_at_3(bigint) is
  'The rows of price at a revision. What was never stated to be a mean is of a day.';
`;

/** The dimensions of a price, in the order of the columns of the view. */
const DIMENSIONS = [
  ...['purity', 'grade', 'capacity', 'cell_format', 'mesh_size', 'sub_product', 'feedstock'],
  ...['incoterm', 'country', 'region', 'trade_type', 'service'],
];

const VIEWS = `
create or replace view published.price as
  select m.slug as market, p.code, p.name, p.short_name, type.name as price_type,
    product.name as product, product.alias as product_alias, product.chemical_code,
    product.is_sustainable, category.name as price_category, frequency.name as frequency,
    c.iso as currency, u.name as unit_of_measure,
    ${DIMENSIONS.map((name) => `${name}.name as ${name}`).join(', ')},
    p.specification, p.assessment_launched_at,
    coalesce(p.observes, 'day') as observes, latest.date as last_assessed_at,
    latest.published_at as latest_published_at, p.revision, p.vat_country
  from price p
    join market m on m.id = p.market_id
    join product on product.id = p.product_id
    join unit_of_measure u on u.id = p.unit_id
    left join currency c on c.id = p.currency_id
    join dimension_value type on type.kind = 'price-type' and type.slug = p.price_type
    join dimension_value category on category.id = p.price_category_id
    join dimension_value frequency on frequency.id = p.frequency_id
    ${DIMENSIONS.map((name) => `left join dimension_value ${name} on ${name}.id = p.${name}_id`).join('\n    ')}
    left join lateral (
      select s.date, s.published_at from series s
      where s.price_id = p.id order by s.date desc limit 1) as latest on true;
comment on column published.price.vat_country is
  'Country, by its ISO 3166 code, whose VAT the values include; null if not known to';

create view published.vat_rate as
  select country, valid_from, rate, revision from vat_rate;
comment on view published.vat_rate is
  'The present rates of VAT: each is valid from its day until the next one of its country.';
comment on column published.vat_rate.country is 'ISO 3166 code of two letters';
comment on column published.vat_rate.valid_from is 'First day of the rate';
comment on column published.vat_rate.rate is 'The rate in percent of the price without VAT';
comment on column published.vat_rate.revision is 'Revision that wrote this rate';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [RATES, VERSIONED_RATES, PRICES, VIEWS]) await sql.raw(part).execute(db);
}
