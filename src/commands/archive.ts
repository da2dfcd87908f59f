import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { FILE_FORMATS, type FileFormat } from '../archive/copy.ts';
import { exportArchive } from '../archive/export.ts';
import { importArchive } from '../archive/import.ts';
import { MANIFEST_FILE, type Manifest } from '../archive/manifest.ts';
import { MARKETS } from '../catalog/markets.ts';
import { nearest } from '../catalog/nearest.ts';
import { withDatabase } from './database.ts';
import { UsageError } from './failure.ts';
import { openMeter } from './meter.ts';
import { countText, printJson, printLines } from './output.ts';
import { stderrScreen } from './progress-text.ts';

interface ExportOptions {
  readonly market: readonly string[];
  readonly format: FileFormat;
  readonly json?: true;
}

/** The markets that were named, each once; null when none was, which means all. */
function marketsOf(named: readonly string[]): string[] | null {
  const slugs = MARKETS.map((each) => each.slug as string);
  const unknown = named.find((each) => !slugs.includes(each));
  if (unknown !== undefined) {
    const [near] = nearest(unknown, slugs, 1);
    const hint =
      near === undefined ? `the markets are ${slugs.join(', ')}` : `did you mean ${near}?`;
    throw new UsageError(`--market ${unknown}: there is no such market; ${hint}`);
  }
  return named.length === 0 ? null : slugs.filter((each) => named.includes(each));
}

/** What an export or import did; the sum of the manifest stands for every file. */
async function printReport(
  verb: string,
  folder: string,
  manifest: Manifest,
  json: true | undefined,
): Promise<void> {
  const { files, epoch, revision, markets, fileFormat } = manifest;
  const sum = (of: 'rows' | 'bytes') => files.reduce((total, each) => total + each[of], 0);
  const sha256 = createHash('sha256')
    .update(await readFile(join(folder, MANIFEST_FILE)))
    .digest('hex');
  const report = {
    folder,
    format: fileFormat,
    revision: `${epoch}.${revision}`,
    markets,
    rows: sum('rows'),
    bytes: sum('bytes'),
    manifestSha256: sha256,
    tables: Object.fromEntries(files.map((each) => [each.table, each.rows])),
  };
  if (json) return printJson(report);
  const { rows, bytes } = report;
  const megabytes = (bytes / 1e6).toFixed(1);
  printLines(
    `${verb} ${files.length} tables, ${countText(rows)} rows, ${megabytes} MB ` +
      `(${markets === null ? 'all markets' : markets.join(', ')}; revision ${report.revision}).`,
    `SHA-256 of ${MANIFEST_FILE}: ${sha256}`,
  );
}

async function runExport(path: string, options: ExportOptions): Promise<void> {
  const markets = marketsOf(options.market);
  const folder = resolve(path);
  const meter = openMeter(stderrScreen());
  const exporting = withDatabase({ schema: true }, (client, _config, signal) =>
    exportArchive(client, {
      folder,
      format: options.format,
      markets,
      signal,
      onProgress: meter.update,
    }),
  );
  const manifest = await exporting.finally(() => meter.end());
  await printReport('Exported', folder, manifest, options.json);
}

async function runImport(path: string, options: { json?: true }): Promise<void> {
  const folder = resolve(path);
  const meter = openMeter(stderrScreen());
  const importing = withDatabase({ schema: true }, (client, _config, signal) =>
    importArchive(client, {
      folder,
      signal,
      onProgress: meter.update,
    }),
  );
  const manifest = await importing.finally(() => meter.end());
  await printReport('Imported', folder, manifest, options.json);
}

const collect = (value: string, before: readonly string[]): string[] => [...before, value];

function addExport(db: Command): void {
  db.command('export')
    .summary('write all data with its past into a folder')
    .description(
      'Writes prices, reference data, rates, loads, revisions and all that was superseded into a ' +
        'folder, as one committed state, with a manifest of SHA-256 sums. API keys are left out.',
    )
    .argument('<folder>', 'a folder that is empty or not there yet')
    .option('--market <slug>', 'only prices of this market; may be repeated', collect, [])
    .addOption(
      new Option('--format <format>', 'of the files; an import takes csv')
        .choices(FILE_FORMATS)
        .default('csv'),
    )
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
The service and loads go on meanwhile. A folder without a manifest.json is no finished export.

Examples:
  npm run --silent prices -- db export archive-2026-07-01
  npm run --silent prices -- db export nickel --market nickel --format parquet --json`,
    )
    .action(runExport);
}

function addImport(db: Command): void {
  db.command('import')
    .summary('fill an empty database with an export')
    .description(
      'Fills a database that was only migrated with what db export wrote as CSV: all of it in ' +
        'one transaction, or nothing. Answers are then the same, byte for byte.',
    )
    .argument('<folder>', 'the folder of the export')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Every file is compared with its SHA-256 before anything is written. What is not as it must be is
refused with exit code 3. It needs the account that owns the tables.

Example:
  npm run --silent prices -- db migrate
  npm run --silent prices -- db import archive-2026-07-01`,
    )
    .action(runImport);
}

/** Adds `db export` and `db import`. */
export function addArchiveCommands(db: Command): void {
  addExport(db);
  addImport(db);
}
