import { type Kysely, sql } from 'kysely';

const COLUMNS = [
  ...['id', 'market_id', 'code', 'code_key', 'price_type', 'currency_id', 'unit_id'],
  ...['unit_dimension', 'product_id', 'name', 'short_name', 'specification'],
  ...['assessment_launched_at', 'price_category_id', 'frequency_id', 'purity_id', 'grade_id'],
  ...['capacity_id', 'cell_format_id', 'mesh_size_id', 'sub_product_id', 'feedstock_id'],
  ...['incoterm_id', 'country_id', 'region_id', 'trade_type_id', 'service_id'],
].join(', ');

/**
 * The attribute `observes` of a price: its values are of a day, or means of a month or a year. Null
 * is a price that nobody described in this respect, and reads as a day: a shipped description may
 * fill it in later, without overwriting what somebody stated.
 *
 * The check of the table is validated at once: all rows are null, and there are few prices.
 */
const OBSERVES = `
select lock_revisions();

alter table price add column observes text
  constraint price_observes check (observes in ('day', 'month-mean', 'year-mean'));
alter table price_history add column observes text
  constraint price_history_observes check (observes in ('day', 'month-mean', 'year-mean'));
comment on column price.observes is
  'What a value is: of a day, or the mean of a month or a year. Null, if never stated, is a day.';

create or replace function price_keep() returns trigger language plpgsql
    security definer set search_path = pg_catalog, public, pg_temp as $$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of price needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into price_history (${COLUMNS}, observes, revision, revision_to)
        select ${COLUMNS}, observes, revision, current_revision()
          from superseded where revision < current_revision();
      return null;
    end $$;

create function price_at_2(at bigint) returns table (
    id integer, market_id smallint, code text, code_key text, price_type text,
    currency_id smallint, unit_id smallint, unit_dimension text, product_id integer, name text,
    short_name text, specification jsonb, assessment_launched_at date,
    price_category_id integer, frequency_id integer, purity_id integer, grade_id integer,
    capacity_id integer, cell_format_id integer, mesh_size_id integer, sub_product_id integer,
    feedstock_id integer, incoterm_id integer, country_id integer, region_id integer,
    trade_type_id integer, service_id integer, observes text, revision bigint)
  language sql stable parallel safe
begin atomic
  select ${COLUMNS}, coalesce(observes, 'day'), revision
    from price where revision <= price_at_2.at
  union all
  select ${COLUMNS}, coalesce(observes, 'day'), revision
    from price_history where revision <= price_at_2.at and revision_to > price_at_2.at;
end;
comment on function price_at_2(bigint) is
  'The rows of price at a revision. What was never stated to be a mean is of a day.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(OBSERVES).execute(db);
}
