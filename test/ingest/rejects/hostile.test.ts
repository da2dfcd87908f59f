import { open } from 'node:fs/promises';
import t from 'tap';
import {
  describePrices,
  errorsOf,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from '../support/loading.ts';

const dayFromNow = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

t.test(
  'values that are not plain decimals are named line by line, and nothing is stored',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const state = await stateOf(pool);
    const wrong = {
      NaN: 'is not a number; leave the field empty',
      '-Infinity': 'is not a number; leave the field empty',
      '1e400': 'has an exponent: write it out',
      '"1,5"':
        'has a comma: write a decimal as 1234.5, and a thousand without a separator, as 1000',
      '"1,234"':
        'has a comma: write a decimal as 1234.5, and a thousand without a separator, as 1000',
      '"1,234.5"': 'has a thousands separator: write 1234.5',
      '1 234': 'has a thousands separator: write 1234.5',
      "1'234": 'has a thousands separator: write 1234.5',
      ' 1': 'has spaces around it',
      'n/a': 'is not a plain decimal number such as 1234.5',
      '=1+1': 'is not a plain decimal number such as 1234.5',
      '\u0661': 'is not a plain decimal number such as 1234.5',
      [`1${'0'.repeat(100)}`]: 'has more digits than any price',
    };
    const rows = Object.keys(wrong).map((value, index) => `A,2026-01-${index + 10},,${value},,`);
    const report = await loadText(t, client, 'csv', points(...rows));
    t.strictSame(
      report.errors.map(({ line, code, message }) => [line, code, message]),
      Object.values(wrong).map((why, index) => [index + 2, 'invalid_number', `The value ${why}`]),
    );
    for (const { value } of report.errors) t.ok(value !== null && value.length <= 64);
    t.strictSame(await seriesOf(pool, 'A'), []);
    t.not(await stateOf(pool), state, 'the refusal is in the ledger');
  },
);

t.test('dates and times that do not exist, or not yet, are refused', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const dates = {
    '2026-02-29': 'invalid_date',
    '2026-1-5': 'invalid_date',
    '05/01/2026': 'invalid_date',
    '2026-01-05T00:00:00Z': 'invalid_date',
    '0000-01-01': 'out_of_range',
    '1799-12-31': 'out_of_range',
    [dayFromNow(3)]: 'out_of_range',
    '9999-12-31': 'out_of_range',
    '': 'missing_value',
  };
  const report = await loadText(
    t,
    client,
    'csv',
    points(...Object.keys(dates).map((date) => `A,${date},,1,,`)),
  );
  t.strictSame(
    errorsOf(report),
    Object.values(dates).map((code, index) => [index + 2, 'date', code]),
  );
  const times = [
    '2026-01-05',
    '2026-01-05 16:00:00Z',
    '2026-01-05T16:00:00',
    '2026-01-05T24:00:00Z',
    '2026-01-05T16:00:60Z',
    '2026-02-30T16:00:00Z',
    '2026-01-05T16:00:00.1234567Z',
    '2026-01-05T16:00:00+0100',
    '1799-01-05T16:00:00Z',
    `${dayFromNow(3)}T00:00:00Z`,
  ];
  const late = await loadText(
    t,
    client,
    'csv',
    points(...times.map((time) => `A,2026-01-05,,1,,${time}`)),
  );
  t.strictSame(
    errorsOf(late),
    times.map((_, index) => [index + 2, 'publishedAt', 'invalid_time']),
  );
  const fine = points(
    'A,1800-01-01,,1,,2026-01-05T16:00:00+01:00',
    'A,2024-02-29,,1,,2026-01-05T16:00:00.123456Z',
    `A,${dayFromNow(0)},,1,,`,
  );
  t.match(await loadText(t, client, 'csv', fine), { status: 'applied', counts: { inserted: 3 } });
});

