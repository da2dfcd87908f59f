import { columnName, DIMENSIONS } from '../catalog/dimensions.ts';
import type { Rule } from './rule.ts';

/** A column, and the tables that it references: one of them must contain the row. */
type ForeignKey = readonly [column: string, ...targets: string[]];

const CURRENCY: ForeignKey = ['currency_id', 'currency'];
const BATCH: ForeignKey = ['batch_id', 'load_batch'];
const PRICE: ForeignKey = ['price_id', 'price', 'price_history'];

const DIMENSION_COLUMNS = [
  'price_category_id',
  'frequency_id',
  ...Object.values(DIMENSIONS).map(({ field }) => columnName(field)),
];

const PRICE_REFERENCES: readonly ForeignKey[] = [
  ['market_id', 'market'],
  CURRENCY,
  ['unit_id', 'unit_of_measure'],
  ['product_id', 'product'],
  ...DIMENSION_COLUMNS.map((column): ForeignKey => [column, 'dimension_value']),
];

/** References by table. Foreign keys cover some of them, but can be disabled. */
const REFERENCES: Readonly<Record<string, readonly ForeignKey[]>> = {
  product: [['market_id', 'market']],
  price: PRICE_REFERENCES,
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

/** References of history tables, which may reference past rows. */
const PAST_REFERENCES: typeof REFERENCES = {
  product_history: [['market_id', 'market']],
  price_history: PRICE_REFERENCES.map(([column, ...to]) =>
    column === 'market_id' ? [column, ...to] : [column, ...to, `${to[0]}_history`],
  ),
  series_history: [PRICE, BATCH],
  fx_rate_history: [['source', 'fx_source'], [...CURRENCY, 'currency_history'], BATCH],
};

const KEYS: Readonly<Record<string, string>> = { fx_source: 'slug', access_scope: 'scope' };

const dangling = (table: string, [column, ...targets]: ForeignKey): string => `
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
      'Every referenced row exists: the price of a point, the product of a price, the currency ' +
      'of a rate, the batch of a value. Past rows may reference past rows.',
    broken: Object.entries({ ...REFERENCES, ...PAST_REFERENCES })
      .flatMap(([table, references]) => references.map((each) => dangling(table, each)))
      .join(' union all '),
  },
];
