import t from 'tap';
import { usgs } from '../../../src/ingest/formats/usgs.ts';
import { USGS_SERIES } from '../../../src/ingest/formats/usgs-series.ts';
import {
  CORRECTING,
  errorsOf,
  fileOf,
  loadingDatabase,
  loadText,
  pricesOf,
  seriesOf,
} from '../support/loading.ts';

/** A file as the USGS writes it: byte order mark, CRLF. */
const table = (...lines: string[]): string =>
  `\ufeff${lines.map((line) => `${line}\r\n`).join('')}`;

const NICKEL = 'DataSource,Commodity,Year,USprod_Mine_t,Imports_Ores_t,Price_dt,Price_dlb,NIR_pct';
const LIST = 'release,market,series,year,value,currency_code_as_published,unit,estimated';

t.test('a salient table becomes prices of its market, a point for each year', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const report = await loadText(
    t,
    client,
    'usgs',
    table(
      NICKEL,
      'MCS2025,Nickel,2022,17500,Less than ½ unit.,"25,815",11.710,>50',
      'MCS2025,Nickel,2023,W,4,e21495,NA,E',
      'MCS2025,Nickel,2024,8000,10,W,7.7,XX',
      ',,,,,,,',
      ',,   ,,,,,',
    ),
  );
  t.match(report, { status: 'applied', vintage: '2025-01-31', errorsTotal: 0 });
  t.match(report.counts, { rows: 4, inserted: 4, rejected: 0, pricesAdded: 2 });
  t.strictSame(await seriesOf(pool, 'CP-NI-9101'), [
    ['2022-12-31', null, '25815', null, 0],
    ['2023-12-31', null, '21495', null, 0],
  ]);
  t.strictSame(await seriesOf(pool, 'CP-NI-9102'), [
    ['2022-12-31', null, '11.71', null, 0],
    ['2024-12-31', null, '7.7', null, 0],
  ]);
});

t.test('the day of the release is the day of publication', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const list = (release: number, value: string) =>
    table(LIST, `MCS${release},copper,"Copper grade A, LME cash",2020,${value},USc,lb,false`);
  const published = async () => {
    const { rows } = await pool.query('select mid, published_at from series');
    return rows;
  };
  await loadText(t, client, 'usgs', list(2024, '280'));
  t.strictSame(await published(), [{ mid: '2.8', published_at: '2024-01-31 00:00:00+00' }]);
  await loadText(t, client, 'usgs', list(2026, '279.80'), CORRECTING);
  const revised = [{ mid: '2.798', published_at: '2026-02-06 00:00:00+00' }];
  t.strictSame(await published(), revised, 'and that of a revision');
  const outdated = await loadText(t, client, 'usgs', list(2022, '281'), CORRECTING);
  t.match(outdated, { status: 'unchanged', counts: { outdated: 1, corrected: 0 } });
  t.strictSame(await published(), revised);
});

t.test('two columns with the same name are distinguished by their position', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const header = 'DataSource,Commodity,Year,Price_dt dlb (both used),Price_dt dlb (both used)';
  const report = await loadText(
    t,
    client,
    'usgs',
    table(`${header},,`, 'MCS2024,Nickel,2022,25815,11.71,,'),
  );
  t.match(report, { status: 'applied', counts: { inserted: 2 } });
  t.match(await seriesOf(pool, 'CP-NI-9101'), [['2022-12-31', null, '25815']]);
  t.match(await seriesOf(pool, 'CP-NI-9102'), [['2022-12-31', null, '11.71']]);
});

t.test('every series there is can be created from the reference data alone', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const rows = USGS_SERIES.map(({ market, title, unit, cents }) => {
    const currency = cents ? 'USc' : 'USD';
    return `MCS2025,${market},"${title}",2024,123.4,${currency},${unit},true`;
  });
  const report = await loadText(t, client, 'usgs', table(LIST, ...rows));
  t.match(report, { status: 'applied', counts: { inserted: 30, pricesAdded: 30 } });
  const prices = await pricesOf(pool);
  t.strictSame(
    prices.map(({ code }) => code),
    USGS_SERIES.map(({ code }) => code).sort(),
  );
  const units = { tonne: 'Tonne', lb: 'Pound', kg: 'Kilogram', g: 'Gram', mtu: 'Metric ton unit' };
  for (const { code, market, unit, cents } of USGS_SERIES) {
    const price = prices.find((each) => each['code'] === code);
    t.match(price, { market, price_type: 'price', iso: 'USD', unit: units[unit] }, code);
    t.match(JSON.stringify(price?.['specification']), /U\.S\. Geological Survey.*public domain/);
    const value = cents ? '1.234' : '123.4';
    t.strictSame(await seriesOf(pool, code), [['2024-12-31', null, value, null, 0]]);
  }
  const { rows: ofDays } = await pool.query(
    "select code from price where observes is distinct from 'year-mean' order by code",
  );
  t.strictSame(ofDays, [{ code: 'CP-RE-9112' }, { code: 'CP-RE-9113' }], 'prices of a year end');
});

