import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import t from 'tap';
import type { Client } from '../../src/db/client.ts';
import { USGS_SERIES } from '../../src/ingest/formats/usgs-series.ts';
import {
  CORRECTING,
  contentOf,
  errorsOf,
  loadFile,
  loadingDatabase,
  seriesOf,
} from '../ingest/support/loading.ts';
import { dataFile } from './folder.ts';

const path = (name: string): string => dataFile('usgs-mineral-commodity-summaries', name);
/** The upstream copy of this file holds world production instead of the salient table. */
const WRONG = 'mcs2024/mcs2024-cobal_salient.csv';
const LIST = 'mcs2026-price-extract.csv';
const SALIENT = globSync('mcs20*/*.csv', { cwd: path('.') }).sort();
const FILES = [...SALIENT.filter((name) => name !== WRONG), LIST];

interface Tidy {
  readonly release: string;
  readonly code: string;
  readonly date: string;
  /** In dollars. */
  readonly value: string;
  readonly file: string;
}

/** Converts a published value to dollars independently of the loader. */
function dollars(value: string, currency: string): string {
  const [whole = '', fraction = ''] = value.split('.');
  const digits = (whole + fraction).padStart(fraction.length + 3, '0');
  const at = digits.length - fraction.length - (currency === 'USc' ? 2 : 0);
  const text = `${digits.slice(0, at)}.${digits.slice(at)}`;
  return text.replace(/^0+(?=\d)/, '').replace(/\.?0*$/, '');
}

