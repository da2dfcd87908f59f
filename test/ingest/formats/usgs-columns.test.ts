import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import t from 'tap';
import { SUFFIXES, USGS_SERIES } from '../../../src/ingest/formats/usgs-series.ts';
import { loadTable } from '../mapping/support.ts';
import { errorsOf, loadingDatabase, loadText, seriesOf } from '../support/loading.ts';

/** A salient table of one year. */
const table = (commodity: string, prices: Readonly<Record<string, string>>, year = 2022): string =>
  `DataSource,Commodity,Year,Imports_t,${Object.keys(prices)},NIR_pct\r\n` +
  `MCS2025,${commodity},${year},4,${Object.values(prices)},>50\r\n`;

/** The value of a year for each price that has one. */
async function stored(pool: pg.Pool, year: number) {
  const { rows } = await pool.query(
    `select p.code, s.mid from series s join price p on p.id = price_id
     where s.date = $1 order by p.code`,
    [`${year}-12-31`],
  );
  return Object.fromEntries(rows.map(({ code, mid }) => [code, mid]));
}

type NamedValues = Readonly<Record<string, string>>;
const LOADED: readonly (readonly [
  commodity: string,
  prices: NamedValues,
  expected: NamedValues,
])[] = [
  [
    'Nickel',
    { Price_LME_dt: '25815', Price_dlb: '11.71' },
    { 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' },
  ],
  [
    'Nickel',
    { 'price LME-cash dlb': '11.71', PRICE_DT: '25815' },
    { 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' },
  ],
  [
    'Cobalt',
    { LME_Price_cash_dlb: '30.78', Price_US_Spot_dlb: '30.78' },
    { 'CP-CO-9101': '30.78', 'CP-CO-9102': '30.78' },
  ],
  ['Aluminum', { Price_Ingot_spot_ctslb: '152.6' }, { 'CP-AL-9101': '1.526' }],
  ['Lithium', { Price_dt: '68100' }, { 'CP-LI-9101': '68100' }],
  [
    'Scandium',
    { Price_Oxide_dg: '2.1', Price_Ingot_dg: '153', Price_ScAl_5kglot_dkg: '380' },
    { 'CP-RE-9112': '2.1', 'CP-RE-9113': '153' },
  ],
];

t.test('a price column is known by price, exchange or basis, and unit', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  for (const [index, [commodity, prices, expected]] of LOADED.entries()) {
    const year = 2000 + index;
    const report = await loadText(t, client, 'usgs', table(commodity, prices, year));
    t.match(report, { status: 'applied', errorsTotal: 0 }, Object.keys(prices).join());
    t.strictSame(await stored(pool, year), expected, Object.keys(prices).join());
  }
});

interface RefusedColumn {
  readonly commodity: string;
  readonly prices: NamedValues;
  readonly errors: readonly (readonly [column: string, code: string])[];
  /** The prices that the mappings of each error load, before the user replaces placeholders. */
  readonly loads: readonly NamedValues[];
}

const lb = { Price_dlb: '11.71' };
const REFUSED: readonly RefusedColumn[] = [
  {
    commodity: 'Nickel',
    prices: { Price_dt: '25815', Price_LME_dt: '25816', ...lb },
    errors: [
      ['Price_dt', 'ambiguous_column'],
      ['Price_LME_dt', 'ambiguous_column'],
    ],
    loads: [
      { 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' },
      { 'CP-NI-9101': '25816', 'CP-NI-9102': '11.71' },
    ],
  },
  {
    commodity: 'Nickel',
    prices: { Price_Rotterdam_dt: '25815', ...lb },
    errors: [['Price_Rotterdam_dt', 'unknown_column']],
    loads: [{ 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' }],
  },
  {
    commodity: 'Nickel',
    prices: { Price_LME_dmt: '25815', ...lb },
    errors: [['Price_LME_dmt', 'unit_mismatch']],
    loads: [{ 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' }],
  },
  {
    commodity: 'Nickel',
    prices: { 'Price_dt (real)': '25815', ...lb },
    errors: [['Price_dt (real)', 'unit_mismatch']],
    loads: [{ 'CP-NI-9101': '25815', 'CP-NI-9102': '11.71' }],
  },
  {
    commodity: 'Nickel',
    prices: { 'Price_dt dlb (both used)': '25815' },
    errors: [['Price_dt dlb (both used)', 'unit_mismatch']],
    loads: [{ 'CP-NI-9101': '25815' }, { 'CP-NI-9102': '25815' }],
  },
  {
    commodity: 'Cobalt',
    prices: { Price_dlb: '30.78', Price_LME_dlb: '30.79' },
    errors: [['Price_dlb', 'unknown_column']],
    loads: [{ 'CP-CO-9101': '30.78', 'CP-CO-9102': '30.79' }],
  },
  {
    commodity: 'Copper',
    prices: { Price_US_dlb: '4.11', Price_COMEX_ctslb: '401', Price_LME_ctslb: '400' },
    errors: [['Price_US_dlb', 'unknown_column']],
    loads: [],
  },
  {
    commodity: 'Manganese',
    prices: { Price_dt: '4.5' },
    errors: [['Price_dt', 'unknown_column']],
    loads: [{ 'CP-MN-9101': '4.5' }],
  },
  {
    commodity: 'Yttrium',
    prices: { Price_Y2O3_dkg: '12', Price_Metal_dkg: '42', Price_Alloyed_dkg: '9' },
    errors: [['Price_Alloyed_dkg', 'unknown_column']],
    loads: [],
  },
];

t.test(
  'a price column that is ambiguous or unknown is refused by name, and its mapping loads it',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    let year = 1990;
    for (const { commodity, prices, errors, loads } of REFUSED) {
      const what = Object.keys(prices).join();
      const text = table(commodity, prices, 1990);
      const report = await loadText(t, client, 'usgs', text);
      t.equal(report.status, 'refused', what);
      const expected = errors.map(([column, code]) => [1, column, code]);
      t.strictSame(errorsOf(report).sort(), expected.sort(), what);
      const remedies = report.errors.flatMap((each) => each.remedies ?? []);
      const ready = remedies.filter(({ when }) => when.startsWith('it holds '));
      t.ok(remedies.length > 0 && ready.length === loads.length, what);
      const found: NamedValues[] = [];
      for (const { mapping } of ready) {
        year += 1;
        const file = table(commodity, prices, year);
        const loaded = await loadTable(t, client, JSON.stringify(mapping), file);
        t.match(loaded, { status: 'applied', vintage: '2025-01-31', errorsTotal: 0 }, what);
        found.push(await stored(pool, year));
      }
      const sorted = (all: readonly NamedValues[]) =>
        all.map((each) => JSON.stringify(each)).sort();
      t.strictSame(sorted(found), sorted(loads), what);
    }
    t.strictSame(await stored(pool, 1990), {}, 'a refused file changes nothing');
  },
);

t.test('a price that is none of the series is loaded once its code is put in', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  const yttrium = { Price_Y2O3_dkg: '12', Price_Metal_dkg: '42' };
  const text = table('Yttrium', { ...yttrium, Price_Powder_dkg: '9' });
  const remedyOf = async (file: string) => {
    const { errors } = await loadText(t, client, 'usgs', file);
    t.equal(errors.length, 1);
    return errors[0]?.remedies?.[0] ?? t.fail('no remedy');
  };
  const { when, mapping } = (await remedyOf(text)) as { when: string; mapping: object };
  t.equal(when, 'CODE is replaced by the code of a price that you have described');
  const asWritten = await loadTable(t, client, JSON.stringify(mapping), text);
  t.match(asWritten, { status: 'refused', errors: [{ code: 'unknown_code' }] });
  const grams = table('Scandium', { Price_Oxide_dg: '2', Price_Ingot_dg: '3' });
  t.match(await loadText(t, client, 'usgs', grams), { status: 'applied' });
  const put = (code: string) => JSON.stringify(mapping).replace('CODE', code);
  t.match(await loadTable(t, client, put('CP-RE-9112'), text), {
    status: 'refused',
    errors: [{ value: 'USD per Kilogram', code: 'unit_mismatch' }, {}],
  });
  const own = put('X-1').replace('"prices":[', `"prices":[${priceLike('X-1', mapping)},`);
  t.match(await loadTable(t, client, own, text), { status: 'applied', errorsTotal: 0 });
  t.strictSame(await seriesOf(pool, 'X-1'), [['2022-12-31', null, '9', null, 0]]);
  const unknown = (await remedyOf(text.replace('_Powder_dkg', '_Powder'))) as { when: string };
  t.match(unknown.when, /, and UNIT by its unit$/);
});

/** The description of the first price of a mapping, under another code and name. */
function priceLike(code: string, mapping: object): string {
  const [price] = (mapping as { prices: object[] }).prices;
  return JSON.stringify({ ...price, code, name: `Price ${code}` });
}

t.test(
  'columns that share a heading are distinguished by order, which their values prove',
  async (t) => {
    const { client } = await loadingDatabase(t);
    const heading = 'Price_dt dlb (both used)';
    const shared = (...rows: string[]): string =>
      ['DataSource,Commodity,Year', heading, heading]
        .join()
        .concat('\r\n', rows.join('\r\n'), '\r\n');
    const swapped = 'MCS2024,Nickel,2022,11.71,25815';
    t.strictSame(errorsOf(await loadText(t, client, 'usgs', shared(swapped))), [
      [2, heading, 'unit_mismatch'],
    ]);
    const rows = ['MCS2024,Nickel,2021,18476,8.38', 'MCS2024,Nickel,2022,W,25815'];
    const report = await loadText(t, client, 'usgs', shared(...rows));
    t.match(report, { status: 'applied', counts: { inserted: 3 } });
  },
);

t.test('the documentation names every suffix and misspelling', async (t) => {
  const page = await readFile(new URL('../../../docs/loading.md', import.meta.url), 'utf8');
  const own = USGS_SERIES.flatMap(({ column }) => column?.suffixes ?? []);
  for (const suffix of new Set([...Object.keys(SUFFIXES), ...own])) {
    t.match(page, `\`${suffix}\``, suffix);
  }
});
