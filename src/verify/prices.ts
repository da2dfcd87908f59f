import type pg from 'pg';
import { columnName, DIMENSIONS } from '../catalog/dimensions.ts';
import { MARKETS, type Market } from '../catalog/markets.ts';
import { matchKey } from '../catalog/match-key.ts';
import { REFERENCE_SIDES, REFERENCE_STATISTICS } from '../catalog/payable-reference.ts';
import { type BrokenRow, everyVersion, type Rule } from './rule.ts';

const literal = (text: string): string => `'${text}'`;
const list = (texts: readonly string[]): string => texts.map(literal).join(', ');

/** Columns of `price` that refer to `dimension_value`, with the required kind. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['price_category_id', 'price-category'],
  ['frequency_id', 'frequency'],
  ...Object.values(DIMENSIONS).map(({ field, kind }) => [columnName(field), kind] as const),
]);

const PRICES = everyVersion(
  'price',
  `id, code, market_id, price_type, currency_id, unit_id, unit_dimension, product_id, specification,
   payable_reference, ${[...KINDS.keys()].join(', ')}`,
);

/** Columns that identify a row and must never change, by table. */
const IDENTITY: Readonly<Record<string, readonly string[]>> = {
  currency: ['uuid', 'iso'],
  unit_of_measure: ['uuid', 'slug', 'dimension', 'factor'],
  dimension_value: ['uuid', 'kind', 'slug'],
  product: ['uuid', 'market_id', 'slug'],
  price: ['market_id', 'code', 'price_type', 'currency_id', 'unit_id'],
  holiday_list: ['slug'],
  calendar: ['slug'],
  vat_rate: ['country', 'valid_from'],
};

/** The text columns with the columns of their match keys, by table. */
const KEYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  unit_of_measure: { name: 'name_key', symbol: 'symbol_key' },
  dimension_value: { name: 'match_key' },
  product: { name: 'match_key' },
  price: { code: 'code_key' },
};

async function wrongKeys(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const broken: BrokenRow[] = [];
  for (const [table, keys] of Object.entries(KEYS)) {
    for (const [text, key] of Object.entries(keys)) {
      const { rows } = await driver.query<Record<string, string>>(
        `select "table", id, revision, ${text} as text, ${key} as key
          from ${everyVersion(table, `id, ${text}, ${key}`)} v`,
      );
      for (const row of rows) {
        const expected = matchKey(row['text'] ?? '');
        if (row['key'] !== expected) broken.push({ ...row, column: key, expected });
      }
    }
  }
  return broken;
}

/** The dimension columns of `price` that a market does not have. */
const foreignColumns = ({ filters }: Market): string[] => {
  const own = filters.map((filter) => DIMENSIONS[filter].field as string);
  const others = Object.values(DIMENSIONS).filter(({ field }) => !own.includes(field));
  return others.map(({ field }) => columnName(field));
};

