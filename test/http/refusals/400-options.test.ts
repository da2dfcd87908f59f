import t from 'tap';
import { bodyTests, violationsOf } from '../../support/http/violations.ts';

const { refuses, post } = bodyTests(t);

const options = (members: object) => ({ options: members });
const aggregate = (value: unknown) => options({ aggregate: value });
const monthly = { period: 'month', method: 'average' };

refuses('options are not coerced to another type, and null is none', {
  'a number for a flag': [options({ includeSummary: 1 }), '/options/includeSummary wrong_type'],
  'null for a currency': [options({ currency: null }), '/options/currency wrong_type'],
  'a list for a unit': [options({ unitOfMeasure: ['t'] }), '/options/unitOfMeasure wrong_type'],
  'a flag for a word': [options({ onUnconvertible: true }), '/options/onUnconvertible wrong_type'],
  'a text for decimals': [options({ decimals: '2' }), '/options/decimals wrong_type'],
  'a fraction for decimals': [options({ decimals: 2.5 }), '/options/decimals wrong_type'],
  'a text for an object': [aggregate('month'), '/options/aggregate wrong_type'],
  'null for an object': [aggregate(null), '/options/aggregate wrong_type'],
  'a number for an instant': [options({ asOf: 1_772_726_400 }), '/options/asOf wrong_type'],
  'a number for a revision': [options({ revision: 3 }), '/options/revision wrong_type'],
});

refuses('options keep their ranges, words and forms', {
  'eleven decimals': [options({ decimals: 11 }), '/options/decimals out_of_range'],
  'decimals below none': [options({ decimals: -1 }), '/options/decimals out_of_range'],
  'another word': [options({ onUnconvertible: 'drop' }), '/options/onUnconvertible out_of_range'],
  'other rates': [options({ rates: 'month' }), '/options/rates out_of_range'],
  'no currency': [options({ currency: '' }), '/options/currency invalid_format'],
  'a long currency': [options({ currency: 'U'.repeat(65) }), '/options/currency too_long'],
  'a long unit': [options({ unitOfMeasure: 't'.repeat(129) }), '/options/unitOfMeasure too_long'],
  'a NUL': [options({ unitOfMeasure: 't\u0000' }), '/options/unitOfMeasure invalid_characters'],
  'another period': [
    aggregate({ ...monthly, period: 'day' }),
    '/options/aggregate/period out_of_range',
  ],
  'another method': [
    aggregate({ ...monthly, method: 'median' }),
    '/options/aggregate/method out_of_range',
  ],
  'a half aggregate': [aggregate({ period: 'week' }), '/options/aggregate invalid_format'],
  'an empty aggregate': [aggregate({}), '/options/aggregate invalid_format'],
  'more than an aggregate': [
    aggregate({ ...monthly, weight: 1 }),
    '/options/aggregate/weight unknown_field',
  ],
});

refuses('decimals need a conversion or an aggregate', {
  'decimals alone': [options({ decimals: 2 }), '/options/decimals unknown_field'],
  'beside a series': [
    options({ decimals: 2, includeSeries: true }),
    '/options/decimals unknown_field',
  ],
  'beside a summary of published values': [
    options({ decimals: 0, includeSummary: true }),
    '/options/decimals unknown_field',
  ],
  'a broken aggregate is reported alone': [
    options({ decimals: 2, aggregate: 'month' }),
    '/options/aggregate wrong_type',
  ],
});

t.test('decimals go with a currency, a unit or an aggregate, and a refusal says so', async (t) => {
  for (const computing of [{ currency: 'EUR' }, { unitOfMeasure: 'lb' }, { aggregate: monthly }]) {
    // No database answers behind these requests: a legal one gets past the rules, to a 503.
    t.equal((await post('nickel', options({ decimals: 2, ...computing }))).status, 503);
  }
  const [violation] = violationsOf(await post('nickel', options({ decimals: 2 })));
  for (const name of ['currency', 'unitOfMeasure', 'aggregate', 'never rounded']) {
    t.ok(violation?.detail?.includes(name), name);
  }
});

const average = (movingAverage: unknown, more: object = {}) =>
  options({ includeSeries: true, movingAverage, ...more });

refuses('a dialect of CSV is one of two', {
  unknown: [options({ csvDialect: 'tab' }), '/options/csvDialect out_of_range'],
  'no text': [options({ csvDialect: 1 }), '/options/csvDialect wrong_type'],
});

refuses('VAT is as published or excluded', {
  unknown: [options({ vat: 'include' }), '/options/vat out_of_range'],
  'no text': [options({ vat: true }), '/options/vat wrong_type'],
});

