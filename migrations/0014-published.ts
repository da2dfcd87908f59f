import { type Kysely, sql } from 'kysely';

/*
 * The schema `published`: views for readers of SQL, with the names and columns of the CSV. A later
 * migration may only append columns to a view, by `create or replace view` with the present text of
 * src/db/schema.sql, and adds a comment for each.
 *
 * A view reads its tables with the rights of the owner, so its readers need none on the tables. It
 * calls no function, because a function would run with the rights of the reader.
 */

/** The dimensions of a price, each with its column `<name>_id` and a comment. */
const DIMENSIONS: Readonly<Record<string, string>> = {
  purity: 'Purity',
  grade: 'Grade',
  capacity: 'Capacity of a cell',
  cell_format: 'Format of a cell',
  mesh_size: 'Mesh size',
  sub_product: 'Sub-product',
  feedstock: 'Feedstock',
  incoterm: 'Incoterm',
  country: 'Country',
  region: 'Region',
  trade_type: 'Trade type',
  service: 'Service',
};

const NAMES = Object.keys(DIMENSIONS);

const PRICE = `
create or replace view published.price as
  select m.slug as market, p.code, p.name, p.short_name, type.name as price_type,
    product.name as product, product.alias as product_alias, product.chemical_code,
    product.is_sustainable, category.name as price_category, frequency.name as frequency,
    c.iso as currency, u.name as unit_of_measure,
    ${NAMES.map((name) => `${name}.name as ${name}`).join(', ')},
    p.specification, p.assessment_launched_at,
    coalesce(p.observes, 'day') as observes, latest.date as last_assessed_at,
    latest.published_at as latest_published_at, p.revision
  from price p
    join market m on m.id = p.market_id
    join product on product.id = p.product_id
    join unit_of_measure u on u.id = p.unit_id
    left join currency c on c.id = p.currency_id
    join dimension_value type on type.kind = 'price-type' and type.slug = p.price_type
    join dimension_value category on category.id = p.price_category_id
    join dimension_value frequency on frequency.id = p.frequency_id
    ${NAMES.map((name) => `left join dimension_value ${name} on ${name}.id = p.${name}_id`).join('\n    ')}
    left join lateral (
      select s.date, s.published_at from series s
      where s.price_id = p.id order by s.date desc limit 1) as latest on true;
`;

const POINT = `
create or replace view published.point as
  select m.slug as market, p.code, s.date, s.low, s.mid, s.high, c.iso as currency,
    u.name as unit_of_measure, s.published_at, s.corrections, s.revision
  from series s
    join price p on p.id = s.price_id
    join market m on m.id = p.market_id
    join unit_of_measure u on u.id = p.unit_id
    left join currency c on c.id = p.currency_id;
`;

/** All prices, also withdrawn ones. Code, market, currency and unit of a price never change. */
const EVERY_PRICE = `(
      select id, market_id, code, currency_id, unit_id from price
      union all
      select h.id, h.market_id, h.code, h.currency_id, h.unit_id from price_history h
        where not exists (select from price where price.id = h.id)
          and h.revision = (select max(newest.revision) from price_history newest
            where newest.id = h.id))`;

/*
 * `point_asof` is a query of this view that the planner inlines, so a condition on the code or the
 * date uses the indexes.
 */
const PAST = `
create or replace view published.point_version as
  select m.slug as market, p.code, s.date, s.low, s.mid, s.high,
    coalesce(c.iso, (select past.iso from currency_history past where past.id = p.currency_id
      order by past.revision desc limit 1)) as currency,
    u.name as unit_of_measure, s.published_at, s.corrections, s.revision, s.revision_to
  from (
      select price_id, date, low, mid, high, published_at, corrections, revision,
        null::bigint as revision_to
      from series
      union all
      select price_id, date, low, mid, high, published_at, corrections, revision, revision_to
      from series_history) as s
    join ${EVERY_PRICE} as p on p.id = s.price_id
    join market m on m.id = p.market_id
    join unit_of_measure u on u.id = p.unit_id
    left join currency c on c.id = p.currency_id;

create or replace function published.point_asof(at bigint) returns table (
    market text, code text, date date, low numeric, mid numeric, high numeric, currency text,
    unit_of_measure text, published_at timestamptz, corrections integer, revision bigint)
  language sql stable parallel safe
begin atomic
  select v.market, v.code, v.date, v.low, v.mid, v.high, v.currency, v.unit_of_measure,
    v.published_at, v.corrections, v.revision
  from published.point_version v
  where v.revision <= point_asof.at
    and (v.revision_to is null or v.revision_to > point_asof.at);
end;
comment on function published.point_asof(bigint) is
  'The points as they were at a revision, with the columns of published.point.';
`;

