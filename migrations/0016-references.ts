import { type Kysely, sql } from 'kysely';

/**
 * The references of payables: the price that a payable is a percentage of, from a day on. One
 * column holds all of a payable, in the order of their days. Null is a payable whose reference is
 * unknown, and every price.
 *
 * The functions take the columns of `price` from the catalog, so that a migration before this one
 * may add a column too. The check is validated at once: all rows are null, and there are few prices.
 */
const REFERENCES = `
select lock_revisions();

alter table price add column payable_reference jsonb
  constraint price_reference_of_payable check (payable_reference is null or (price_type = 'payable'
    and jsonb_typeof(payable_reference) = 'array' and payable_reference <> '[]'));
alter table price_history add column payable_reference jsonb
  constraint price_history_reference_of_payable check (payable_reference is null
    or (price_type = 'payable'
      and jsonb_typeof(payable_reference) = 'array' and payable_reference <> '[]'));
comment on column price.payable_reference is
  'The prices that a payable is a percentage of, as [{"code", "side", "statistic", "element", "validFrom"}] in the order of their first days. Null if unknown.';

do $do$
declare
  columns text;
  selected text;
  types text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum),
      string_agg(case attname when 'observes' then 'coalesce(observes, ''day'')'
        else quote_ident(attname) end, ', ' order by attnum),
      string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' order by attnum)
    into columns, selected, types from pg_attribute
    where attrelid = 'price'::regclass and attnum > 0 and not attisdropped;
  execute format($f$
    create or replace function price_keep() returns trigger language plpgsql
        security definer set search_path = pg_catalog, public, pg_temp as $$
    begin
      if current_revision() is null and exists (select from superseded) then
        raise exception 'a change of price needs a revision of its own'
          using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
      end if;
      insert into price_history (%1$s, revision_to)
        select %1$s, current_revision() from superseded where revision < current_revision();
      return null;
    end $$;
    create function price_at_4(at bigint) returns table (%3$s)
      language sql stable parallel safe
    begin atomic
      select %2$s from price where revision <= price_at_4.at
      union all
      select %2$s from price_history
        where revision <= price_at_4.at and revision_to > price_at_4.at;
    end
  $f$, columns, selected, types);
end $do$;
comment on function price_at_4(bigint) is
  'The rows of price at a revision. What was never stated to be a mean is of a day.';
`;

const OF_LATEST = {
  code: "p.payable_reference -> -1 ->> 'code'",
  side: "p.payable_reference -> -1 ->> 'side'",
  statistic: "p.payable_reference -> -1 ->> 'statistic'",
  element: "p.payable_reference -> -1 ->> 'element'",
  valid_from: "(p.payable_reference -> -1 ->> 'validFrom')::date",
} as const;

const COLUMNS = Object.entries(OF_LATEST)
  .map(([name, value]) => `${value} as reference_${name}`)
  .join(', ');

/** Appends columns to the present text of the view. */
const VIEW = `
do $do$
declare
  present text := pg_get_viewdef('published.price'::regclass, true);
  appended text := regexp_replace(present, '\\n +FROM (public\\.)?price p\\n',
    $f$, ${COLUMNS}\\&$f$);
begin
  if appended = present then
    raise exception 'the view published.price is not the one of this software';
  end if;
  execute 'create or replace view published.price as ' || appended;
end $do$;
comment on column published.price.reference_code is
  'Code of the price that a payable is a percentage of; null if unknown';
comment on column published.price.reference_side is 'Side of that price: low, mid or high';
comment on column published.price.reference_statistic is
  'A session of that price, or the average of a month: session or month-average';
comment on column published.price.reference_element is 'Element of the payable, such as Ni';
comment on column published.price.reference_valid_from is
  'First day of this reference';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [REFERENCES, VIEW]) await sql.raw(part).execute(db);
}
