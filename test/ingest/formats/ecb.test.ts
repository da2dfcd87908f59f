import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import t from 'tap';
import {
  contentOf,
  errorsOf,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
} from '../support/loading.ts';
import { zipOf } from '../support/workbook.ts';

const RATES = [
  ['CYP', '2024-01-03', '0.5853'],
  ['GBP', '2024-01-03', '0.86455'],
  ['GBP', '2024-01-04', '0.86278'],
  ['GBP', '2024-01-05', '0.8612'],
  ['JPY', '2024-01-03', '155.91'],
  ['JPY', '2024-01-04', '157.99'],
  ['JPY', '2024-01-05', '158.7'],
  ['SEK', '2024-01-04', '11.195'],
  ['SEK', '2024-01-05', '11.2'],
  ['USD', '2024-01-03', '1.0919'],
  ['USD', '2024-01-04', '1.0953'],
  ['USD', '2024-01-05', '1.0921'],
];

async function ratesOf(pool: pg.Pool): Promise<unknown[][]> {
  const { rows } = await pool.query({
    text: `select iso, date, rate from fx_rate join currency on id = currency_id
      where source = 'ECB' order by iso, date`,
    rowMode: 'array',
  });
  return rows;
}

const HIST = fixture('ecb-hist.csv');
const ONE_DAY = RATES.filter(([, date]) => date === '2024-01-05');

t.test('every form in which the ECB sends its rates gives the same rates', async (t) => {
  const hist = await readFile(HIST);
  const single = await readFile(fixture('ecb-single-day.csv'));
  const forms = {
    'history, CSV': [hist, RATES],
    'history, ZIP': [zipOf([{ name: 'eurofxref-hist.csv', content: hist }]), RATES],
    'history, XML on one line': [await readFile(fixture('ecb-many-days.xml')), RATES],
    'one day, CSV with spaces and words': [single, ONE_DAY],
    'one day, ZIP': [zipOf([{ name: 'eurofxref.csv', content: single }]), ONE_DAY],
    'one day, XML with apostrophes': [await readFile(fixture('ecb-single-day.xml')), ONE_DAY],
    'XML in a ZIP with a byte order mark': [
      zipOf([{ name: 'x', content: `\ufeff${await readFile(fixture('ecb-many-days.xml'))}` }]),
      RATES,
    ],
    'CSV with CRLF': [hist.toString().replaceAll('\n', '\r\n'), RATES],
  } as const;
  for (const [form, [content, expected]] of Object.entries(forms)) {
    const { client, pool } = await loadingDatabase(t);
    const report = await loadText(t, client, 'ecb', content);
    t.match(report, { status: 'applied', vintage: '2024-01-05', errorsTotal: 0 }, form);
    t.match(report.counts, { rows: expected.length, inserted: expected.length }, form);
    t.strictSame(await ratesOf(pool), expected, form);
  }
});

t.test('N/A is no rate, and never a zero', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadFile(client, 'ecb', HIST);
  const { rows } = await pool.query(`select count(*) from fx_rate where rate = 0 or date is null`);
  t.equal(rows[0].count, '0');
  t.notOk((await ratesOf(pool)).some(([iso, date]) => iso === 'SEK' && date === '2024-01-03'));
});

t.test(
  'a currency that is new is added with its name and sign, also one that has ended',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await loadFile(client, 'ecb', HIST);
    const { rows } = await pool.query(
      `select iso, name, symbol from currency where iso in ('SEK', 'CYP') order by iso`,
    );
    t.strictSame(rows, [
      { iso: 'CYP', name: 'Cypriot Pound', symbol: 'CYP' },
      { iso: 'SEK', name: 'Swedish Krona', symbol: 'SEK' },
    ]);
    const scopes = await pool.query(
      'select scope from revision_scope where revision = 2 order by scope',
    );
    t.strictSame(
      scopes.rows.map(({ scope }) => scope),
      ['fx:ECB', 'reference'],
    );
  },
);

t.test(
  'the files are the same whichever comes first, and a second time changes nothing',
  async (t) => {
    const files = ['ecb-hist.csv', 'ecb-single-day.csv', 'ecb-single-day.xml', 'ecb-many-days.xml'];
    const contents = new Set<string>();
    for (const first of files) {
      const { client, pool } = await loadingDatabase(t);
      const order = [first, ...files.filter((file) => file !== first)];
      for (const file of order) await loadFile(client, 'ecb', fixture(file));
      contents.add(await contentOf(pool));
      for (const file of order) {
        t.match(await loadFile(client, 'ecb', fixture(file)), { status: 'already-loaded' });
      }
      contents.add(await contentOf(pool));
    }
    t.equal(contents.size, 1);
  },
);

