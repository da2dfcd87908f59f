import { type Kysely, sql } from 'kysely';

/** Reference data: currencies, units, the values of dimensions, products. */
const SCHEMA = `
create function refuse_new_key() returns trigger language plpgsql as $$
begin
  raise exception 'what identifies a row of % never changes', tg_table_name
    using hint = 'Remove the row and insert another.';
end $$;
comment on function refuse_new_key() is 'Rejects changes of identifying columns.';

create table currency (
  id smallint primary key generated always as identity,
  uuid uuid not null unique,
  iso text not null unique check (iso ~ '^[A-Z]{3}$'),
  name text not null check (name <> ''),
  symbol text not null check (symbol <> ''),
  revision bigint not null default current_revision() references revision (number)
);
comment on table currency is 'Currencies of ISO 4217, of prices and of conversions.';

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
  revision bigint not null default current_revision() references revision (number),
  unique (id, dimension)
);
comment on table unit_of_measure is
  'Units with the exact factor to the base of their dimension (kg, kg contained, kWh, piece, percent). Units convert only within one dimension.';

create table dimension_value (
  id integer primary key generated always as identity,
  uuid uuid not null unique,
  kind text not null check (kind in (
    'price-type', 'price-category', 'frequency', 'purity', 'grade', 'capacity',
    'cell-format', 'mesh-size', 'sub-product', 'feedstock', 'incoterm', 'country',
    'region', 'trade-type', 'service')),
  slug text not null check (slug ~ '^[^[:space:]]+$'),
  name text not null check (name <> '' and name !~ '[[:cntrl:]]'),
  short_name text check (short_name <> ''),
  match_key text not null check (match_key <> ''),
  revision bigint not null default current_revision() references revision (number),
  unique (kind, slug),
  unique (kind, match_key),
  constraint dimension_value_price_type_closed
    check (kind <> 'price-type' or slug in ('price', 'payable')),
  constraint dimension_value_frequency_closed
    check (kind <> 'frequency' or short_name in ('D', '2xW', 'W', '2W', 'M', 'Q', 'A'))
);
comment on table dimension_value is
  'The values of all dimensions: purities, incoterms, regions …, and price categories, types and frequencies.';

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
  revision bigint not null default current_revision() references revision (number),
  unique (market_id, slug),
  unique (market_id, match_key),
  unique (id, market_id)
);
comment on table product is 'The products of each market.';

create trigger currency_identity_is_fixed before update on currency for each row
  when ((old.id, old.uuid, old.iso) is distinct from (new.id, new.uuid, new.iso))
  execute function refuse_new_key();
create trigger unit_of_measure_identity_is_fixed before update on unit_of_measure for each row
  when ((old.id, old.uuid, old.slug, old.dimension, old.factor)
    is distinct from (new.id, new.uuid, new.slug, new.dimension, new.factor))
  execute function refuse_new_key();
create trigger dimension_value_identity_is_fixed before update on dimension_value for each row
  when ((old.id, old.uuid, old.kind, old.slug) is distinct from (new.id, new.uuid, new.kind, new.slug))
  execute function refuse_new_key();
create trigger product_identity_is_fixed before update on product for each row
  when ((old.id, old.uuid, old.market_id, old.slug)
    is distinct from (new.id, new.uuid, new.market_id, new.slug))
  execute function refuse_new_key();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(SCHEMA).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop table product, dimension_value, unit_of_measure, currency;
    drop function refuse_new_key();
  `)
    .execute(db);
}