t.test('bytes that are not UTF-8 text are refused with their line', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const text = points('A,2026-01-01,,1,,');
  const swapped = Buffer.from(text, 'utf16le').swap16();
  const cases = {
    'UTF-16, little end first': [
      Buffer.from(`\ufeff${text}`, 'utf16le'),
      [[1, null, 'invalid_encoding']],
    ],
    'UTF-16, big end first': [
      Buffer.concat([Buffer.from('\xfe\xff', 'latin1'), swapped]),
      [[1, null, 'invalid_encoding']],
    ],
    'a NUL': [points('A,2026-01-01,,1,,', 'A\0,2026-01-02,,1,,'), [[3, null, 'invalid_encoding']]],
    'Latin-1': [
      Buffer.from(points('\xc4,2026-01-01,,1,,'), 'latin1'),
      [[2, null, 'invalid_encoding']],
    ],
    'half a character': [
      Buffer.concat([Buffer.from(points('A,2026-01-01,,x,,')), Buffer.from([0xc3])]),
      [
        [2, 'mid', 'invalid_number'],
        [3, null, 'invalid_encoding'],
      ],
    ],
    'an archive': [Buffer.from('PK\x03\x04 and so on'), [[1, null, 'invalid_layout']]],
    'old Mac line ends': [text.replaceAll('\n', '\r'), [[1, null, 'unknown_column']]],
    nothing: ['', [[null, null, 'empty_file']]],
    'a header alone': [points(), [[null, null, 'empty_file']]],
  } as const;
  for (const [what, [content, expected]] of Object.entries(cases)) {
    const report = await loadText(t, client, 'csv', content);
    t.equal(report.status, 'refused', what);
    const errors = errorsOf(report).map(([line, column, code]) =>
      code === 'unknown_column' ? [line, null, code] : [line, column, code],
    );
    t.strictSame(errors, expected, what);
  }
  t.match(await loadText(t, client, 'ndjson', ''), { errors: [{ code: 'empty_file' }] });
  t.match(await loadText(t, client, 'ndjson', '[\n{"code": "A"}\n]\n'), {
    errors: [{ code: 'invalid_json' }, { line: 1, message: /one object a line/ }],
  });
});

t.test(
  'a line without end is skipped and named; the lines after it keep their numbers',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await describePrices(client, 'A');
    for (const megabytes of [2, 8]) {
      const long = `A,2026-01-01,,${'1'.repeat(megabytes * 1_048_576)},,`;
      const text = points(long, 'A,2026-01-02,,x,,', long, 'A,2026-01-03,,1,,');
      t.strictSame(errorsOf(await loadText(t, client, 'csv', text)), [
        [2, null, 'line_too_long'],
        [3, 'mid', 'invalid_number'],
        [4, null, 'line_too_long'],
      ]);
    }
    const endless = `code,date,mid\nA,2026-01-01,"${'1\n'.repeat(1_048_576)}`;
    t.strictSame(errorsOf(await loadText(t, client, 'csv', endless)), [[2, null, 'invalid_quote']]);
    const root = '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01">';
    const xml = root + 'a'.repeat(4_000_000);
    t.match(await loadText(t, client, 'ecb', xml), { errors: [{ code: 'line_too_long' }] });
    const deep = `{"price": ${'['.repeat(100_000)}`;
    t.match(await loadText(t, client, 'ndjson', deep), { errors: [{ code: 'invalid_json' }] });
  },
);

t.test('a line of a gigabyte is skipped as any that is too long', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const file = await fileOf(t, points('A,2026-01-01,,1').trimEnd());
  // A sparse file: its zeros need no disk space.
  const handle = await open(file, 'r+');
  await handle.write('0,,\nA,2026-01-02,,x,,\n', 2 ** 30);
  await handle.close();
  t.strictSame(errorsOf(await loadFile(client, 'csv', file)), [
    [2, null, 'line_too_long'],
    [3, 'mid', 'invalid_number'],
  ]);
});

t.test('a file that names more prices than one load takes is refused', async (t) => {
  const { client } = await loadingDatabase(t);
  const rows = Array.from({ length: 100_001 }, (_, index) => `Z-${index},2026-01-01,,1,,`);
  const report = await loadText(t, client, 'csv', points(...rows));
  t.match(report, {
    status: 'refused',
    errorsTotal: 1,
    errors: [{ line: 100_002, code: 'too_many_prices' }],
  });
});

t.test('rows out of order are loaded like any other', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const rows = ['A,2026-01-03,,3,,', 'B,2026-01-01,,1,,', 'A,2026-01-01,,1,,', 'A,2026-01-02,,2,,'];
  await loadText(t, client, 'csv', points(...rows));
  t.strictSame(
    (await seriesOf(pool, 'A')).map(([, , mid]) => mid),
    ['1', '2', '3'],
  );
});
