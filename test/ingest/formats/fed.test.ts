import type pg from 'pg';
import t from 'tap';
import { H10_COUNTRIES } from '../../../src/ingest/formats/fed.ts';
import { CORRECTING, errorsOf, loadingDatabase, loadText } from '../support/loading.ts';

const table = (...lines: string[]): string => lines.map((line) => `${line}\n`).join('');

/** Currency, day and rate of the source, as texts. */
async function stored(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query(
    `select iso || ' ' || date || ' ' || rate as text
     from fx_rate join currency on id = currency_id where source = 'FED'`,
  );
  return rows.map(({ text }) => text).sort();
}

t.test('a row for each day, units of each country’s currency for one dollar', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const report = await loadText(
    t,
    client,
    'fed',
    table(
      'Data,Australia,Germany,Euro,Japan,United Kingdom',
      '2001-12-31,1.9539,2.1971,1.1233,131.04,0.6870',
      '2002-01-01,,,,,',
      '2002-01-02,1.9316,,1.1068,ND,0.6914',
      '',
    ),
  );
  t.match(report, { status: 'applied', vintage: '2002-01-02', errorsTotal: 0 });
  t.match(report.counts, { rows: 8, inserted: 8 });
  t.strictSame(await stored(pool), [
    'AUD 2001-12-31 1.9539',
    'AUD 2002-01-02 1.9316',
    'DEM 2001-12-31 2.1971',
    'EUR 2001-12-31 1.1233',
    'EUR 2002-01-02 1.1068',
    'GBP 2001-12-31 0.687',
    'GBP 2002-01-02 0.6914',
    'JPY 2001-12-31 131.04',
  ]);
  const { rows } = await pool.query(`
    select s.slug, iso, is_sample from fx_source s join currency c on c.id = base_currency_id
    where s.slug = 'FED'`);
  t.strictSame(rows, [{ slug: 'FED', iso: 'USD', is_sample: false }]);
});

t.test('every country has a currency that can be stored', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const countries = Object.entries(H10_COUNTRIES);
  const rows = countries.map(([, { last }], index) => {
    const rates = countries.map((_, at) => (at === index ? '0.5' : ''));
    return [last ?? '2017-11-30', ...rates].join();
  });
  // Several currencies ended on a Sunday, which has no rate.
  const days = rows.map((row) => row.replace('2000-12-31', '2000-12-29').replace('08-19', '08-17'));
  const header = `Date,${countries.map(([country]) => country).join()}`;
  const report = await loadText(t, client, 'fed', table(header, ...days));
  t.match(report, { status: 'applied', counts: { inserted: 34 } });
  t.equal(new Set((await stored(pool)).map((text) => text.slice(0, 3))).size, 34);
});

t.test('the newer file wins, and differing rates need permission', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const file = (last: string, rate: string) =>
    table('Date,Canada', `2017-11-30,${rate}`, `${last},1.2705`);
  await loadText(t, client, 'fed', file('2017-12-01', '1.2888'));
  const refused = await loadText(t, client, 'fed', file('2017-12-04', '1.2890'));
  t.match(refused, { status: 'refused', errors: [{ code: 'correction_not_allowed' }] });
  await loadText(t, client, 'fed', file('2017-12-04', '1.2890'), CORRECTING);
  const older = await loadText(t, client, 'fed', file('2017-12-01', '1.3'), CORRECTING);
  t.match(older, { status: 'unchanged', counts: { outdated: 1, unchanged: 1 } });
  t.ok((await stored(pool)).includes('CAD 2017-11-30 1.289'));
});

const REFUSED: Readonly<Record<string, readonly [readonly string[], unknown[][]]>> = {
  'averages of months, a row for each country': [
    ['Date,Country,Exchange rate', '2020-01-01,Canada,1.3', '2020-02-01,Canada,1.32'],
    [[1, null, 'period_averages']],
  ],
  'averages of months, a column for each country': [
    ['Date,Canada', '2020-04-01,1.3', '2020-05-01,1.32', '2020-07-01,1.35'],
    [[null, null, 'period_averages']],
  ],
  'averages of months below rates of days': [
    ['Date,Canada', '2017-11-30,1.2', '2017-12-01,1.27', '2018-01-01,1.24', '2018-04-01,1.27'],
    [[5, 'Date', 'invalid_date']],
  ],
  'dollars for a pound': [
    ['Date,Canada,United Kingdom', '2017-11-30,1.2888,1.3525'],
    [[2, 'United Kingdom', 'unit_mismatch']],
  ],
  'a country that the H.10 does not have': [
    ['Date,Canada,Untied Kingdom', '2017-11-30,1.2888,0.7'],
    [[1, 'Untied Kingdom', 'unknown_column']],
  ],
  'a country that is there twice': [
    ['Date,Canada,Canada', '2017-11-30,1.2888,1.2888'],
    [[1, 'Canada', 'unknown_column']],
  ],
  'another table': [['code,date,mid', 'a,2020-01-02,1'], [[1, null, 'invalid_layout']]],
  'currencies outside their days': [
    ['Date,Germany,Euro,Brazil,Venezuela', '1994-06-30,1.6,1.2,2700,', '2018-08-20,1,0.8,3.9,61'],
    [
      [2, 'Euro', 'out_of_range'],
      [2, 'Brazil', 'out_of_range'],
      [3, 'Germany', 'out_of_range'],
      [3, 'Venezuela', 'out_of_range'],
    ],
  ],
  'cells that are no rates': [
    [
      'Date,Canada',
      '2017-11-30,0',
      '2017-11-29,-1',
      '2017-11-28,1e3',
      '30.11.2017,1',
      '2017-11-27',
    ],
    [
      [2, 'CAD', 'out_of_range'],
      [3, 'CAD', 'out_of_range'],
      [4, 'CAD', 'invalid_number'],
      [5, 'Date', 'invalid_date'],
      [6, null, 'wrong_column_count'],
    ],
  ],
  'a day that is there twice': [
    ['Date,Canada', '2017-11-30,1', '2017-11-30,1'],
    [[3, 'date', 'duplicate']],
  ],
  'no rate at all': [['Date,Canada', '2017-11-30,'], [[null, null, 'empty_file']]],
};

t.test('a table that is not as expected is refused with the reason and the place', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  for (const [what, [lines, expected]] of Object.entries(REFUSED)) {
    const report = await loadText(t, client, 'fed', table(...lines));
    t.equal(report.status, 'refused', what);
    t.strictSame(errorsOf(report), expected, what);
  }
  t.strictSame(await stored(pool), []);
});
