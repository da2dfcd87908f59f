import t from 'tap';
import { MAPPING_BYTES_MAX } from '../../../src/ingest/mapping/yaml.ts';
import { faultsOf, mappingFrom } from './support.ts';

const RIGHT = `
code: { column: Code }
date: { column: Date }
mid: Price
`;

/** The violations of a valid mapping with some changed lines. */
const faultsWith = (text: string): string[] => faultsOf(`${RIGHT.trim()}\n${text}`);

t.test('a mapping that is right is taken, with its SHA-256 and the lines of its members', (t) => {
  const found = mappingFrom(RIGHT);
  t.equal(found.sha256.length, 32);
  t.equal(found.lineOf('/date/column'), 3);
  t.equal(found.lineOf('/date/pattern'), 3, 'the line of what holds it');
  t.strictSame(faultsWith('numbers: { missing: [] }'), []);
  t.end();
});

t.test('unsupported YAML is refused with its line', (t) => {
  const cases: Record<string, RegExp> = {
    '': /mapping\.yaml:1: The value is missing: expected a mapping/,
    '- code': /mapping\.yaml:1: Expected a mapping/,
    'a: [1': /mapping\.yaml:1: Not YAML: /,
    'mid: 1\n\tcode: 2': /mapping\.yaml:2: Not YAML: /,
    'mid: A\nmid: B': /mapping\.yaml:2: \/mid: The name appears twice, first in line 1/,
    'mid: A\n"mid": B': /mapping\.yaml:2: \/mid: The name appears twice, first in line 1/,
    'mid: !!str A': /mapping\.yaml:1: \/mid: A tag/,
    'mid: !secret A': /mapping\.yaml:1: Not YAML: Unresolved tag/,
    'code: &x { column: A }\ndate: *x': /mapping\.yaml:1: \/code: An anchor/,
    'mid: A\n--- \nmid: B': /mapping\.yaml:2: Not YAML: .*multiple documents/,
    '%YAML 1.1\n---\nmid: A': /mapping\.yaml:1: A mapping has no directives/,
    '? [a]\n: b': /mapping\.yaml:1: A name must be a plain text/,
    [`a: ${'['.repeat(100_000)}`]: /Not YAML/,
    [`a: ${'{b: '.repeat(50_000)}`]: /Not YAML/,
    [`description: ${'x'.repeat(MAPPING_BYTES_MAX)}`]: /larger than 262144 bytes/,
    'columns: { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }': /Nested too deep/,
  };
  for (const [text, expected] of Object.entries(cases)) {
    t.match(faultsOf(text)[0], expected, text.slice(0, 40));
  }
  t.end();
});

t.test('every violation of the schema is named with member, line and the nearest word', (t) => {
  const text = `
text:
  delimiter: semicolons
  quotes: none
workbook: { sheet: 0 }
rows: { header: -1, first: 1.5, stop: { blank: yes } }
columns:
  - { code: 5, mid: A }
  - { low: A, mid: 0 }
dates: { column: Date }
published: { currency: [USD], unit: { columns: B }, factor: -2 }
numbers: { decimal: comma, missing: [~] }
prices:
  - { code: A, regin: x, purity: 1, specification: [{ name: a }] }
products: [{ market: nickel }]
values: 5
`;
  t.strictSame(faultsOf(text.trim()), [
    'mapping.yaml:2: /text/delimiter: Expected the delimiter of fields: one of comma, ' +
      'semicolon, tab, pipe, spaces; did you mean "semicolon"?',
    'mapping.yaml:3: /text/quotes: There is no member "quotes"; legal are delimiter, encoding',
    'mapping.yaml:4: /workbook/sheet: Expected the name of the sheet, or its place from 1',
    'mapping.yaml:5: /rows/header: Expected the line with the column names, 0 for none',
    'mapping.yaml:5: /rows/first: Expected the first line with values',
    'mapping.yaml:5: /rows/stop/column: The member "column" is missing: the column that marks ' +
      'the end: the name in the header, or the place from 1',
    'mapping.yaml:5: /rows/stop/startsWith: The member "startsWith" is missing: the beginning ' +
      'of its text',
    'mapping.yaml:5: /rows/stop/blank: There is no member "blank"; legal are column, startsWith',
    'mapping.yaml:7: /columns/0/code: Expected the code of a price; put it between quotation marks',
    'mapping.yaml:8: /columns/1/code: The member "code" is missing: the code of a price',
    'mapping.yaml:8: /columns/1/mid: Expected the column with the mid value, or the only value: ' +
      'the name in the header, or the place from 1',
    'mapping.yaml:9: /dates: There is no member "dates"; did you mean "date"?',
    'mapping.yaml:10: /published/factor: There is no member "factor"; legal are currency, unit',
    'mapping.yaml:10: /published/currency: Expected the currency, such as USD, or USc for US ' +
      'cents, or a column with it',
    'mapping.yaml:10: /published/unit/column: The member "column" is missing: the column with ' +
      'the unit of measure, such as lb: the name in the header, or the place from 1',
    'mapping.yaml:10: /published/unit/columns: There is no member "columns"; ' +
      'did you mean "column"?',
    'mapping.yaml:11: /numbers/missing/0: The value is missing: expected a text',
    'mapping.yaml:13: /prices/0/regin: There is no member "regin"; did you mean "region"?',
    'mapping.yaml:13: /prices/0/specification/0/value: The member "value" is missing: a text',
    'mapping.yaml:13: /prices/0/purity: Expected a text, or null for none',
    ...['name', 'alias', 'chemicalCode', 'isSustainable'].map((name) =>
      `mapping.yaml:14: /products/0/${name}: The member "${name}" is missing: `.concat(
        { name: 'a name', alias: 'a short name', chemicalCode: 'a chemical formula' }[name] ??
          'true or false',
      ),
    ),
    'mapping.yaml:15: /values: Expected dimension values to create if they are missing',
  ]);
  t.end();
});