/** Rules of prices and reference data, past versions included. */
export const PRICE_RULES: readonly Rule[] = [
  {
    name: 'corrections-counted',
    meaning:
      'A point has no corrections at its first publication and one more with each correction. ' +
      'A withdrawn point that is published again keeps its number of corrections.',
    broken: `
      select price_id, date, revision, corrections, expected
      from (
        select *, case
          when before is null then 0
          when ended = revision then before + 1
          else most end as expected
        from (
          select *, lag(corrections) over past as before, lag(revision_to) over past as ended,
            max(corrections) over (past rows between unbounded preceding and 1 preceding) as most
          from (
            select price_id, date, revision, null::bigint as revision_to, corrections from series s
              where corrections <> 0 or exists (
                select from series_history h where h.price_id = s.price_id and h.date = s.date)
            union all
            select price_id, date, revision, revision_to, corrections from series_history
          ) as versions
          window past as (partition by price_id, date order by revision)
        ) as ordered
      ) as counted
      where corrections <> expected`,
  },
  {
    name: 'payables-in-percent',
    meaning:
      'The unit dimension stored with a price is that of its unit. CHECK constraints use it to ' +
      'require percent for payables.',
    broken: `select p."table", p.code, p.revision, price_type, currency_id, u.slug as unit,
        unit_dimension
      from ${PRICES} p left join unit_of_measure u on u.id = unit_id
      where unit_dimension is distinct from u.dimension`,
  },
  {
    name: 'identity-fixed',
    meaning:
      'The identity of a currency, unit, dimension value or product, and the market, code, ' +
      'type, currency and unit of a price, never change.',
    broken: Object.entries(IDENTITY)
      .map(([table, columns]) => {
        const identity = `row(${columns.join(', ')})::text`;
        return `select '${table}' as "table", id, min(${identity}) as one, max(${identity}) as other
          from ${everyVersion(table, `id, ${columns.join(', ')}`)} v
          group by id having count(distinct ${identity}) > 1`;
      })
      .join(' union all '),
  },
  {
    name: 'dimension-kinds',
    meaning: 'Each dimension of a price is a value of the right kind: no region is an incoterm.',
    broken: `select p."table", p.code, p.revision, c.name as column, v.slug, v.kind
      from ${PRICES} p
        cross join lateral (values ${[...KINDS]
          .map(([column, kind]) => `('${column}', '${kind}', ${column})`)
          .join(', ')}) as c (name, kind, id)
        join dimension_value v on v.id = c.id
      where v.kind <> c.kind`,
  },
  {
    name: 'dimensions-of-market',
    meaning: 'A price has only dimensions that its market has.',
    broken: MARKETS.map((market) => {
      const columns = foreignColumns(market);
      return `select p."table", p.code, p.revision, m.slug as market
        from ${PRICES} p join market m on m.id = p.market_id
        where m.slug = '${market.slug}' and num_nonnulls(${columns.join(', ')}) > 0`;
    }).join(' union all '),
  },
  {
    name: 'product-of-market',
    meaning: 'The product of a price is one of its market.',
    broken: `select p."table", p.code, p.revision, p.market_id, d.slug as product,
        d.market_id as "marketOfProduct"
      from ${PRICES} p join product d on d.id = p.product_id where d.market_id <> p.market_id`,
  },
  {
    name: 'code-of-market',
    meaning:
      'A code with the prefix of a market, such as CP-NI- of nickel, belongs to that market.',
    broken: `select p."table", p.code, p.revision, m.slug as market
      from ${PRICES} p join market m on m.id = p.market_id
        join (values ${MARKETS.map(({ prefix, slug }) => `(${list([prefix, slug])})`).join(', ')})
          as c (prefix, slug) on starts_with(p.code, 'CP-' || c.prefix || '-')
      where c.slug <> m.slug`,
  },
  {
    name: 'specifications-formed',
    meaning: 'A specification is a list of {name, value, order}: two texts and a whole number.',
    broken: `select p."table", p.code, p.revision, e.entry
      from ${PRICES} p cross join lateral jsonb_array_elements(
        case jsonb_typeof(specification) when 'array' then specification else '[null]' end)
        as e (entry)
      where jsonb_typeof(entry) <> 'object'
        or (jsonb_typeof(entry -> 'name'), jsonb_typeof(entry -> 'value'),
          jsonb_typeof(entry -> 'order')) is distinct from ('string', 'string', 'number')
        or entry - '{name,value,order}'::text[] <> '{}' or entry ->> 'order' !~ '^-?[0-9]+$'`,
  },
  {
    name: 'references-formed',
    meaning:
      'The references of a payable are in the order of their first days, one for each day, and ' +
      'none is a payable.',
    broken: `select p."table", p.code, p.revision, e.entry
      from ${PRICES} p cross join lateral jsonb_array_elements(
        case jsonb_typeof(payable_reference) when 'array' then payable_reference else '[null]' end)
        with ordinality as e (entry, place)
      where payable_reference is not null and (jsonb_typeof(entry) <> 'object'
        or (entry ?& '{code,side,statistic,element,validFrom}'::text[]) is not true
        or entry - '{code,side,statistic,element,validFrom}'::text[] <> '{}'
        or entry ->> 'side' not in (${list(REFERENCE_SIDES)})
        or entry ->> 'statistic' not in (${list(REFERENCE_STATISTICS)})
        or entry ->> 'element' !~ '^[A-Z][A-Za-z0-9]{0,15}$'
        or entry ->> 'validFrom' !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'
        or entry ->> 'validFrom' <= payable_reference -> (place::integer - 2) ->> 'validFrom'
          and place > 1
        or exists (select from price r where r.code = entry ->> 'code'
          and r.price_type = 'payable'))`,
  },
  {
    name: 'match-keys',
    meaning: 'The stored key of each name, symbol and code is the one that this version computes.',
    broken: wrongKeys,
  },
];