refuses('a moving average is of 1 to 250 sessions of a series, in a long layout', {
  'no session': [average(0), '/options/movingAverage out_of_range'],
  'more than 250': [average(251), '/options/movingAverage out_of_range'],
  'a fraction': [average(2.5), '/options/movingAverage wrong_type'],
  'a text': [average('20'), '/options/movingAverage wrong_type'],
  'without series': [options({ movingAverage: 20 }), '/options/movingAverage unknown_field'],
  'beside an aggregate': [
    average(20, { aggregate: monthly }),
    '/options/movingAverage unknown_field',
  ],
  'in a wide table': [average(20, { layout: 'wide' }), '/options/movingAverage unknown_field'],
  'a broken one is reported alone': [
    average(0, { aggregate: monthly }),
    '/options/movingAverage out_of_range',
  ],
});

const NO_INSTANTS = [
  '',
  'now',
  '2026-03-05',
  '2026-03-05T16:00:00',
  '2026-03-05 16:00:00Z',
  '2026-02-29T16:00:00Z',
  '2026-03-05T24:00:00Z',
  '2026-03-05T16:60:00Z',
  '2026-03-05T16:00Z',
  '2026-03-05T16:00:00.Z',
  '2026-03-05T16:00:00+0100',
  '2026-03-05T16:00:00+24:00',
  '2026-03-05T16:00:00Z[Europe/Berlin]',
  '2026-03-05T16:00:60Z',
  '+2026-03-05T16:00:00Z',
  '２０２６-03-05T16:00:00Z',
  'infinity',
];

refuses(
  'an instant is RFC 3339',
  Object.fromEntries(
    NO_INSTANTS.map((asOf) => [
      JSON.stringify(asOf),
      [options({ asOf }), '/options/asOf invalid_format'] as const,
    ]),
  ),
);

const FAR = [
  '9999-12-31T23:59:59Z',
  '9999-12-31T23:59:59-01:00',
  '9999-12-31T23:59:60Z',
  '2199-01-01T00:00:00+14:00',
  '2150-06-30T23:59:60Z',
];

refuses('an instant is not in the future', {
  ...Object.fromEntries(
    FAR.map((asOf) => [asOf, [options({ asOf }), '/options/asOf out_of_range'] as const]),
  ),
  'beside a revision': [
    options({ asOf: '2020-01-01T00:00:00Z', revision: 'abcd.1' }),
    '/options/asOf unknown_field',
  ],
});

const NO_REVISIONS = ['', 'x', '12', 'abc.1', 'abcd.', 'abcd.01', 'abcd.-1', 'ABCD.1', 'abcd.1.2'];

refuses(
  'a revision has the form in which answers name it',
  Object.fromEntries(
    [...NO_REVISIONS, 'abcd.1e3', 'abcd.1234567890123456789'].map((revision) => [
      JSON.stringify(revision),
      [options({ revision }), '/options/revision invalid_format'] as const,
    ]),
  ),
);

refuses('all violations of options are reported together', {
  everything: [
    options({
      currencies: 'USD',
      currency: 1,
      unitOfMeasure: '',
      onUnconvertible: 'x',
      decimals: 99,
      aggregate: { period: 'x', methods: 'y' },
      asOf: 'x',
      includeSummary: 'yes',
    }),
    '/options/currencies unknown_field',
    '/options/currency wrong_type',
    '/options/unitOfMeasure invalid_format',
    '/options/onUnconvertible out_of_range',
    '/options/decimals out_of_range',
    '/options/aggregate invalid_format',
    '/options/aggregate/period out_of_range',
    '/options/aggregate/methods unknown_field',
    '/options/asOf invalid_format',
    '/options/includeSummary wrong_type',
  ],
});

t.test('a misspelt option is refused with the nearest name', async (t) => {
  for (const [body, near] of [
    [options({ currencies: 'USD' }), 'currency'],
    [options({ unit_of_measure: 't' }), 'unitOfMeasure'],
    [options({ summary: true }), 'includeSummary'],
    [options({ onunconvertible: 'keep' }), 'onUnconvertible'],
    [options({ aggregates: {} }), 'aggregate'],
    [options({ asof: 'x' }), 'asOf'],
    [options({ revisions: 'x' }), 'revision'],
    [aggregate({ ...monthly, periods: 'x' }), 'period'],
    [aggregate({ ...monthly, mehtod: 'x' }), 'method'],
  ] as const) {
    const [violation] = violationsOf(await post('nickel', body));
    t.equal(violation?.code, 'unknown_field');
    t.match(violation?.detail, `did you mean ${near}?`);
  }
});