const RATE = `
create or replace view published.rate as
  select r.source, base.iso as base, c.iso as currency, r.date, r.rate, s.is_sample, r.revision
  from fx_rate r
    join fx_source s on s.slug = r.source
    join currency base on base.id = s.base_currency_id
    join currency c on c.id = r.currency_id;
`;

const REVISION = `
create or replace view published.revision as
  select r.number as revision, s.epoch || r.commit_id || '.' || r.number as name,
    r.committed_at as recorded_at
  from revision r cross join service s;
`;

/** The values of a changed point, and those that a price itself lacks. */
const VALUES = ['low', 'mid', 'high', 'published_at', 'corrections'];
const valuesOf = (alias: string, side: string): string =>
  VALUES.map((name) => `${alias}.${name} as ${side}_${name}`).join(', ');

/*
 * The changes are read as by the feed: the values that a revision wrote are in `series` or, if
 * superseded since, in its history, and the values that it ended are in the history.
 */
const CHANGE = `
create or replace view published.change as
  select c.first_seq + change.place as number,
    s.epoch || r.commit_id || '.' || (c.first_seq + change.place) as seq,
    r.committed_at as recorded_at, change.operation, m.slug as market, p.code, change.date,
    c.revision,
    ${['before', 'after'].flatMap((side) => VALUES.map((name) => `change.${side}_${name}`)).join(', ')},
    change.before_name, change.after_name
  from change_segment c
    join revision r on r.number = c.revision
    join market m on m.id = c.market_id
    join ${EVERY_PRICE} as p on p.id = c.price_id
    cross join service s
    cross join lateral (
      select 0::bigint as place, null::date as date,
        case when became.name is null then 'withdrawn'
          when was.name is null then 'price-added' else 'price-changed' end as operation,
        ${['before', 'after']
          .flatMap((side) => [
            ...['low', 'mid', 'high'].map((name) => `null::numeric as ${side}_${name}`),
            `null::timestamptz as ${side}_published_at`,
            `null::integer as ${side}_corrections`,
          ])
          .join(', ')},
        was.name as before_name, became.name as after_name
      from (values (1)) as one
        left join (
          select name from price where id = c.price_id and revision = c.revision
          union all
          select name from price_history where id = c.price_id and revision = c.revision
        ) as became on true
        left join (
          select name from price_history where id = c.price_id and revision_to = c.revision
        ) as was on true
      where c.price_changes = 1
      union all
      select c.price_changes + row_number() over (order by coalesce(became.date, was.date)) - 1,
        coalesce(became.date, was.date),
        case when became.date is null then 'withdrawn'
          when was.date is null then 'published' else 'corrected' end,
        ${valuesOf('was', 'before')}, ${valuesOf('became', 'after')},
        null::text as before_name, null::text as after_name
      from (
          select date, ${VALUES.join(', ')} from series
            where price_id = c.price_id and date between c.first_date and c.last_date
              and revision = c.revision
          union all
          select date, ${VALUES.join(', ')} from series_history
            where price_id = c.price_id and date between c.first_date and c.last_date
              and revision = c.revision) as became
        full join (
          select date, ${VALUES.join(', ')} from series_history
            where price_id = c.price_id and revision_to = c.revision
              and date between c.first_date and c.last_date) as was
        on was.date = became.date
    ) as change;
`;

const OF_POINT = {
  market: 'Slug of the market',
  code: 'Code of the price, unique over all markets',
  date: 'Day of the point',
  low: 'Low end, or null',
  mid: 'Mid; not always the average of low and high',
  high: 'High end, or null',
  currency: 'ISO 4217 code of the currency of the numbers; null for a payable',
  unit_of_measure: 'Present name of the unit of the numbers; Percent for a payable',
  published_at: 'Time at which this value was published',
  corrections: 'Number of corrections by then',
  revision: 'Revision that wrote this value',
};

const sideOf = (side: 'before' | 'after') => ({
  [`${side}_low`]: `Low end of the point ${side} the change, or null`,
  [`${side}_mid`]: `Mid of the point ${side} the change; null if there was none`,
  [`${side}_high`]: `High end of the point ${side} the change, or null`,
  [`${side}_published_at`]: `Publication of the value ${side} the change`,
  [`${side}_corrections`]: `Number of corrections ${side} the change`,
});

