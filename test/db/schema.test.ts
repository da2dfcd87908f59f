import t from 'tap';
import {
  CURRENCY,
  insertOf,
  OF_COPPER,
  PAYABLE,
  priceRow,
  productRow,
  UNIT,
  valueId,
  valueRow,
} from '../support/database/minimal-data.ts';
import { rowTests } from '../support/database/row-tests.ts';

const { refusalOf, refusesRows, acceptsRows, pool } = rowTests(t);

const { unit_id = '', unit_dimension = '', currency_id = '' } = priceRow('');

acceptsRows('a price with money for a unit, and a payable in percent, are accepted', 'price', {
  price: priceRow('N-1'),
  payable: priceRow('N-1', PAYABLE),
  'of copper': priceRow('N-1', OF_COPPER),
});

refusesRows('a price and a payable keep their rules of currency and unit', 'price', [
  [
    'payable with a currency',
    priceRow('N-1', { ...PAYABLE, currency_id }),
    'price_payable_has_no_currency',
  ],
  [
    'price without currency',
    priceRow('N-1', { currency_id: 'null' }),
    'price_payable_has_no_currency',
  ],
  [
    'payable by the tonne',
    priceRow('N-1', { unit_id, unit_dimension, price_type: "'payable'", currency_id: 'null' }),
    'price_payable_is_percent',
  ],
  [
    'price in percent',
    priceRow('N-1', {
      ...PAYABLE,
      price_type: "'price'",
      currency_id,
    }),
    'price_payable_is_percent',
  ],
  ['a third type', priceRow('N-1', { price_type: "'index'" }), 'price_price_type_check'],
  [
    'a unit passed off as percent',
    priceRow('N-1', { ...PAYABLE, unit_id }),
    'price_unit_id_unit_dimension_fkey',
  ],
]);

refusesRows('a price has one code, a product of its market, and plain texts', 'price', [
  ['a code that is taken', priceRow('T-1', { code_key: "'n-1'" }), 'price_code_key'],
  [
    'a code that differs in case alone',
    priceRow('N-1', { code_key: "'t-1'" }),
    'price_code_key_key',
  ],
  ['an empty code', priceRow('', { code_key: "'n-1'" }), 'price_code_check'],
  ['a code with a space', priceRow('N 1'), 'price_code_check'],
  ['a code of 65 characters', priceRow('N'.repeat(65)), 'price_code_check'],
  ['an empty key', priceRow('N-1', { code_key: "''" }), 'price_code_key_check'],
  [
    'a product of copper',
    priceRow('N-1', { product_id: OF_COPPER['product_id'] as string }),
    'price_product_id_market_id_fkey',
  ],
  ['a name with a line break', priceRow('N-1', { name: "E'a\\nb'" }), 'price_name_check'],
  ['an empty name', priceRow('N-1', { name: "''" }), 'price_name_check'],
  ['an empty short name', priceRow('N-1', { short_name: "''" }), 'price_short_name_check'],
  [
    'a specification that is no list',
    priceRow('N-1', { specification: "'{}'" }),
    'price_specification_check',
  ],
  [
    'an endless launch day',
    priceRow('N-1', { assessment_launched_at: "'infinity'" }),
    'price_assessment_launched_at_check',
  ],
]);

t.test('each dimension of a price holds only values of its own kind', async (t) => {
  const { rows } = await pool().query<{ column_name: string }>(
    `select column_name from information_schema.columns
     where table_name = 'price' and column_name like '%\\_id'`,
  );
  const others = ['market_id', 'currency_id', 'unit_id', 'product_id'];
  const columns = rows.map((each) => each.column_name).filter((each) => !others.includes(each));
  t.equal(columns.length, 14);
  for (const column of columns) {
    const otherKind = column === 'region_id' ? 'spot' : 'europe';
    const refusal = await refusalOf(
      insertOf('price', priceRow('N-1', { [column]: valueId(otherKind) })),
    );
    t.match(refusal, `${column} refers to "${otherKind}"`, column);
    t.match(refusal, 'of the wrong kind', column);
  }
  const later = `update price set region_id = ${valueId('spot')} where code = 'T-1'`;
  t.match(await refusalOf(later), 'of the wrong kind');
  t.equal(
    await refusalOf(insertOf('price', priceRow('N-1', { region_id: valueId('europe') }))),
    null,
  );
});

refusesRows('kinds, price types and frequencies are closed lists', 'dimension_value', [
  ['a kind of its own', valueRow('colour', 'red'), 'dimension_value_kind_check'],
  ['a third price type', valueRow('price-type', 'index'), 'dimension_value_price_type_closed'],
  [
    'a frequency of its own',
    valueRow('frequency', 'hourly', { short_name: "'H'" }),
    'dimension_value_frequency_closed',
  ],
  [
    'the same slug',
    valueRow('region', 'europe', { match_key: "'x'" }),
    'dimension_value_kind_slug_key',
  ],
  [
    'the same key',
    valueRow('region', 'x', { match_key: "'europe'" }),
    'dimension_value_kind_match_key_key',
  ],
  ['a line break', valueRow('region', 'x', { name: "E'a\\nb'" }), 'dimension_value_name_check'],
  ['an empty key', valueRow('region', 'x', { match_key: "''" }), 'dimension_value_match_key_check'],
]);

refusesRows('a unit converts by a positive factor inside a known dimension', 'unit_of_measure', [
  [
    'a length',
    { ...UNIT, slug: "'m'", name_key: "'m'", dimension: "'length'" },
    'unit_of_measure_dimension_check',
  ],
  [
    'nothing',
    { ...UNIT, slug: "'m'", name_key: "'m'", factor: '0' },
    'unit_of_measure_factor_check',
  ],
  [
    'no number',
    { ...UNIT, slug: "'m'", name_key: "'m'", factor: "'NaN'" },
    'unit_of_measure_factor_check',
  ],
  ['the same name', { ...UNIT, slug: "'m'" }, 'unit_of_measure_name_key_key'],
]);

refusesRows('a currency has a code of ISO 4217, once', 'currency', [
  ['lower case', { ...CURRENCY, iso: "'usx'" }, 'currency_iso_check'],
  ['twice', CURRENCY, 'currency_iso_key'],
]);

t.test('two products of one market cannot have the same name', async (t) => {
  const twin = { ...productRow('nickel', 'other'), match_key: "'nickel-metal'" };
  t.equal(await refusalOf(insertOf('product', twin)), 'product_market_id_match_key_key');
  const elsewhere = { ...twin, ...{ market_id: OF_COPPER['market_id'] as string } };
  t.equal(await refusalOf(insertOf('product', elsewhere)), null);
});
