import { globSync } from 'node:fs';
import t from 'tap';
import { type ContentHash, contentHash } from '../../src/db/content-hash.ts';
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

/** Hundreds of thousands of rates, which take most of the time. */
const LONG = [
  'ecb-euro-reference-rates/eurofxref-hist.csv',
  'ecb-euro-reference-rates/eurofxref-hist.zip',
  'federal-reserve-h10/daily-wide-1971-2017.csv',
];

/** Loads files in a random order, then again in another. Returns the content. */
async function contentAfter(
  test: Pick<typeof t, 'ok' | 'equal' | 'teardown'>,
  files: typeof FILES,
  seed: number,
): Promise<ContentHash> {
  const random = randomOf(seed);
  const { client } = await loadingDatabase(test);
  const order = shuffled(files, random);
  for (const [format, path] of order) {
    const { status } = await loadFile(client, format, dataFile(path), CORRECTING);
    const wanted = isRefused(path) ? ['refused'] : ['applied', 'unchanged'];
    test.ok(wanted.includes(status), `${path} is ${status}`);
  }
  const content = await contentHash(client);
  for (const [format, path] of shuffled(order, random)) {
    const { status } = await loadFile(client, format, dataFile(path), CORRECTING);
    test.equal(status, isRefused(path) ? 'refused' : 'already-loaded', path);
  }
  test.equal((await contentHash(client)).hash, content.hash, 'and again changes nothing');
  return content;
}

t.test('all files in any order, and again in another, lead to the same content', async (t) => {
  const all = [...FILES, ...REFUSED];
  t.equal(all.length, 42);
  const first = await contentAfter(t, all, 1);
  t.match(
    first.parts.filter(({ part }) => part.startsWith('fx:')),
    [{ values: 217_555 }, { values: 217_806 }, { values: 0 }],
    'all rates of both sources',
  );
  const points = first.parts.reduce((sum, part) => sum + (part.prices ? part.values : 0), 0);
  t.equal(points, 2_391 + 230, 'all values of the World Bank and of the USGS');
  t.strictSame(await contentAfter(t, all, 2), first);
});

t.test('so do all files but the long histories of rates, in more orders', async (t) => {
  const files = [...FILES, ...REFUSED].filter(([, path]) => !LONG.includes(path));
  t.equal(files.length, 39);
  const hashes = new Set<string>();
  for (const seed of [3, 4, 5, 6, 7]) hashes.add((await contentAfter(t, files, seed)).hash);
  t.equal(hashes.size, 1);
});
