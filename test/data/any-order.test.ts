import { globSync } from 'node:fs';
import t from 'tap';
import { contentHash } from '../../src/db/content-hash.ts';
import type { FormatName } from '../../src/ingest/formats.ts';
import { randomOf } from '../conversion/support.ts';
import { CORRECTING, loadFile, loadingDatabase } from '../ingest/support.ts';
import { dataFile } from './folder.ts';

const USGS = 'usgs-mineral-commodity-summaries';

/** Every file of the folder that holds prices or rates, with the loader that takes it. */
const FILES: readonly (readonly [FormatName, string])[] = [
  ['worldbank', 'world-bank-pink-sheet/CMO-Historical-Data-Monthly.xlsx'],
  ...globSync('ecb-euro-reference-rates/eurofxref*', { cwd: dataFile('.') })
    .sort()
    .map((path) => ['ecb', path] as const),
  ...globSync(`${USGS}/mcs20*{/*.csv,.csv}`, { cwd: dataFile('.') })
    .sort()
    .map((path) => ['usgs', path] as const),
  ['fed', 'federal-reserve-h10/daily-wide-1971-2017.csv'],
];
/** Files that no loader takes as they are, each with one that is offered it. */
const REFUSED: readonly (readonly [FormatName, string])[] = [
  ['fed', 'federal-reserve-h10/monthly.csv'],
  ['usgs', `${USGS}/usgs-mcs-prices-tidy.csv`],
  ['csv', 'world-bank-pink-sheet/pink-sheet-metals-monthly.csv'],
  ['csv', 'world-bank-pink-sheet/pink-sheet-metals-monthly-vintage-2025-01.csv'],
  ['csv', 'usgs-copper-long-history/USGS_copper_historical_price.txt'],
];
/** The upstream copy of this table holds another one. */
const WRONG = `${USGS}/mcs2024/mcs2024-cobal_salient.csv`;

const isRefused = (path: string): boolean =>
  path === WRONG || REFUSED.some(([, refused]) => refused === path);

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  return items.map(() => left.splice(Math.floor(random() * left.length), 1)[0] as T);
}

t.test('all files in any order, and again in another, lead to the same content', async (t) => {
  const all = [...FILES, ...REFUSED];
  t.equal(FILES.length, 37);
  const hashes = new Set<string>();
  for (const seed of [1, 2, 3]) {
    const random = randomOf(seed);
    const { client } = await loadingDatabase(t);
    const order = shuffled(all, random);
    for (const [format, path] of order) {
      const { status } = await loadFile(client, format, dataFile(path), CORRECTING);
      const wanted = isRefused(path) ? ['refused'] : ['applied', 'unchanged'];
      t.ok(wanted.includes(status), `${path} is ${status}`);
    }
    const { hash, parts } = await contentHash(client);
    hashes.add(hash);
    t.match(
      parts.filter(({ part }) => part.startsWith('fx:')),
      [{ values: 217_555 }, { values: 217_806 }, { values: 0 }],
      'all rates of both sources',
    );
    for (const [format, path] of shuffled(order, random)) {
      const { status } = await loadFile(client, format, dataFile(path), CORRECTING);
      t.equal(status, isRefused(path) ? 'refused' : 'already-loaded', path);
    }
    t.equal((await contentHash(client)).hash, hash, 'and loading all of it again changes nothing');
  }
  t.equal(hashes.size, 1);
});
