import t from 'tap';
import { bodyTests } from '../../support/http/violations.ts';

const { refuses, post } = bodyTests(t);

const filters = (members: object) => ({ filters: members });
const options = (members: object) => ({ options: members });
const many = (count: number, item: unknown = 'x'): unknown[] => Array(count).fill(item);

refuses('a body is an object of filters and options, and nothing else', {
  'a list': [[], ' wrong_type'],
  'a text': ['"x"', ' wrong_type'],
  'filters as a list': [filters([]), '/filters wrong_type'],
  'filters as a text': [filters('x' as unknown as object), '/filters wrong_type'],
  'options as a list': [options([]), '/options wrong_type'],
  'a third member': [{ filters: {}, extra: 1 }, '/extra unknown_field'],
  'another letter case': [{ Filters: {} }, '/Filters unknown_field'],
  'options of other services': [
    options({ page: 1, offset: 10 }),
    '/options/page unknown_field',
    '/options/offset unknown_field',
  ],
});

refuses('null is of the wrong type everywhere', {
  body: ['null', ' wrong_type'],
  filters: [{ filters: null }, '/filters wrong_type'],
  options: [{ options: null }, '/options wrong_type'],
  list: [filters({ products: null }), '/filters/products wrong_type'],
  codes: [filters({ codes: null }), '/filters/codes wrong_type'],
  item: [filters({ regions: ['x', null] }), '/filters/regions/1 wrong_type'],
  date: [filters({ dateTo: null }), '/filters/dateTo wrong_type'],
  option: [options({ includeSeries: null }), '/options/includeSeries wrong_type'],
});

refuses('nothing is coerced to another type', {
  'a number for a boolean': [options({ includeSeries: 1 }), '/options/includeSeries wrong_type'],
  'a text for a boolean': [options({ strict: 'true' }), '/options/strict wrong_type'],
  'a text for a list': [filters({ products: 'x' }), '/filters/products wrong_type'],
  'an object for a list': [filters({ products: { 0: 'x' } }), '/filters/products wrong_type'],
  'numbers in a list': [
    filters({ codes: [1, true] }),
    '/filters/codes/0 wrong_type',
    '/filters/codes/1 wrong_type',
  ],
  'a list in a list': [filters({ codes: [['x']] }), '/filters/codes/0 wrong_type'],
  'a number for a day': [filters({ dateFrom: 20240101 }), '/filters/dateFrom wrong_type'],
});

const NO_DAYS = [
  '',
  '2024-02-30',
  '2023-02-29',
  '1900-02-29',
  '2024-13-01',
  '2024-00-10',
  '2024-01-00',
  '2024-1-1',
  '24-01-01',
  '2024/01/01',
  '20240101',
  '2024-01-01T00:00:00Z',
  '2024-01-01 ',
  '\n2024-01-01',
  '2024-01-01\n',
  '+2024-01-01',
  '-2024-01-01',
  '12024-01-01',
  '２０２４-01-01',
  'today',
  'infinity',
  'epoch',
];

refuses(
  'a day is a real one, written YYYY-MM-DD',
  Object.fromEntries(
    NO_DAYS.map((dateTo) => [
      JSON.stringify(dateTo),
      [filters({ dateTo }), '/filters/dateTo invalid_format'] as const,
    ]),
  ),
);

refuses('a day lies between 1800 and 2199, and from not after to', {
  'the day before': [filters({ dateFrom: '1799-12-31' }), '/filters/dateFrom out_of_range'],
  'the day after': [filters({ dateTo: '2200-01-01' }), '/filters/dateTo out_of_range'],
  'the year 0': [filters({ dateFrom: '0000-01-01' }), '/filters/dateFrom out_of_range'],
  'from after to': [
    filters({ dateFrom: '2024-01-02', dateTo: '2024-01-01' }),
    '/filters/dateFrom date_order',
  ],
  'both out of range, and turned': [
    filters({ dateFrom: '9999-12-31', dateTo: '1000-01-01' }),
    '/filters/dateFrom out_of_range',
    '/filters/dateTo out_of_range',
    '/filters/dateFrom date_order',
  ],
  'no order between days that are none': [
    filters({ dateFrom: '2024-05-01', dateTo: '2024-02-31' }),
    '/filters/dateTo invalid_format',
  ],
});

refuses('lists and their items keep their limits', {
  'no code': [filters({ codes: [] }), '/filters/codes too_few_items'],
  '501 codes': [filters({ codes: many(501) }), '/filters/codes too_many_items'],
  '201 values': [filters({ products: many(201) }), '/filters/products too_many_items'],
  'an empty value': [filters({ products: [''] }), '/filters/products/0 invalid_format'],
  '129 characters': [filters({ products: ['x'.repeat(129)] }), '/filters/products/0 too_long'],
  '129 characters outside the BMP': [
    filters({ codes: ['\u{1f4c8}'.repeat(129)] }),
    '/filters/codes/0 too_long',
  ],
  'one letter with 128 accents': [
    filters({ products: [`e${'\u0301'.repeat(128)}`] }),
    '/filters/products/0 too_long',
  ],
  'a NUL': [filters({ products: ['a\u0000b'] }), '/filters/products/0 invalid_characters'],
  'a tab': [filters({ codes: ['a\tb'] }), '/filters/codes/0 invalid_characters'],
  'a C1 control': [filters({ codes: ['a\u0085b'] }), '/filters/codes/0 invalid_characters'],
  'half a surrogate pair': [
    '{"filters":{"codes":["\\ud83d"]}}',
    '/filters/codes/0 invalid_characters',
  ],
  'a turned surrogate pair': [
    '{"filters":{"codes":["\\udcc8\\ud83d"]}}',
    '/filters/codes/0 invalid_characters',
  ],
});

refuses('codes goes with dates alone', {
  'with a base filter': [
    filters({ codes: ['x'], products: ['y'] }),
    '/filters/products codes_exclusive',
  ],
  'with many': [
    filters({
      codes: ['x'],
      dateFrom: '2024-01-01',
      priceTypes: ['y'],
      regions: ['z'],
      services: [],
    }),
    '/filters/priceTypes codes_exclusive',
    '/filters/regions codes_exclusive',
  ],
});

refuses('all violations are reported together', {
  everything: [
    {
      filter: {},
      filters: {
        dateFrom: '2024-02-30',
        dateTo: '2200-01-01',
        codes: [''],
        products: many(201, 'y'),
        regions: [1],
        cellFormats: ['z'],
        prodcts: ['a'],
      },
      options: { includeSerie: true, strict: 'no' },
    },
    '/filter unknown_field',
    '/filters/dateFrom invalid_format',
    '/filters/dateTo out_of_range',
    '/filters/codes/0 invalid_format',
    '/filters/products too_many_items',
    '/filters/products codes_exclusive',
    '/filters/regions codes_exclusive',
    '/filters/regions/0 wrong_type',
    '/filters/cellFormats unsupported_filter',
    '/filters/prodcts unknown_field',
    '/options/includeSerie unknown_field',
    '/options/strict wrong_type',
  ],
});

t.test('the first hundred of more violations are reported, and that there are more', async (t) => {
  for (const body of [
    filters({ codes: many(150, 1) }),
    filters(Object.fromEntries(many(150).map((_, index) => [`member ${index}`, 1]))),
  ]) {
    const { json } = await post('nickel', body);
    t.equal(json.errors.length, 100);
    t.equal(json.detail, 'More than 100 rules are broken; errors names the first 100');
  }
});