/** Lines that make a valid mapping invalid, and the first violation. */
const TOGETHER: Readonly<Record<string, string>> = {
  'columns: { A: X }':
    'Exactly one of mid, columns, dateColumns, rates must state where the values are; ' +
    'found mid and columns',
  'rows: { header: 3, first: 3 }': '/rows/first: The first line with values must follow the header',
  'rows: { header: { holds: A }, first: 3 }':
    '/rows/first: Omit it: the values begin below a header that is found by its content',
  'rows: { stop: { column: A } }': '/rows/stop/startsWith: The member "startsWith" is missing',
  'expect: [{ column: A, row: 2, is: x }]': '/expect/0/row: The line must be above the values',
  'vintage: { startsWith: As of, pattern: yyyy-MM-dd }':
    '/vintage/startsWith: It requires a header that is found by its content',
  'vintage: { cell: A2 }': '/vintage/cell: The cell must be above the values',
  'vintage: { cell: 2A }': '/vintage/cell: A cell is letters and a number, such as A4',
  'vintage: { cell: A1, column: B }':
    '/vintage: Exactly one of constant, column, cell, startsWith, newest is needed; ' +
    'found column and cell',
  'vintage: {}':
    '/vintage: Exactly one of constant, column, cell, startsWith, newest is needed; ' +
    'found none of them',
  'vintage: { constant: 2026-02-30 }': '/vintage/constant: A vintage is a day, written YYYY-MM-DD',
  'vintage: { column: A, pattern: yyyy }': '/vintage/pattern: A vintage is a day',
  'publishedAt: { column: A, constant: 2026-01-01T00:00:00Z }':
    '/publishedAt: Exactly one of constant, column, time is needed; found constant and column',
  'publishedAt: { constant: 2026-01-01 }':
    '/publishedAt/constant: A publication time is written 2026-03-05T16:00:00Z (RFC 3339)',
  'publishedAt: { constant: 2026-01-01T00:00:00Z, days: 1 }':
    '/publishedAt/days: There is no member "days"; legal are constant',
  'publishedAt: { days: 1 }':
    '/publishedAt: Exactly one of constant, column, time is needed; found none of them',
  'publishedAt: { time: "16:00" }':
    '/publishedAt/offset: The member "offset" is missing: the offset from UTC',
  'publishedAt: { time: 4 pm, offset: CET }':
    '/publishedAt/time: A time of day is written 16:00 or 16:00:00',
  'publishedAt: { time: "16:00", offset: Z, pattern: yyyy-MM-dd }':
    '/publishedAt/pattern: There is no member "pattern"; legal are time, offset, days',
  'publishedAt: { column: A, days: 1 }':
    '/publishedAt/days: There is no member "days"; legal are column, pattern, time, offset',
  'publishedAt: { column: A, pattern: yyyy-MM-dd, offset: Z }':
    '/publishedAt: The time of day comes from the pattern or from time; found neither',
  'publishedAt: { column: A, pattern: yyyy-MM-dd HH:mm }':
    '/publishedAt: The offset comes from the pattern or from offset; found neither',
  'publishedAt: { column: A, pattern: yyyy HH:mm, offset: Z }':
    '/publishedAt/pattern: Not a pattern: the hour needs the day',
  'published: { currency: usd }':
    '/published: A currency is an ISO 4217 code, or a minor unit of one: USc, USX, EUc, GBp, ' +
    'GBX, AUc, CAc, INp; did you mean "USD" or "USX" or "USc"?',
  'published: { currency: USD, unit: "%" }': '/published: Percentages have no currency',
  'published: { currency: { column: A, translate: { x: dollars } } }':
    '/published/currency/translate/x: A currency is an ISO 4217 code, or a minor unit of one',
  'numbers: { decimal: comma, thousands: comma }':
    '/numbers/thousands: Decimals and thousands need different separators',
  'prices: [{ code: A }, { code: a }]': '/prices/1/code: a appears twice',
  'prices: [{ code: A B }]': '/prices/0/code: A code has 1 to 64 visible ASCII characters',
};

