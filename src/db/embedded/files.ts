import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import {
  chown,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import type { Installation, SystemAccount } from './installation.ts';
import { EmbeddedDatabaseError, processExists } from './process.ts';

const LOG_BYTES_MAX = 10 * 1024 * 1024;

/** Name of the database and of its account. */
const NAME = 'prices';

const PASSWORD = 'database-password';
/** Name of a folder for new files, before the number of the process that makes it. */
const DRAFT = 'postgres.new-';

/** PostgreSQL's data directory. */
export const clusterOf = (installation: Installation): string =>
  join(installation.home, 'postgres');
const pidFileOf = (cluster: string): string => join(cluster, 'postmaster.pid');
/** Log file of PostgreSQL and initdb. */
export const logFileOf = (installation: Installation): string =>
  join(installation.dataDir, 'postgres.log');

/** The account as options of a child process. */
export const accountOptions = (account: SystemAccount | null) =>
  account ? { uid: account.uid, gid: account.gid } : undefined;

/** The environment of PostgreSQL, without the PG* variables and secrets of this process. */
export function environment(): NodeJS.ProcessEnv {
  const inherited = ['PATH', 'SystemRoot', 'ComSpec', 'TMPDIR', 'TEMP', 'TMP'];
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC' };
  for (const name of inherited) if (process.env[name]) env[name] = process.env[name];
  return env;
}

/** The address of a database of this server. */
export async function urlOf(
  installation: Installation,
  port: number,
  database: string = NAME,
): Promise<string> {
  const own = join(clusterOf(installation), PASSWORD);
  // Until version 1.0.0 the password was beside the files.
  const file = existsSync(own) ? own : join(installation.home, PASSWORD);
  const password = await readFile(file, 'utf8').catch((cause) => {
    throw new EmbeddedDatabaseError(`cannot read ${file}, the password of the database`, { cause });
  });
  return `postgres://${NAME}:${password.trim()}@127.0.0.1:${port}/${database}`;
}

/** The last error in a log. */
export function lastErrorIn(log: string): string {
  const lines = log.split('\n').filter((line) => /FATAL|PANIC|ERROR|error/.test(line));
  return lines.at(-1) ?? log.trim().split('\n').at(-1) ?? '';
}

/**
 * Runs a program of PostgreSQL and waits for its end. A server that it starts inherits its output:
 * the log, which is truncated when it is too large.
 * @returns the text that it logged if it failed, otherwise null
 */
export async function runProgram(
  installation: Installation,
  program: string,
  args: readonly string[],
): Promise<string | null> {
  const { account, home } = installation;
  const file = logFileOf(installation);
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const log = await open(file, size > LOG_BYTES_MAX ? 'w' : 'a', 0o600);
  const { size: from } = await log.stat();
  const child = spawn(program, args, {
    cwd: home,
    // pg_ctl gives the folder of an option to a shell, which expands `$` in it.
    env: { ...environment(), PGDATA: clusterOf(installation) },
    // A separate process group: Ctrl-C in the terminal must not interrupt a start.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    ...accountOptions(account),
  });
  const [code] = await once(child, 'exit').finally(() => log.close());
  return code === 0 ? null : (await readFile(file)).subarray(from).toString('utf8');
}

/** Removes the drafts of processes that ended while they initialised files. */
async function removeStaleDrafts(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (!name.startsWith(DRAFT)) continue;
    const pid = Number(name.slice(DRAFT.length));
    if (pid > 0 && pid !== process.pid && processExists(pid)) continue;
    // An initdb whose parent was killed may still be writing.
    await rm(join(home, name), { recursive: true, force: true, maxRetries: 10 });
  }
}

/**
 * Initialises the files of a new database, unless they exist. They are renamed when complete,
 * together with their password: a killed initdb leaves no incomplete database, and of several
 * processes the first one's files are used.
 */
export async function initialise(installation: Installation): Promise<void> {
  const cluster = clusterOf(installation);
  await removeStaleDrafts(installation.home);
  if (existsSync(cluster)) return;
  const draft = join(installation.home, `${DRAFT}${process.pid}`);
  const files = join(draft, 'postgres');
  const secret = join(draft, PASSWORD);
  try {
    await mkdir(draft, { mode: 0o700 });
    const password = randomBytes(24).toString('base64url');
    await writeFile(secret, `${password}\n`, { mode: 0o600, flush: true });
    if (installation.account) {
      const { uid, gid } = installation.account;
      for (const each of [draft, secret]) await chown(each, uid, gid);
    }
    await runInitdb(installation, files, secret);
    await rename(secret, join(files, PASSWORD));
    await rename(files, cluster).catch((error) => {
      if (!existsSync(cluster)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function runInitdb(installation: Installation, files: string, secret: string): Promise<void> {
  const failure = await runProgram(installation, installation.binaries.initdb, [
    `--pgdata=${files}`,
    `--username=${NAME}`,
    `--pwfile=${secret}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    '--no-instructions',
  ]);
  if (failure === null) return;
  throw new EmbeddedDatabaseError(
    `initdb failed: ${lastErrorIn(failure)}; see ${logFileOf(installation)}`,
  );
}

/** The server of a data directory, as in `postmaster.pid`. */
interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
}

/** Reads `postmaster.pid`, which a dead server may have left; null if there is none. */
export function readPidFile(cluster: string): Postmaster | null {
  let lines: string[];
  try {
    lines = readFileSync(pidFileOf(cluster), 'utf8').split('\n');
  } catch {
    return null;
  }
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return null;
  return { pid, port: Number(lines[3] ?? 0), ready: (lines[7] ?? '').trim() === 'ready' };
}

/** True if the process is the PostgreSQL of this folder, not a later one with the same number. */
function isPostmaster(pid: number, cluster: string): boolean {
  if (!processExists(pid)) return false;
  if (process.platform !== 'linux') return true;
  try {
    // The working directory of PostgreSQL is its data directory.
    return readlinkSync(`/proc/${pid}/cwd`) === cluster;
  } catch (error) {
    return !['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}

/** The running server of these files; null if there is none. */
export function findPostmaster(installation: Installation): Postmaster | null {
  const cluster = clusterOf(installation);
  const found = readPidFile(cluster);
  return found && isPostmaster(found.pid, cluster) ? found : null;
}

/**
 * Removes a `postmaster.pid` whose number belongs to another program now: PostgreSQL would take
 * that program for its server. Synchronous, because another start may write its own file.
 */
export function removeStalePidFile(installation: Installation): void {
  const cluster = clusterOf(installation);
  const found = readPidFile(cluster);
  if (found === null || !processExists(found.pid) || isPostmaster(found.pid, cluster)) return;
  rmSync(pidFileOf(cluster), { force: true });
}