t.test('an older edition never overwrites a newer one, and fills in what is missing', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadText(t, client, 'ecb', 'Date,USD,\n2024-01-05,1.1,\n2024-01-03,1.3,\n');
  const report = await loadText(
    t,
    client,
    'ecb',
    'Date,USD,JPY,\n2024-01-04,9.9,150,\n2024-01-03,9.9,150,\n2024-01-02,1.2,N/A,\n',
  );
  t.match(report, { status: 'applied', vintage: '2024-01-04' });
  t.match(report.counts, { rows: 5, inserted: 4, outdated: 1, corrected: 0 });
  t.strictSame(
    (await ratesOf(pool)).filter(([iso]) => iso === 'USD'),
    [
      ['USD', '2024-01-02', '1.2'],
      ['USD', '2024-01-03', '1.3'],
      ['USD', '2024-01-04', '9.9'],
      ['USD', '2024-01-05', '1.1'],
    ],
  );
});

t.test(
  'rows that are wrong are refused with line and currency, and nothing is stored',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    const header = 'Date,USD,JPY,\n';
    const cases = {
      'a currency that does not exist': [
        'Date,USD,QQQ,\n2024-01-05,1,2,\n',
        [[2, 'code', 'unknown_currency']],
      ],
      'a header that is something else': [
        'Datum,USD,\n2024-01-05,1,\n',
        [[1, null, 'invalid_layout']],
      ],
      'a header with a word': [
        'Date,USD,Dollar,\n2024-01-05,1,2,\n',
        [[1, null, 'unknown_column']],
      ],
      'a currency twice': ['Date,USD,USD,\n2024-01-05,1,2,\n', [[1, null, 'duplicate']]],
      'a row that is short': [`${header}2024-01-05,1,\n`, [[2, null, 'wrong_column_count']]],
      'a zero': [`${header}2024-01-05,0,1,\n`, [[2, 'USD', 'out_of_range']]],
      'a negative rate': [`${header}2024-01-05,1,-1,\n`, [[2, 'JPY', 'out_of_range']]],
      'an empty rate': [`${header}2024-01-05,,1,\n`, [[2, 'USD', 'invalid_number']]],
      'a day that is none': [`${header}2024-02-30,1,1,\n`, [[2, 'Date', 'invalid_date']]],
      'a day twice': [
        `${header}2024-01-05,1,N/A,\n5 January 2024,2,1,\n`,
        [[3, 'date', 'duplicate']],
      ],
      'a day after tomorrow': [
        `${header}2199-01-05,1,N/A,\n`,
        [
          [null, null, 'invalid_vintage'],
          [2, 'date', 'out_of_range'],
        ],
      ],
      'no rates': [header, [[null, null, 'empty_file']]],
      'another archive': [
        zipOf([
          { name: 'a', content: 'a' },
          { name: 'b', content: 'b' },
        ]),
        [[null, null, 'invalid_archive']],
      ],
      'foreign XML': ['<html><body/></html>', [[1, null, 'invalid_layout']]],
      'XML with a document type': ['<!DOCTYPE html><html/>', [[1, null, 'invalid_layout']]],
      'a cube without a day': [
        (await readFile(fixture('ecb-many-days.xml'), 'utf8')).replace('2024-01-04', 'yesterday'),
        ['USD', 'JPY', 'SEK', 'GBP'].map((iso) => [1, iso, 'invalid_date']),
      ],
    } as const;
    for (const [what, [content, expected]] of Object.entries(cases)) {
      const report = await loadText(t, client, 'ecb', content);
      t.equal(report.status, 'refused', what);
      t.strictSame(errorsOf(report), expected, what);
    }
    t.strictSame(await ratesOf(pool), []);
    const { rows } = await pool.query('select count(*) from revision');
    t.equal(rows[0].count, '1', 'only the seeds took a revision');
  },
);

t.test('rates of the ECB never touch those of another source', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await pool.query(`begin; select open_revision('sample');
    insert into fx_rate (source, currency_id, date, rate)
      select 'SAMPLE', id, '2024-01-05', 7 from currency where iso = 'USD'; commit`);
  const report = await loadFile(client, 'ecb', HIST);
  t.match(report.counts, { inserted: 12, corrected: 0 });
  const { rows } = await pool.query(
    `select source, rate from fx_rate join currency on id = currency_id
     where iso = 'USD' and date = '2024-01-05' order by source`,
  );
  t.strictSame(rows, [
    { source: 'ECB', rate: '1.0921' },
    { source: 'SAMPLE', rate: '7' },
  ]);
});
