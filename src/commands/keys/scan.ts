import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { type KeyInfo, listKeys } from '../../auth/key-info.ts';
import { type FoundKey, scanForKeys } from '../../auth/key-scan.ts';
import { PackedError } from '../../auth/packed.ts';
import { withDatabase } from '../database.ts';
import { EXIT, report } from '../failure.ts';
import { printJson, printLines } from '../output.ts';

type Found = FoundKey & { readonly file: string };

interface ScanFinding extends Found {
  /** Of the key in this database; unknown when it has none with this id. */
  readonly status: KeyInfo['status'] | 'unknown';
}

/** Tells why a file was not searched to its end. */
function tellUnread(file: string, error: Error): void {
  if (error instanceof PackedError) {
    report(new PackedError(`cannot search ${file}: ${error.message}`));
    return;
  }
  // Reading a folder fails without its path.
  report(Object.assign(error, { path: file }));
}

/** Searches files, and tells at once of each that could not be searched to its end. */
async function search(files: readonly string[]): Promise<{ found: Found[]; isWhole: boolean }> {
  const found: Found[] = [];
  let isWhole = true;
  for (const file of files) {
    const bytes = file === '-' ? process.stdin : createReadStream(file);
    try {
      for await (const key of scanForKeys(bytes)) found.push({ file, ...key });
    } catch (error) {
      isWhole = false;
      tellUnread(file, error as Error);
    }
  }
  return { found, isWhole };
}

async function scan(files: string[], options: { json?: true }): Promise<void> {
  const { found, isWhole } = await search(files);
  const known =
    found.length === 0 ? [] : await withDatabase({ schema: true }, ({ db }) => listKeys(db));
  const statusOf = new Map(known.map(({ id, status }) => [id, status]));
  const findings = found.map(
    (key): ScanFinding => ({ ...key, status: statusOf.get(key.id) ?? 'unknown' }),
  );
  if (options.json) printJson(findings);
  else {
    printLines(
      ...findings.map(
        ({ file, line, column, id, status }) => `${file}:${line}:${column}: key ${id} (${status})`,
      ),
    );
    if (findings.length === 0 && isWhole) process.stderr.write('No key was found.\n');
  }
  if (findings.length > 0) process.exitCode = EXIT.refused;
  else if (!isWhole) process.exitCode = EXIT.failed;
}

/** Adds `keys scan`. */
export function addScan(keys: Command): void {
  keys
    .command('scan')
    .summary('find keys that leaked into files')
    .description(
      'Finds API keys in files by their form and checksum, and tells whether each still works.',
    )
    .argument('<file...>', 'files of any kind; - is the standard input')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Texts may be in UTF-8 or UTF-16. What is compressed (gzip, zip, zstd, xz, bzip2) cannot be searched:
unpack it first, or pipe it in.

Each key is told with its state: active, expired or revoked, as keys show has it, or unknown where
this database has no such key, as for the example in the documentation or a key of another service.

Exit code 0: no key was found; 3: some were, also where a file could not be searched; 1: none was,
and a file could not be searched. Each such file is told on stderr. The keys themselves are never
printed.

Examples:
  git log -p | npm run --silent prices -- keys scan -
  zcat access.log.2.gz | npm run --silent prices -- keys scan -`,
    )
    .action(scan);
}
