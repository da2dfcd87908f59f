import type { Rule } from './rule.ts';

/** A column, and the tables of which one has a row for it. */
type Reference = readonly [column: string, ...targets: string[]];

const CURRENCY: Reference = ['currency_id', 'currency'];
const BATCH: Reference = ['batch_id', 'load_batch'];
const PRICE: Reference = ['price_id', 'price', 'price_history'];

const DIMENSIONS = [
  'price_category_id',
  'frequency_id',
  'purity_id',
  'grade_id',
  'capacity_id',
  'cell_format_id',
  'mesh_size_id',
  'sub_product_id',
  'feedstock_id',
  'incoterm_id',
  'country_id',
  'region_id',
  'trade_type_id',
  'service_id',
];

const OF_PRICES: readonly Reference[] = [
  ['market_id', 'market'],
  CURRENCY,
  ['unit_id', 'unit_of_measure'],
  ['product_id', 'product'],
  ...DIMENSIONS.map((column): Reference => [column, 'dimension_value']),
];

/** What refers to what, by table. Foreign keys hold part of it; they can be switched off. */
const REFERENCES: Readonly<Record<string, readonly Reference[]>> = {
  product: [['market_id', 'market']],
  price: OF_PRICES,
  series: [['price_id', 'price'], BATCH],
  fx_source: [['base_currency_id', 'currency']],
  fx_rate: [['source', 'fx_source'], CURRENCY, BATCH],
  change_segment: [['market_id', 'market']],
  load_batch: [
    ['undoes', 'load_batch'],
    ['undone_by', 'load_batch'],
  ],
  load_coverage: [BATCH, [...CURRENCY, 'currency_history'], PRICE],
  access_scope: [['market_id', 'market']],
  api_key: [['replaced_by', 'api_key']],
  api_key_scope: [
    ['api_key_id', 'api_key'],
    ['scope', 'access_scope'],
  ],
};

/** The same of the past; what it refers to may be past as well. */
const OF_THE_PAST: typeof REFERENCES = {
  product_history: [['market_id', 'market']],
  price_history: OF_PRICES.map(([column, ...to]) =>
    column === 'market_id' ? [column, ...to] : [column, ...to, `${to[0]}_history`],
  ),
  series_history: [PRICE, BATCH],
  fx_rate_history: [['source', 'fx_source'], [...CURRENCY, 'currency_history'], BATCH],
};

const KEYS: Readonly<Record<string, string>> = { fx_source: 'slug', access_scope: 'scope' };

const dangling = (table: string, [column, ...targets]: Reference): string => `
  select '${table}' as "table", '${column}' as column, r.value::text, r.rows
  from (select ${column} as value, count(*) as rows from ${table}
    where ${column} is not null group by 1) as r
  where ${targets
    .map((to) => `not exists (select from ${to} t where t.${KEYS[to] ?? 'id'} = r.value)`)
    .join(' and ')}`;

export const REFERENCE_RULES: readonly Rule[] = [
  {
    name: 'no-orphans',
    meaning:
      'What a row refers to is there: the price of a point, the product of a price, the currency ' +
      'of a rate, the batch of a value. Rows of the past may refer to what is past.',
    broken: Object.entries({ ...REFERENCES, ...OF_THE_PAST })
      .flatMap(([table, references]) => references.map((each) => dangling(table, each)))
      .join(' union all '),
  },
];