/** A third-party table of all releases, parsed independently of the loader. */
async function tidy(): Promise<Tidy[]> {
  const text = await readFile(path('usgs-mcs-prices-tidy.csv'), 'utf8');
  const [, ...lines] = text.trim().split(/\r?\n/);
  const codes = new Map(USGS_SERIES.map((each) => [`${each.title}/${each.unit}`, each.code]));
  return lines.map((line) => {
    const [
      release = '',
      ,
      series = '',
      year = '',
      value = '',
      currency = '',
      unit = '',
      ,
      file = '',
    ] = [...line.matchAll(/("[^"]*"|[^,]*)(?:,|$)/g)].map(([, field = '']) =>
      field.replaceAll('"', ''),
    );
    const code = codes.get(`${series}/${unit}`) ?? `none for ${series}`;
    return { release, code, date: `${year}-12-31`, value: dollars(value, currency), file };
  });
}

const lineOf = ({ code, date, value }: Pick<Tidy, 'code' | 'date' | 'value'>): string =>
  `${code} ${date} ${value}`;

/** The stored points; all must be mid values in dollars. */
async function stored(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query(`
    select p.code, s.date, s.mid as value
    from series s join price p on p.id = s.price_id join currency c on c.id = p.currency_id
    where c.iso = 'USD' and s.low is null and s.high is null`);
  return rows.map(lineOf).sort();
}

/** The expected values after all releases: for each year the value of the newest release. */
const newest = (rows: readonly Tidy[]): string[] => {
  const values = new Map<string, Tidy>();
  for (const row of rows.toSorted((a, b) => (a.release < b.release ? -1 : 1))) {
    values.set(`${row.code} ${row.date}`, row);
  }
  return [...values.values()].map(lineOf).sort();
};

const loadAll = async (client: Client, names: readonly string[], options = {}) => {
  const reports = [];
  for (const name of names) reports.push(await loadFile(client, 'usgs', path(name), options));
  return reports;
};

t.test(
  'each file of each release gives the values of the tidy table, no more, no less',
  async (t) => {
    const rows = await tidy();
    t.equal(rows.length, 448);
    const { client } = await loadingDatabase(t);
    t.equal(FILES.length, 29);
    let found = 0;
    for (const name of FILES) {
      const { client, pool } = await loadingDatabase(t);
      const report = await loadFile(client, 'usgs', path(name));
      const expected = rows.filter(({ file }) => file === name).map(lineOf);
      t.match(report, { status: 'applied', counts: { inserted: expected.length, rejected: 0 } });
      t.strictSame(await stored(pool), expected.sort(), name);
      found += expected.length;
    }
    t.equal(found, 448, 'nothing of the table is left over');
    const [report] = await loadAll(client, [WRONG]);
    t.match(report, { status: 'refused', errorsTotal: 1 }, 'the production table');
    t.strictSame(report && errorsOf(report), [[1, null, 'invalid_layout']]);
  },
);

t.test('the newest release wins in every order, and older ones are outdated', async (t) => {
  const rows = await tidy();
  const expected = newest(rows);
  t.equal(expected.length, 230);
  const contents = new Set<string>();
  for (const order of [
    FILES,
    FILES.toReversed(),
    FILES.toSorted((a, b) => (a.slice(-9) < b.slice(-9) ? -1 : 1)),
  ]) {
    const { client, pool } = await loadingDatabase(t);
    const reports = await loadAll(client, order, CORRECTING);
    t.strictSame(await stored(pool), expected);
    contents.add(await contentOf(pool));
    const sums = { rows: 0, corrected: 0, outdated: 0 };
    for (const { counts } of reports) {
      sums.rows += counts.rows;
      sums.corrected += counts.corrected;
      sums.outdated += counts.outdated;
    }
    t.equal(sums.rows, 448);
    if (order[0] === FILES[0]) t.match(sums, { outdated: 0 });
    else t.ok(sums.outdated > 0, `${sums.outdated} values were outdated`);
    if (order[0] === LIST) t.match(sums, { corrected: 0 });
  }
  t.equal(contents.size, 1, 'and prices and products are the same');
});

t.test('a revision needs permission, and without it the values stay', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const flake = () => seriesOf(pool, 'CP-NG-9101');
  await loadAll(client, ['mcs2022/mcs2022-graph_salient.csv']);
  const before = await flake();
  t.strictSame(before[3], ['2020-12-31', null, '1540', null, 0]);
  const later = ['mcs2024/mcs2024-graph_salient.csv'];
  const [refused] = await loadAll(client, later);
  t.match(refused, { status: 'refused', errors: [{ code: 'correction_not_allowed' }] });
  t.strictSame(await flake(), before);
  const [applied] = await loadAll(client, later, CORRECTING);
  t.match(applied, { status: 'applied', vintage: '2024-01-31' });
  t.strictSame((await flake())[3], ['2020-12-31', null, '1340', null, 1]);
});

t.test('known revisions and the traps of single files', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadAll(client, FILES, CORRECTING);
  const valuesAt = async (code: string, date: string) =>
    (await seriesOf(pool, code)).find(([day]) => day === date)?.slice(2);
  t.strictSame(await valuesAt('CP-LI-9101', '2021-12-31'), ['14200', null, 2], 'revised twice');
  t.strictSame(await valuesAt('CP-RE-9105', '2021-12-31'), ['98', null, 1], 'neodymium oxide');
  t.strictSame(await valuesAt('CP-NI-9101', '2022-12-31'), ['25815', null, 0], 'per tonne');
  t.strictSame(await valuesAt('CP-NI-9102', '2022-12-31'), ['11.71', null, 0], 'per pound');
  t.strictSame(await valuesAt('CP-RE-9112', '2023-12-31'), undefined, 'NA is no value');
  t.strictSame(await valuesAt('CP-CU-9101', '2017-12-31'), ['2.854', null, 0], 'cents in dollars');
  t.strictSame(await valuesAt('CP-MN-9101', '2025-12-31'), ['4.5', null, 0]);
  const { rows } = await pool.query(`
    select u.symbol from price join unit_of_measure u on u.id = unit_id
    where code = 'CP-MN-9101'`);
  t.strictSame(rows, [{ symbol: 'mtu' }]);
});
