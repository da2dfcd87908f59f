import t from 'tap';
import { FORMAT_NAMES, FORMATS } from '../../../src/ingest/formats/formats.ts';
import {
  CORRECTING,
  errorsOf,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  pricesOf,
  seriesOf,
} from '../support/loading.ts';

t.test('the formats are listed in one table, each with a title and what it accepts', async (t) => {
  for (const { title, accepts } of Object.values(FORMATS))
    t.ok(title.length > 0 && accepts.length > 0);
  const modules = await Promise.all(
    FORMAT_NAMES.filter((name) => name !== 'table').map((name) => FORMATS[name].open()),
  );
  t.equal(new Set(modules).size, modules.length, 'each has a module of its own');
});

t.test('a CSV file creates prices by code and fills their series', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const report = await loadFile(client, 'csv', fixture('prices.csv'));
  t.match(report, { status: 'applied', vintage: null, errorsTotal: 0 });
  t.match(report.counts, { rows: 3, inserted: 3, pricesAdded: 3 });
  t.strictSame(await pricesOf(pool), [
    {
      code: 'XX-NI-1',
      market: 'nickel',
      name: 'Nickel cathode, premium "full plate"',
      short_name: 'Ni prem',
      price_type: 'price',
      iso: 'USD',
      unit: 'Tonne',
      product: 'Nickel cathode',
      purity: '99.8% Ni min',
      incoterm: 'FCA',
      launched: '2025-06-05',
      specification: [{ name: 'basis', value: 'over exchange cash', order: 1 }],
    },
    {
      code: 'XX-NI-2',
      market: 'nickel',
      name: 'Mixed hydroxide precipitate, payable',
      short_name: null,
      price_type: 'payable',
      iso: null,
      unit: 'Percent',
      product: 'Mixed hydroxide precipitate',
      purity: null,
      incoterm: 'CIF',
      launched: null,
      specification: [],
    },
    {
      code: 'XX-NI-3',
      market: 'nickel',
      name: 'Nickel briquette without a value yet',
      short_name: null,
      price_type: 'price',
      iso: 'EUR',
      unit: 'Tonne',
      product: 'Nickel briquette',
      purity: null,
      incoterm: null,
      launched: null,
      specification: [],
    },
  ]);
  t.strictSame(await seriesOf(pool, 'XX-NI-1'), [
    ['2026-01-01', '100', '110.5', '120', 0],
    ['2026-01-08', '101', '111.25', '121.5', 0],
  ]);
  const { rows } = await pool.query(`select published_at = started_at as same
    from series, load_batch where mid = 70`);
  t.strictSame(rows, [{ same: true }], 'a value without a time is published when it is loaded');
});

t.test(
  'an NDJSON file may declare products and dimension values, and keeps every digit',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    const report = await loadFile(client, 'ndjson', fixture('prices.ndjson'));
    t.match(report, { status: 'applied', errorsTotal: 0 });
    t.match(report.counts, { rows: 2, inserted: 2, pricesAdded: 1 });
    t.match(await pricesOf(pool), [
      { code: 'XX-NI-4', product: 'Nickel dust', unit: 'Kilogram', purity: '99.99% Ni min' },
    ]);
    t.strictSame(await seriesOf(pool, 'XX-NI-4'), [
      ['2026-01-08', '0.1', '123456789.123456', '123456789.123456', 0],
      ['2026-01-15', null, '0.0015', null, 0],
    ]);
    const { rows } = await pool.query(`select slug, uuid is not null as has from product
    where name = 'Nickel dust' union all select slug, true from dimension_value
    where name = '99.99% Ni min'`);
    t.strictSame(rows, [
      { slug: 'nickel-dust', has: true },
      { slug: '99.99-ni-min', has: true },
    ]);
    const declared = '{"value": {"dimension": "purity", "name": "99.8%  NI MIN"}}';
    t.match(await loadText(t, client, 'ndjson', declared), { status: 'unchanged' });
  },
);

