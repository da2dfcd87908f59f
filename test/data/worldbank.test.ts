import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import t from 'tap';
import {
  CORRECTING,
  contentOf,
  loadFile,
  loadingDatabase,
  loadText,
} from '../ingest/support/loading.ts';
import { dataFile } from './folder.ts';

const WORKBOOK = dataFile('world-bank-pink-sheet', 'CMO-Historical-Data-Monthly.xlsx');
const CODES: Readonly<Record<string, string>> = {
  Aluminum: 'CP-AL-9001',
  Copper: 'CP-CU-9001',
  Nickel: 'CP-NI-9001',
};

/** Code, period and value of a third-party table made from the workbook. */
async function tidy(name: string): Promise<[code: string, period: string, value: string][]> {
  const text = await readFile(dataFile('world-bank-pink-sheet', name), 'utf8');
  const [, ...lines] = text.trim().split(/\r?\n/);
  return lines.map((line) => {
    const [, period = '', , series = '', , , , value = ''] = line.split(',');
    return [CODES[series] ?? series, period, value];
  });
}

/** The last day of a month, computed independently of the loader. */
const monthEnd = (period: string): string =>
  new Date(Date.UTC(Number(period.slice(0, 4)), Number(period.slice(5)), 0))
    .toISOString()
    .slice(0, 10);

async function stored(pool: pg.Pool): Promise<string[][]> {
  const { rows } = await pool.query({
    text: `select code, date, mid from series join price on id = price_id
      where low is null and high is null order by date, code`,
    rowMode: 'array',
  });
  return rows;
}

t.test(
  'the original workbook gives 797 months of three metals, equal to the tidy table',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    const report = await loadFile(client, 'worldbank', WORKBOOK);
    t.match(report, { status: 'applied', vintage: '2026-06-02', errorsTotal: 0 });
    t.match(report.counts, { rows: 2391, inserted: 2391, pricesAdded: 3 });
    const expected = (await tidy('pink-sheet-metals-monthly.csv'))
      .map(([code, period, value]) => [code, monthEnd(period), value])
      .sort((a, b) => (`${a[1]}${a[0]}` < `${b[1]}${b[0]}` ? -1 : 1));
    const actual = await stored(pool);
    t.equal(actual.length, 2391);
    t.strictSame(actual, expected);
    const aluminium = actual.filter(([code]) => code === 'CP-AL-9001');
    t.equal(aluminium.length, 797);
    t.equal(aluminium[0]?.[1], '1960-01-31');
    t.equal(aluminium.at(-1)?.[1], '2026-05-31');
  },
);

t.test('the original workbook a second time changes nothing', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const first = await loadFile(client, 'worldbank', WORKBOOK);
  const content = await contentOf(pool);
  t.match(await loadFile(client, 'worldbank', WORKBOOK), {
    status: 'already-loaded',
    batch: first.batch,
  });
  t.equal(await contentOf(pool), content);
});

t.test('values that differ from the workbook are corrections, which need permission', async (t) => {
  const { client } = await loadingDatabase(t);
  await loadFile(client, 'worldbank', WORKBOOK);
  const older = await tidy('pink-sheet-metals-monthly-vintage-2025-01.csv');
  const rows = older.map(([code, period, value]) => `${code},${monthEnd(period)},${value}`);
  const text = ['code,date,mid', ...rows, ''].join('\n');
  const newer = new Map(
    (await tidy('pink-sheet-metals-monthly.csv')).map(([code, period, value]) => [
      code + period,
      value,
    ]),
  );
  const different = older.filter(([code, period, value]) => newer.get(code + period) !== value);
  t.ok(different.length > 100 && different.length < 2340, 'the older table is not rounded');
  const refused = await loadText(t, client, 'csv', text);
  t.match(refused, { status: 'refused', errorsTotal: different.length });
  const report = await loadText(t, client, 'csv', text, CORRECTING);
  t.match(report.counts, {
    rows: 2340,
    corrected: different.length,
    unchanged: 2340 - different.length,
    inserted: 0,
  });
});
