import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import t from 'tap';
import type { Client } from '../../src/db/client.ts';
import { readMapping } from '../../src/ingest/mapping/mapping.ts';
import { tableWith } from '../../src/ingest/mapping/table.ts';
import { contentOf, loadFile, loadingDatabase } from '../ingest/support/loading.ts';
import { dataFile } from './folder.ts';

/** Loads a publisher's file with a documented mapping. */
async function loadWith(client: Client, name: string, file: string) {
  const path = fileURLToPath(new URL(`../../docs/examples/${name}.yaml`, import.meta.url));
  return loadFile(client, 'table', file, { reader: tableWith(await readMapping(path)) });
}

async function stored(pool: pg.Pool): Promise<unknown[][]> {
  const { rows } = await pool.query({
    text: `select code, date, mid, published_at from series join price on id = price_id
      where low is null and high is null order by date, code`,
    rowMode: 'array',
  });
  return rows;
}

/** Converts cents to dollars independently of the loader. */
function dollars(cents: string): string {
  const [whole = '', fraction = ''] = cents.split('.');
  const padded = whole.padStart(3, '0');
  return `${padded.slice(0, -2)}.${padded.slice(-2)}${fraction}`.replace(/\.?0+$/, '');
}

/** The start of the next day. */
const dayAfter = (day: string): string =>
  `${new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)} 00:00:00+00`;

t.test('copper from 1850 to 2010 becomes dollars per pound, year by year', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const file = dataFile('usgs-copper-long-history', 'USGS_copper_historical_price.txt');
  const report = await loadWith(client, 'usgs-copper-long-history', file);
  t.match(report, { status: 'applied', counts: { rows: 161, inserted: 161, pricesAdded: 1 } });
  const lines = (await readFile(file, 'utf8')).trim().split(/\r?\n/).slice(4);
  const expected = lines.map((line) => {
    const [year, cents = ''] = line.split(' ');
    const day = `${year}-12-31`;
    return ['CP-CU-9201', day, dollars(cents), dayAfter(day)];
  });
  t.equal(expected.length, 161);
  t.strictSame(await stored(pool), expected);
  t.match(await loadWith(client, 'usgs-copper-long-history', file), { status: 'already-loaded' });
});

const CODES: Readonly<Record<string, string>> = {
  Aluminum: 'CP-AL-9301',
  Copper: 'CP-CU-9301',
  Nickel: 'CP-NI-9301',
};

t.test('the workbook of the World Bank and its tidy table are read alike', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const folder = (name: string): string => dataFile('world-bank-pink-sheet', name);
  const workbook = folder('CMO-Historical-Data-Monthly.xlsx');
  const report = await loadWith(client, 'world-bank-workbook', workbook);
  t.match(report, { status: 'applied', vintage: '2026-06-02', errors: [] });
  t.match(report.counts, { rows: 2391, inserted: 2391, pricesAdded: 3 });
  const tidy = folder('pink-sheet-metals-monthly.csv');
  const lines = (await readFile(tidy, 'utf8')).trim().split(/\r?\n/).slice(1);
  const expected = lines
    .map((line) => {
      const [, period = '', , series = '', , , , value = ''] = line.split(',');
      const end = Date.UTC(Number(period.slice(0, 4)), Number(period.slice(5)), 0);
      const day = new Date(end).toISOString().slice(0, 10);
      return [CODES[series], day, value, dayAfter(day)] as const;
    })
    .sort((a, b) => (`${a[1]}${a[0]}` < `${b[1]}${b[0]}` ? -1 : 1));
  t.strictSame(await stored(pool), expected);
  const content = await contentOf(pool);
  const again = await loadWith(client, 'world-bank-tidy', tidy);
  t.match(again, { status: 'unchanged', vintage: '2026-06-02', counts: { unchanged: 2391 } });
  const older = folder('pink-sheet-metals-monthly-vintage-2025-01.csv');
  const outdated = await loadWith(client, 'world-bank-tidy', older);
  t.match(outdated, { status: 'unchanged', vintage: '2025-01-03', counts: { rows: 2340 } });
  t.ok(outdated.counts.outdated > 100);
  t.equal(await contentOf(pool), content);
});