const row = 'MCS2025,Nickel,2022,17500,18,25815,11.71,55';
const salient = (...changed: string[]) => [NICKEL, ...changed];
const listed = (changed: string) => [LIST, changed];
const REFUSED: Readonly<Record<string, readonly [readonly string[], unknown[][]]>> = {
  'a table by country': [
    ['Source,Country,Type,Prod_t_est_2021', 'MCS2024,United States,"Mine production, tons",500'],
    [[1, null, 'invalid_layout']],
  ],
  'a table of something else': [['Year,Price', '2020,1'], [[1, null, 'invalid_layout']]],
  'a table of several releases with the names of their files': [
    [`${LIST},source_file,source_column`, 'MCS2022,a,b,2020,1,USD,lb,false,x.csv,Price'],
    [[1, null, 'invalid_layout']],
  ],
  'a commodity that is not loaded': [
    salient('MCS2025,Zinc,2022,1,1,1,1,1'),
    [[2, 'Commodity', 'invalid_layout']],
  ],
  'two commodities': [
    salient(row, 'MCS2025,Copper,2023,1,1,1,1,1'),
    [[3, 'Commodity', 'invalid_layout']],
  ],
  'two releases': [salient(row, row.replace('2025', '2024')), [[3, 'release', 'invalid_vintage']]],
  'no release': [salient(row.replace('MCS2025', '2025')), [[2, 'release', 'invalid_vintage']]],
  'a release of the future': [
    listed('MCS2199,copper,"Copper grade A, LME cash",2020,1,USc,lb,false'),
    [
      [null, null, 'invalid_vintage'],
      [2, 'publishedAt', 'invalid_time'],
    ],
  ],
  'a price column that is gone': [
    [NICKEL.replace('Price_dlb', 'Stocks_t'), row],
    [[1, null, 'missing_column']],
  ],
  'two columns for one price': [
    ['Source,Commodity,Year,Price_Flake_t,Price_Flake_dt', 'MCS2025,Graphite (Natural),2022,1,2'],
    [
      [1, 'Price_Flake_dt', 'ambiguous_column'],
      [1, 'Price_Flake_t', 'ambiguous_column'],
    ],
  ],
  'cells that are no prices': [
    salient(
      'MCS2025,Nickel,2020,1,1,>50,,1',
      'MCS2025,Nickel,2021,1,1,Less than ½ unit,"1,23",1',
      'MCS2025,Nickel,2025,1,1,1,2,1',
      'MCS2025,Nickel,22,1,1,W,2,1',
      'MCS2025,Nickel,2023,1,1,1,2',
    ),
    [
      [2, 'Price_dt', 'invalid_number'],
      [2, 'Price_dlb', 'invalid_number'],
      [3, 'Price_dt', 'invalid_number'],
      [3, 'Price_dlb', 'invalid_number'],
      [4, 'Year', 'invalid_date'],
      [4, 'Year', 'invalid_date'],
      [5, 'Year', 'invalid_date'],
      [6, null, 'wrong_column_count'],
    ],
  ],
  'a year that is there twice': [salient(row, row), [3, 3].map((at) => [at, 'date', 'duplicate'])],
  'a series that is not loaded': [
    listed('MCS2026,copper,Copper scrap,2024,1,USc,lb,false'),
    [[2, 'series', 'unknown_code']],
  ],
  'another unit': [
    listed('MCS2026,copper,"Copper grade A, LME cash",2024,1,USc,kg,false'),
    [[2, 'unit', 'unit_mismatch']],
  ],
  'dollars where cents are expected': [
    listed('MCS2026,copper,"Copper grade A, LME cash",2024,4.1,USD,lb,false'),
    [[2, 'unit', 'unit_mismatch']],
  ],
  'the lithium price of 2026, which is in dollars without inflation': [
    ['DataSource,Commodity,Year,Price_dt', 'MCS2026,Lithium,2024,14000'],
    [[2, null, 'unit_mismatch']],
  ],
  'no row': [salient(), [[null, null, 'empty_file']]],
  nothing: [[], [[null, null, 'empty_file']]],
};

t.test('a table that is not as expected is refused with the reason and the place', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  for (const [what, [lines, expected]] of Object.entries(REFUSED)) {
    const report = await loadText(t, client, 'usgs', table(...lines));
    t.equal(report.status, 'refused', what);
    t.strictSame(errorsOf(report), expected, what);
  }
  const { rows } = await pool.query(
    'select (select count(*) from price) + (select count(*) from series) as n',
  );
  t.equal(rows[0].n, '0', 'nothing was stored by any of them');
});

t.test('files given together are loaded from the oldest release on', async (t) => {
  const paths: string[] = [];
  for (const text of ['MCS2025,Nickel', '"MCS2022",Nickel', 'none', 'MCS2024,Nickel']) {
    paths.push(await fileOf(t, table('DataSource,Commodity', text)));
  }
  const ordered = await usgs.inOrder?.(paths);
  t.strictSame(ordered, [paths[2], paths[1], paths[3], paths[0]]);
  await t.rejects(async () => usgs.inOrder?.([...paths, '/no/such/file']), /ENOENT/);
});