/** The comment of each view and of each of its columns. */
const COMMENTS: Readonly<
  Record<string, { readonly view: string; readonly columns: Readonly<Record<string, string>> }>
> = {
  price: {
    view: 'The present prices: a row for each, with the names of its attributes as in the CSV.',
    columns: {
      market: OF_POINT.market,
      code: OF_POINT.code,
      name: 'Name of the price',
      short_name: 'Short name, or null',
      price_type: 'Name of the type: a price in a currency, or a payable in percent',
      product: 'Name of the product',
      product_alias: 'Short name of the product in the trade',
      chemical_code: 'Chemical formula of the product',
      is_sustainable: 'True for a low-carbon or recycled variety',
      price_category: 'Name of the category',
      frequency: 'Name of the assessment frequency',
      currency: OF_POINT.currency,
      unit_of_measure: OF_POINT.unit_of_measure,
      ...Object.fromEntries(
        Object.entries(DIMENSIONS).map(([name, text]) => [name, `${text}; null if it has none`]),
      ),
      specification: 'Properties without a column: a list of name, value and order',
      assessment_launched_at: 'First day of the assessment, or null',
      observes: 'What a value is: of a day, or the mean of a month or a year',
      last_assessed_at: 'Day of the latest point; null without one',
      latest_published_at: 'Publication of the latest point; null without one',
      revision: 'Revision that wrote these attributes',
    },
  },
  point: { view: 'The present value of each price on each date.', columns: OF_POINT },
  point_version: {
    view: 'Every value that a price ever had on a date, with the revisions in which it was in force.',
    columns: {
      ...OF_POINT,
      revision_to: 'Revision that replaced or withdrew this value; null for a present value',
    },
  },
  rate: {
    view: 'The present exchange rates, as their sources published them.',
    columns: {
      source: 'Publisher of the rate; SAMPLE is invented data',
      base: 'ISO 4217 code of the base currency of the source',
      currency: 'ISO 4217 code of the quoted currency',
      date: 'Day of the rate',
      rate: 'Units of the quoted currency for one unit of the base',
      is_sample: 'True for invented rates',
      revision: 'Revision that wrote this rate',
    },
  },
  revision: {
    view: 'The commits of data. Each has a number one greater than that of the commit before it.',
    columns: {
      revision: 'Number, as in the other views and for point_asof',
      name: 'The revision as the API writes it in $metadata.revision and in options.revision',
      recorded_at: 'Time of the commit; grows strictly',
    },
  },
  change: {
    view: 'The change feed: a row for each new, corrected or withdrawn point, and each change of a price.',
    columns: {
      number: 'Place in the feed, growing by one without a gap',
      seq: 'The position as the API writes it: a value of after in GET /v3/changes',
      recorded_at: 'Time of the commit',
      operation: 'price-added, price-changed, published, corrected or withdrawn',
      market: OF_POINT.market,
      code: OF_POINT.code,
      date: 'Day of the point; null for a change of the price itself',
      revision: 'Revision that made the change',
      ...sideOf('before'),
      ...sideOf('after'),
      before_name: 'Name of the price before a change of its attributes; null for a point',
      after_name: 'Name of the price after a change of its attributes; null for a point',
    },
  },
};

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

const commentsOf = (name: string): string => {
  const { view, columns } = COMMENTS[name] ?? { view: '', columns: {} };
  return [
    `comment on view published.${name} is ${quoted(view)};`,
    ...Object.entries(columns).map(
      ([column, text]) => `comment on column published.${name}.${column} is ${quoted(text)};`,
    ),
  ].join('\n');
};

const SCHEMA = `
do $$ begin
  if to_regnamespace('published') is null
      and not has_database_privilege(current_database(), 'create') then
    raise exception 'this account may not create the schema published'
      using hint = 'Run db roles of this version first, as the administrator of the database.';
  end if;
end $$;
create schema if not exists published;
comment on schema published is
  'Views for readers of SQL. Their names and columns stay; new columns are appended.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [SCHEMA, PRICE, POINT, PAST, RATE, REVISION, CHANGE]) {
    await sql.raw(part).execute(db);
  }
  for (const name of Object.keys(COMMENTS)) await sql.raw(commentsOf(name)).execute(db);
}
