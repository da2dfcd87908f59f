import { columnName, DIMENSIONS } from '../catalog/dimensions.ts';
import type { Rule } from './rule.ts';

/** A column, and the tables that it references: one of them must contain the row. */
type ForeignKey = readonly [column: string, ...targets: string[]];

const PAST_CURRENCY: ForeignKey = ['currency_id', 'currency', 'currency_history'];
const BATCH: ForeignKey = ['batch_id', 'load_batch'];
const PRICE: ForeignKey = ['price_id', 'price', 'price_history'];

const HOLIDAYS: ForeignKey = ['holiday_list_id', 'holiday_list', 'holiday_list_history'];

const DIMENSION_COLUMNS = [
  'price_category_id',
  'frequency_id',
  ...Object.values(DIMENSIONS).map(({ field }) => columnName(field)),
];

const PRICE_REFERENCES: readonly ForeignKey[] = [
  ['market_id', 'market'],
  PAST_CURRENCY,
  ['unit_id', 'unit_of_measure', 'unit_of_measure_history'],
  ['product_id', 'product', 'product_history'],
  ...DIMENSION_COLUMNS.map(
    (column): ForeignKey => [column, 'dimension_value', 'dimension_value_history'],
  ),
];

/** References that have no foreign key, by table. Past rows may reference past rows. */
const REFERENCES: Readonly<Record<string, readonly ForeignKey[]>> = {
  series: [['price_id', 'price'], BATCH],
  fx_rate: [BATCH],
  load_coverage: [PAST_CURRENCY, PRICE],
  holiday_list: [BATCH],
  holiday_list_history: [BATCH],
  calendar: [BATCH],
  calendar_history: [HOLIDAYS, BATCH],
  price_calendar: [BATCH],
  price_calendar_history: [PRICE, ['calendar_id', 'calendar', 'calendar_history'], BATCH],
  vat_rate: [BATCH],
  vat_rate_history: [BATCH],
  product_history: [['market_id', 'market']],
  price_history: PRICE_REFERENCES,
  series_history: [PRICE, BATCH],
  fx_rate_history: [['source', 'fx_source'], PAST_CURRENCY, BATCH],
};

const dangling = (table: string, [column, ...targets]: ForeignKey): string => `
  select '${table}' as "table", '${column}' as column, r.value::text, r.rows
  from (select ${column} as value, count(*) as rows from ${table}
    where ${column} is not null group by 1) as r
  where ${targets
    .map(
      (to) =>
        `not exists (select from ${to} t where t.${to === 'fx_source' ? 'slug' : 'id'} = r.value)`,
    )
    .join(' and ')}`;

export const REFERENCE_RULES: readonly Rule[] = [
  {
    name: 'no-orphans',
    meaning:
      'Every referenced row exists where no foreign key ensures it: the price and the batch of ' +
      'a value, and all that past rows refer to.',
    broken: Object.entries(REFERENCES)
      .flatMap(([table, references]) => references.map((each) => dangling(table, each)))
      .join(' union all '),
  },
];