t.test(
  'columns and members that a format does not have are refused with the nearest name',
  async (t) => {
    const { client } = await loadingDatabase(t);
    const headers = {
      'code,date,midd': ['unknown_column', 'There is no column of this name; did you mean "mid"?'],
      'code;date;mid': [
        'unknown_column',
        'There is no column of this name; columns are separated by commas: load table --map ' +
          'reads other separators',
      ],
      'code,date,mid,date': ['unknown_column', 'The column appears twice'],
      'date,mid': [
        'missing_column',
        'The column code is missing: it identifies the price of a row',
      ],
      'code,date': ['missing_column', 'The column mid is missing: a row with a date needs it'],
      'code,mid': ['missing_column', 'The column date is missing: every value needs a date'],
      code: ['missing_column', 'The column mid is missing: a row with a date needs it'],
    };
    for (const [header, [code, message]] of Object.entries(headers)) {
      const report = await loadText(t, client, 'csv', `${header}\nA,2026-01-01,1\n`);
      t.match(
        report,
        { status: 'refused', errorsTotal: 1, errors: [{ line: 1, code, message }] },
        header,
      );
    }
    const lines = {
      '{"code": "A", "date": "2026-01-01", "mid": 1, "hihg": 2}': ['hihg', 'unknown_member'],
      '{"prise": {}}': ['prise', 'unknown_member'],
      '{"price": {"code": "A", "marked": "nickel"}}': ['marked', 'unknown_member'],
      '{"price": {"code": "A"}, "mid": 1}': ['mid', 'unknown_member'],
      '{"price": "A"}': ['price', 'wrong_type'],
      '{"code": "A", "date": "2026-01-01", "mid": [1]}': ['mid', 'wrong_type'],
      '{"code": 7, "date": "2026-01-01", "mid": 1}': ['code', 'wrong_type'],
      '{"date": "2026-01-01", "mid": 1}': ['code', 'missing_value'],
      '{"code": "A", "mid": 1}': ['date', 'missing_value'],
      '{"code": "A", "date": "2026-01-01", "mid": 1, "mid": 2}': [null, 'invalid_json'],
      '{"code": "A", "date": "2026-01-01", "mid": NaN}': [null, 'invalid_json'],
      '{"code": "A", "date": "2026-01-01", "mid": 1,}': [null, 'invalid_json'],
      '{"code": "A"} {"code": "B"}': [null, 'invalid_json'],
      '["A"]': [null, 'invalid_json'],
      '{"code": "A\\u12"}': [null, 'invalid_json'],
      '{"code": "A': [null, 'invalid_json'],
      '{"value": {"dimension": "puritty", "name": "x"}}': ['dimension', 'unsupported_field'],
      '{"value": {"dimension": "frequency", "name": "Hourly"}}': ['dimension', 'unsupported_field'],
      '{"product": {"market": "nickel", "name": "x", "alias": "x", "chemicalCode": "x"}}': [
        'isSustainable',
        'wrong_type',
      ],
    };
    for (const [line, [column, code]] of Object.entries(lines)) {
      t.strictSame(errorsOf(await loadText(t, client, 'ndjson', line)), [[1, column, code]], line);
    }
  },
);

t.test('RFC 4180 is read as it is written', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadFile(client, 'csv', fixture('prices.csv'));
  const text = '\ufeff"code",date,"mid"\r\n\r\n"XX-NI-1","2026-01-22",1\r\nXX-NI-2,2026-01-22,"2"';
  t.match(await loadText(t, client, 'csv', text), { status: 'applied', counts: { inserted: 2 } });
  t.strictSame((await seriesOf(pool, 'XX-NI-1')).at(-1), ['2026-01-22', null, '1', null, 0]);
  const multiline = 'code,specification\nXX-NI-3,"[\n{""name"": ""a"",\r\n""value"": ""b, c""}]"\n';
  t.match(await loadText(t, client, 'csv', multiline, CORRECTING), {
    counts: { pricesChanged: 1 },
  });
  const wrong = points('XX-NI-1,2026-01-2"9",,1,,', '"XX-NI-1"x,2026-01-29,,1,,', 'a,b');
  t.strictSame(errorsOf(await loadText(t, client, 'csv', wrong)), [
    [2, null, 'invalid_quote'],
    [3, null, 'invalid_quote'],
    [4, null, 'wrong_column_count'],
  ]);
  const semicolons = '"code";"date";"mid"\n"XX-NI-1";"2026-01-29";"1"\n';
  for (const header of [semicolons, semicolons.replace('"code"', 'code')]) {
    const { errors } = await loadText(t, client, 'csv', header);
    t.match(errors, [{ line: 1, code: 'invalid_quote', message: /by commas, not by semicolons$/ }]);
    t.equal(errors.length, 1);
  }
  const open = points(
    'XX-NI-1,2026-01-29,,1,,',
    '"XX-NI-1,2026-01-30,,1,,',
    'XX-NI-1,2026-01-31,,1,,',
  );
  t.strictSame(errorsOf(await loadText(t, client, 'csv', open)), [[3, null, 'invalid_quote']]);
});