t.test('members that do not go together are refused', (t) => {
  for (const [text, expected] of Object.entries(TOGETHER)) {
    const [first = 'nothing is wrong'] = faultsWith(text);
    const found = first.replace(/^mapping\.yaml:\d+: /, '');
    t.equal(found.slice(0, expected.length), expected, text);
  }
  t.strictSame(faultsOf('columns: { A: X, B: x }\ndate: { column: D }\nlow: C'), [
    'mapping.yaml:3: /low: With columns, "low" is not allowed',
    'mapping.yaml:1: /columns/B: x appears twice',
  ]);
  const rates = 'rates: { source: CB, name: Bank, base: EUR, first: 2 }\ndate: { column: 1 }\n';
  t.strictSame(faultsOf(`${rates}code: { constant: A }\npublished: { currency: USD }`), [
    'mapping.yaml:3: /code: With rates, "code" is not allowed',
    'mapping.yaml:4: /published: With rates, "published" is not allowed',
  ]);
  t.strictSame(faultsOf('dateColumns: { first: 2, pattern: MM }\nrows: { header: 0 }'), [
    'mapping.yaml:1: With dateColumns, the member "code" is required',
    'mapping.yaml:1: /dateColumns: It requires a header line',
    'mapping.yaml:1: /dateColumns/pattern: Not a pattern: the year, yyyy, is missing',
  ]);
  t.strictSame(
    faultsOf(
      'rows: { header: 0 }\ncode: { column: A, others: skip }\nmid: Price\n' +
        'date: { column: B, pattern: yyyy, period: month }',
    ),
    [
      'mapping.yaml:3: /mid: Without a header, a column is letters such as C, or its place from 1',
      'mapping.yaml:4: /date/period: The pattern states no month, only the year',
      'mapping.yaml:2: /code/others: "others" goes with translate only',
    ],
  );
  t.end();
});

t.test('members that a mapping had before are refused by name', (t) => {
  for (const [text, name] of [
    ['text: { quote: none }', 'quote'],
    ['text: { comment: "#" }', 'comment'],
    ['rows: { last: 9 }', 'last'],
    ['rows: { header: 1, only: [{ column: A, in: [x] }] }', 'only'],
    ['published: { factor: 10 }', 'factor'],
  ] as const) {
    const [fault, second] = faultsWith(text);
    t.match(fault, `There is no member "${name}"`);
    t.equal(second, undefined);
  }
  const filled = RIGHT.replace('Code }', 'Code, fillDown: true }').replace(
    'column: Date',
    'cell: B1',
  );
  t.match(faultsOf(filled.trim()), [
    'mapping.yaml:1: /code/fillDown: There is no member "fillDown"',
    'mapping.yaml:2: /date/column: The member "column" is missing',
    'mapping.yaml:2: /date/cell: There is no member "cell"',
  ]);
  t.end();
});

t.test('names of columns are no members: they may be any text', (t) => {
  const names = ['__proto__', 'constructor', 'toString', 'a/b~c', '2010', ' spaced  out '];
  const entries = names.map((name, index) => `  ${JSON.stringify(name)}: X-${index}`);
  const text = `date: { column: Date }\ncolumns:\n${entries.join('\n')}\n`;
  const { columns } = mappingFrom(text).mapping;
  t.strictSame(new Set(Object.keys(columns ?? {})), new Set(names));
  t.end();
});
