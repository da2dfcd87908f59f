import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import t from 'tap';
import { contentOf, loadFile, loadingDatabase } from '../ingest/support/loading.ts';
import { dataFile } from './folder.ts';

const file = (name: string): string => dataFile('ecb-euro-reference-rates', name);
const FILES = [
  'eurofxref-hist.csv',
  'eurofxref-hist.zip',
  'eurofxref.csv',
  'eurofxref-2018-08-17.zip',
  'eurofxref-daily.xml',
];

/** Trailing zeros are not stored; all other digits are. */
const trimmed = (rate: string): string => (rate.includes('.') ? rate.replace(/\.?0+$/, '') : rate);

/** Currency, date and rate of the history, parsed independently. */
async function history(): Promise<string[]> {
  const [header = '', ...lines] = (await readFile(file('eurofxref-hist.csv'), 'utf8'))
    .trim()
    .split('\n');
  const currencies = header.split(',');
  return lines
    .flatMap((line) => {
      const [date, ...rates] = line.split(',');
      return rates.map((rate, index) => [currencies[index + 1], date, trimmed(rate)].join(' '));
    })
    .filter((text) => !/ N\/A$| $/.test(text))
    .sort();
}

async function stored(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query(
    `select iso || ' ' || date || ' ' || rate as text
     from fx_rate join currency on id = currency_id where source = 'ECB'`,
  );
  return rows.map(({ text }) => text).sort();
}

t.test('the history of the ECB is stored rate by rate as it was published', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const report = await loadFile(client, 'ecb', file('eurofxref-hist.zip'));
  t.match(report, { status: 'applied', vintage: '2026-04-13', errorsTotal: 0 });
  const [expected, actual] = [await history(), await stored(pool)];
  t.equal(actual.length, expected.length);
  t.equal(report.counts.inserted, expected.length);
  t.ok(
    actual.every((text, index) => text === expected[index]),
    'every rate is equal',
  );
  t.equal(new Set(actual.map((text) => text.slice(0, 3))).size, 41);
  for (const [what, text] of Object.entries({
    'the last day of BGN': 'BGN 2025-12-31 1.9558',
    'the last day of RUB': 'RUB 2022-03-01 117.201',
    'the last rate of CNY': 'CNY 2026-04-13 7.9827',
  })) {
    t.ok(actual.includes(text), what);
  }
});

t.test(
  'the files of the ECB agree with each other and lead to the same rates in any order',
  async (t) => {
    const orders = [FILES, FILES.toReversed(), [...FILES.slice(2), ...FILES.slice(0, 2)]];
    const contents = new Set<string>();
    for (const order of orders) {
      const { client, pool } = await loadingDatabase(t);
      for (const name of order) {
        const report = await loadFile(client, 'ecb', file(name));
        t.ok(['applied', 'unchanged'].includes(report.status), name);
        t.match(report.counts, { corrected: 0, outdated: 0, rejected: 0 });
      }
      contents.add(await contentOf(pool));
      for (const name of order) {
        t.equal((await loadFile(client, 'ecb', file(name))).status, 'already-loaded');
      }
      contents.add(await contentOf(pool));
    }
    t.equal(contents.size, 1);
  },
);

t.test('a single day holds as many rates as it names', async (t) => {
  const days = {
    'eurofxref.csv': ['2026-04-13', 29, 'HUF 2026-04-13 366.9'],
    'eurofxref-2018-08-17.zip': ['2018-08-17', 32, 'TRY 2018-08-17 7.0282'],
    'eurofxref-daily.xml': ['2025-05-09', 30, 'HUF 2025-05-09 404.9'],
  } as const;
  for (const [name, [vintage, rates, example]] of Object.entries(days)) {
    const { client, pool } = await loadingDatabase(t);
    const report = await loadFile(client, 'ecb', file(name));
    t.match(report, { status: 'applied', vintage, counts: { inserted: rates } });
    t.ok((await stored(pool)).includes(example), example);
  }
});
