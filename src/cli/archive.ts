import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { MANIFEST_FILE } from '../archive/format.ts';
import type { Manifest } from '../archive/manifest.ts';
import { MARKETS } from '../catalog/markets.ts';
import { textOf } from '../db/revisions.ts';
import { PROGRAM } from '../std/program.ts';
import { type CommandResult, checkMarkets, command, json, repeatable } from './command.ts';
import { type Work, withDatabase } from './database.ts';
import { countText, printLines } from './output.ts';

interface ExportOptions {
  readonly market: readonly string[];
}

/** Named markets without duplicates; null for all markets. */
function marketsOf(named: readonly string[]): string[] | null {
  checkMarkets(named);
  const slugs: string[] = MARKETS.map(({ slug }) => slug);
  return named.length === 0 ? null : slugs.filter((each) => named.includes(each));
}

/** A written or read archive, and its revision in the wire format. */
interface Moved {
  readonly manifest: Manifest;
  readonly revision: string;
}

/** Adds the revision as every other command prints it; the manifest has its number. */
const withRevision = async (db: Work['db'], manifest: Manifest): Promise<Moved> => ({
  manifest,
  revision: await textOf(db, manifest.revision),
});

/** Result of an export or import. The SHA-256 of the manifest covers every file. */
async function answerOf(verb: string, folder: string, moved: Moved): Promise<CommandResult> {
  const { manifest, revision } = moved;
  const { files, markets } = manifest;
  const sum = (of: 'rows' | 'bytes') => files.reduce((total, each) => total + each[of], 0);
  const manifestSha256 = createHash('sha256')
    .update(await readFile(join(folder, MANIFEST_FILE)))
    .digest('hex');
  const data = {
    folder,
    format: 'csv',
    revision,
    markets,
    rows: sum('rows'),
    bytes: sum('bytes'),
    manifestSha256,
    tables: Object.fromEntries(files.map((each) => [each.table, each.rows])),
  };
  const size = `${countText(data.rows)} rows, ${(data.bytes / 1e6).toFixed(1)} MB`;
  const lines = [
    `${verb} ${files.length} tables, ${size} ` +
      `(${markets === null ? 'all markets' : markets.join(', ')}; revision ${data.revision}).`,
    `SHA-256 of ${MANIFEST_FILE}: ${manifestSha256}`,
  ];
  return { data, print: () => printLines(...lines) };
}

/** Adds `db export`. */
export const addExport = command({
  name: 'export',
  summary: 'write all data with its past into a folder',
  description:
    'Writes prices, reference data, rates, loads, revisions and all that was superseded into a ' +
    'folder as CSV, as of one revision, with a manifest of SHA-256 sums. API keys are left out.',
  args: [['<folder>', 'a folder that is empty or not there yet']],
  options: [repeatable('--market <slug>', 'only prices of this market; may be repeated'), json()],
  help: `
The service and loads go on meanwhile. A folder without a manifest.json is no finished export.

Examples:
  ${PROGRAM} db export archive-2026-07-01
  ${PROGRAM} db export nickel --market nickel --json`,
  async run(path: string, { market }: ExportOptions) {
    const markets = marketsOf(market);
    const folder = resolve(path);
    // Loaded lazily, as most commands for the database need no archive.
    const { exportArchive } = await import('../archive/export.ts');
    const moved = await withDatabase(async ({ client, db, signal, progress }) => {
      const options = { folder, markets, signal, onProgress: progress.update };
      return withRevision(db, await exportArchive(client, options));
    });
    return answerOf('Exported', folder, moved);
  },
});

/** Adds `db import`. */
export const addImport = command({
  name: 'import',
  summary: 'fill an empty database with an export',
  description:
    'Fills a database that was only migrated with what db export wrote: all of it in one ' +
    'transaction, or nothing. Answers are then the same, byte for byte.',
  args: [['<folder>', 'the folder of the export']],
  options: [json()],
  help: `
Every file is compared with its SHA-256 before anything is written. An archive or a database that
fails a check is refused with exit code 3. It needs the account that owns the tables.

Example:
  ${PROGRAM} db migrate
  ${PROGRAM} db import archive-2026-07-01`,
  async run(path: string) {
    const folder = resolve(path);
    const { importArchive } = await import('../archive/import.ts');
    const moved = await withDatabase(async ({ client, db, signal, progress }) => {
      const options = { folder, signal, onProgress: progress.update };
      return withRevision(db, await importArchive(client, options));
    });
    return answerOf('Imported', folder, moved);
  },
});
