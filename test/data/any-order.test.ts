import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { Client } from '../../src/db/client.ts';
import { type ContentHash, contentHash } from '../../src/db/content-hash.ts';
import type { FormatName } from '../../src/ingest/formats/formats.ts';
import { readMapping } from '../../src/ingest/mapping/mapping.ts';
import { tableWith } from '../../src/ingest/mapping/table.ts';
import { randomOf } from '../conversion/support.ts';
import { CORRECTING, loadFile, loadingDatabase } from '../ingest/support/loading.ts';
import { dataFile } from './folder.ts';

const USGS = 'usgs-mineral-commodity-summaries';

/** A format and a file, with a documented mapping if the format needs one. */
type LoadableFile = readonly [FormatName, string, mapping?: string];

/** Every file of the data folder with prices or rates, and the format that loads it. */
const FILES: readonly LoadableFile[] = [
  ['worldbank', 'world-bank-pink-sheet/CMO-Historical-Data-Monthly.xlsx'],
  ...globSync('ecb-euro-reference-rates/eurofxref*', { cwd: dataFile('.') })
    .sort()
    .map((path) => ['ecb', path] as const),
  ...globSync(`${USGS}/mcs20*{/*.csv,.csv}`, { cwd: dataFile('.') })
    .sort()
    .map((path) => ['usgs', path] as const),
  ['fed', 'federal-reserve-h10/daily-wide-1971-2017.csv'],
  [
    'table',
    'usgs-copper-long-history/USGS_copper_historical_price.txt',
    'usgs-copper-long-history',
  ],
  ['table', 'world-bank-pink-sheet/CMO-Historical-Data-Monthly.xlsx', 'world-bank-workbook'],
  ['table', 'world-bank-pink-sheet/pink-sheet-metals-monthly.csv', 'world-bank-tidy'],
  [
    'table',
    'world-bank-pink-sheet/pink-sheet-metals-monthly-vintage-2025-01.csv',
    'world-bank-tidy',
  ],
];
/** Files that no format loads unchanged, each with the format that is tried. */
const REFUSED: readonly LoadableFile[] = [
  ['fed', 'federal-reserve-h10/monthly.csv'],
  ['usgs', `${USGS}/usgs-mcs-prices-tidy.csv`],
  ['csv', 'world-bank-pink-sheet/pink-sheet-metals-monthly.csv'],
  ['csv', 'world-bank-pink-sheet/pink-sheet-metals-monthly-vintage-2025-01.csv'],
  ['csv', 'usgs-copper-long-history/USGS_copper_historical_price.txt'],
];
/** The upstream copy of this table holds another table. */
const WRONG = `${USGS}/mcs2024/mcs2024-cobal_salient.csv`;

const isRefused = ([format, path]: LoadableFile): boolean =>
  path === WRONG || REFUSED.some((refused) => refused[0] === format && refused[1] === path);

async function loadOne(client: Client, [format, path, mapping]: LoadableFile): Promise<string> {
  const map = fileURLToPath(new URL(`../../docs/examples/${mapping}.yaml`, import.meta.url));
  const reader = mapping === undefined ? {} : { reader: tableWith(await readMapping(map)) };
  const { status } = await loadFile(client, format, dataFile(path), { ...CORRECTING, ...reader });
  return status;
}

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

function checkFirst(test: Pick<typeof t, 'ok'>, file: LoadableFile, status: string): void {
  const wanted = isRefused(file) ? ['refused'] : ['applied', 'unchanged'];
  test.ok(wanted.includes(status), `${file.join(' ')} is ${status}`);
}

/** Loads files in two random orders. @returns the content */
async function contentAfter(
  test: Pick<typeof t, 'ok' | 'equal' | 'teardown'>,
  files: typeof FILES,
  seed: number,
): Promise<ContentHash> {
  const random = randomOf(seed);
  const { client } = await loadingDatabase(test);
  const order = shuffled(files, random);
  const early: LoadableFile[] = [];
  for (const each of order) {
    const status = await loadOne(client, each);
    // Prices of some tables are described by another file, which may come later.
    if (each[2] === 'world-bank-tidy' && status === 'refused') early.push(each);
    else checkFirst(test, each, status);
  }
  for (const each of early) checkFirst(test, each, await loadOne(client, each));
  const content = await contentHash(client);
  for (const each of shuffled(order, random)) {
    const wanted = isRefused(each) ? 'refused' : 'already-loaded';
    test.equal(await loadOne(client, each), wanted, each.join(' '));
  }
  test.equal((await contentHash(client)).hash, content.hash, 'and again changes nothing');
  return content;
}

t.test('all files in any order, and again in another, lead to the same content', async (t) => {
  const all = [...FILES, ...REFUSED];
  t.equal(all.length, 46);
  const first = await contentAfter(t, all, 1);
  t.match(
    first.parts.filter(({ part }) => part.startsWith('fx:')),
    [{ values: 217_555 }, { values: 217_806 }, { values: 0 }],
    'all rates of both sources',
  );
  const points = first.parts.reduce((sum, part) => sum + (part.prices ? part.values : 0), 0);
  t.equal(points, 2 * 2_391 + 230 + 161, 'all of the World Bank, twice, and of the USGS');
  t.strictSame(await contentAfter(t, all, 2), first);
});

t.test('so do all files but the long histories of rates, in more orders', async (t) => {
  const files = [...FILES, ...REFUSED].filter(([, path]) => !LONG.includes(path));
  t.equal(files.length, 43);
  const hashes = new Set<string>();
  for (const seed of [3, 4, 5, 6, 7]) hashes.add((await contentAfter(t, files, seed)).hash);
  t.equal(hashes.size, 1);
});
