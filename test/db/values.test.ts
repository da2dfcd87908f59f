import t from 'tap';
import { insertOf, pointRow, rateRow } from '../support/database/minimal-data.ts';
import { rowTests } from '../support/database/row-tests.ts';

const { refusalOf, refusesRows, acceptsRows } = rowTests(t);

acceptsRows('every value that the wire format can express exactly is accepted', 'series', {
  'low, mid and high': pointRow(),
  'mid alone': pointRow({ low: 'null', high: 'null' }),
  'low alone': pointRow({ high: 'null' }),
  'all equal': pointRow({ low: '10', high: '10' }),
  zero: pointRow({ low: '-1', mid: '0', high: '0' }),
  negative: pointRow({ low: '-30.5', mid: '-20.25', high: '-10' }),
  '15 digits': pointRow({ low: '-999999999999999', mid: '0', high: '999999999999999' }),
  '15 digits and 10 decimals': pointRow({ high: '99999.9999999999' }),
  'the smallest': pointRow({ low: '0', mid: '0.0000000001' }),
  tomorrow: pointRow({ date: "(now() at time zone 'UTC')::date + 1" }),
  'the first day': pointRow({ date: "'1800-01-01'" }),
});

refusesRows('low ≤ mid ≤ high, whichever of them there are', 'series', [
  ['low above mid', pointRow({ low: '10.1' }), 'series_low_mid_high'],
  ['mid above high', pointRow({ high: '9.9' }), 'series_low_mid_high'],
  ['low above mid, no high', pointRow({ low: '11', high: 'null' }), 'series_low_mid_high'],
  ['mid above high, no low', pointRow({ low: 'null', high: '9' }), 'series_low_mid_high'],
]);

refusesRows('what is no finite decimal of 15 digits is refused in each place', 'series', [
  ['NaN low', pointRow({ low: "'NaN'", mid: "'NaN'", high: "'NaN'" }), 'series_has_15_digits'],
  ['NaN high', pointRow({ high: "'NaN'" }), 'series_has_15_digits'],
  ['minus infinity', pointRow({ low: "'-Infinity'" }), 'series_has_15_digits'],
  ['infinity', pointRow({ high: "'Infinity'" }), 'series_has_15_digits'],
  ['infinite mid', pointRow({ mid: "'Infinity'", high: 'null' }), 'series_has_15_digits'],
  [
    'infinity alone',
    pointRow({ low: 'null', mid: "'Infinity'", high: 'null' }),
    'series_has_15_digits',
  ],
  ['11 decimals', pointRow({ mid: '9.00000000001' }), 'series_has_15_digits'],
  ['a trailing zero in low', pointRow({ low: '9.50' }), 'series_is_trimmed'],
  ['a trailing zero in mid', pointRow({ mid: '10.0' }), 'series_is_trimmed'],
  ['a trailing zero in high', pointRow({ high: '11.10' }), 'series_is_trimmed'],
  ['16 digits', pointRow({ high: '1000000000000000' }), 'series_has_15_digits'],
  ['16 digits below zero', pointRow({ low: '-1000000000000000' }), 'series_has_15_digits'],
  ['16 digits with decimals', pointRow({ high: '100000.0000000001' }), 'series_has_15_digits'],
  [
    '15 digits by the decimals of another',
    pointRow({ low: '0.0000000001', high: '100000' }),
    'series_has_15_digits',
  ],
]);

refusesRows('a point has a real day, an instant, a price and a count of corrections', 'series', [
  [
    'after tomorrow',
    pointRow({ date: "(now() at time zone 'UTC')::date + 2" }),
    'series_date_check1',
  ],
  ['before 1800', pointRow({ date: "'1799-12-31'" }), 'series_date_check'],
  ['no day at all', pointRow({ date: "'-infinity'" }), 'series_date_check'],
  ['endless', pointRow({ published_at: "'infinity'" }), 'series_published_at_check'],
  [
    'published before 1800',
    pointRow({ published_at: "'1799-12-31T23:59Z'" }),
    'series_published_at_check',
  ],
  ['minus one correction', pointRow({ corrections: '-1' }), 'series_corrections_check'],
  ['of no price', pointRow({ price_id: '0' }), 'there is no price 0'],
]);

refusesRows('a rate is a positive decimal of a known source, and not of the future', 'fx_rate', [
  ['zero', rateRow({ rate: '0' }), 'fx_rate_is_a_positive_number'],
  ['negative', rateRow({ rate: '-1' }), 'fx_rate_is_a_positive_number'],
  ['NaN', rateRow({ rate: "'NaN'" }), 'fx_rate_is_a_positive_number'],
  ['infinity', rateRow({ rate: "'Infinity'" }), 'fx_rate_is_a_positive_number'],
  ['11 decimals', rateRow({ rate: '1.00000000001' }), 'fx_rate_is_a_positive_number'],
  ['a trailing zero', rateRow({ rate: '1.10' }), 'fx_rate_is_trimmed'],
  ['16 digits', rateRow({ rate: '123456.0123456789' }), 'fx_rate_has_15_digits'],
  [
    'after tomorrow',
    rateRow({ date: "(now() at time zone 'UTC')::date + 2" }),
    'fx_rate_date_check1',
  ],
  ['before 1800', rateRow({ date: "'1799-12-31'" }), 'fx_rate_date_check'],
  ['of no source', rateRow({ source: "'NOBODY'" }), 'fx_rate_source_fkey'],
]);

t.test('a point is held once for a price and a day', async (t) => {
  const again = insertOf('series', pointRow({ mid: '10.5' }));
  t.equal(await refusalOf(insertOf('series', pointRow()), again), 'series_pkey');
});
