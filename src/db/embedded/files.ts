import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chown,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import type { Installation, SystemAccount } from './installation.ts';
import { EmbeddedDatabaseError, processExists } from './process.ts';

const LOG_BYTES_MAX = 10 * 1024 * 1024;

/** Name of the database and of its account. */
const NAME = 'prices';

/** PostgreSQL's data directory. */
export const clusterOf = (installation: Installation): string =>
  join(installation.home, 'postgres');
const passwordFileOf = (installation: Installation): string =>
  join(installation.home, 'database-password');
/** Log file of PostgreSQL and initdb. */
export const logFileOf = (installation: Installation): string =>
  join(installation.dataDir, 'postgres.log');

/** The account as options of a child process. */
export const accountOptions = (account: SystemAccount | null) =>
  account ? { uid: account.uid, gid: account.gid } : undefined;

/** The environment of PostgreSQL, without the PG* variables and secrets of this process. */
export function environment(): NodeJS.ProcessEnv {
  const inherited = ['PATH', 'SystemRoot', 'TMPDIR', 'TEMP', 'TMP'];
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
  const file = passwordFileOf(installation);
  const password = await readFile(file, 'utf8').catch((cause) => {
    throw new EmbeddedDatabaseError(`cannot read ${file}, the password of the database`, { cause });
  });
  return `postgres://${NAME}:${password.trim()}@127.0.0.1:${port}/${database}`;
}

async function makePassword(installation: Installation): Promise<string> {
  const file = passwordFileOf(installation);
  const password = randomBytes(24).toString('base64url');
  const handle = await open(file, 'w', 0o600);
  await handle.writeFile(`${password}\n`);
  await handle.sync();
  await handle.close();
  return password;
}

/** The last error in PostgreSQL's log. @param from position in bytes */
export async function lastErrorOf(installation: Installation, from: number): Promise<string> {
  const log = (await readFile(logFileOf(installation))).subarray(from).toString('utf8');
  const lines = log.split('\n').filter((line) => /FATAL|PANIC|ERROR|error/.test(line));
  return lines.at(-1) ?? log.trim().split('\n').at(-1) ?? '';
}

/** Opens the log for appending. Truncates a log that is too large. */
export async function openLog(installation: Installation) {
  const file = logFileOf(installation);
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const handle = await open(file, size > LOG_BYTES_MAX ? 'w' : 'a', 0o600);
  return { handle, from: (await handle.stat()).size };
}

/**
 * Initialises the files of a new database, unless they exist. They are renamed when complete, so
 * that a killed initdb leaves no incomplete database.
 */
export async function initialise(installation: Installation): Promise<void> {
  const cluster = clusterOf(installation);
  const entries = await readdir(installation.home);
  for (const stale of entries.filter((each) => each.startsWith('postgres.new-'))) {
    await rm(join(installation.home, stale), { recursive: true, force: true });
  }
  if (await stat(cluster).catch(() => null)) return;

  const draft = join(installation.home, `postgres.new-${randomBytes(6).toString('hex')}`);
  await mkdir(draft, { mode: 0o700 });
  // initdb requires an empty folder, so the password file is outside.
  const secret = `${draft}.password`;
  const handle = await open(secret, 'wx', 0o600);
  await handle.writeFile(await makePassword(installation));
  await handle.close();
  if (installation.account) {
    for (const each of [draft, secret])
      await chown(each, installation.account.uid, installation.account.gid);
  }
  await runInitdb(installation, draft, secret);
  await rm(secret, { force: true });
  await rename(draft, cluster);
}

async function runInitdb(installation: Installation, draft: string, secret: string): Promise<void> {
  const { handle, from } = await openLog(installation);
  const args = [
    `--pgdata=${draft}`,
    `--username=${NAME}`,
    `--pwfile=${secret}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    '--no-instructions',
  ];
  const child = spawn(installation.binaries.initdb, args, {
    cwd: installation.home,
    env: environment(),
    stdio: ['ignore', handle.fd, handle.fd],
    ...accountOptions(installation.account),
  });
  const [code, signal] = await once(child, 'exit').finally(() => handle.close());
  if (code === 0) return;
  const detail = await lastErrorOf(installation, from);
  throw new EmbeddedDatabaseError(
    `initdb failed (${code ?? signal}): ${detail}; see ${logFileOf(installation)}`,
  );
}

/** The server of a data directory, as in `postmaster.pid`. */
interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
}

/** Reads `postmaster.pid`, which a dead server may have left; null if there is none. */
export async function readPidFile(cluster: string): Promise<Postmaster | null> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return null;
  return { pid, port: Number(lines[3] ?? 0), ready: (lines[7] ?? '').trim() === 'ready' };
}

/** True if the process is the PostgreSQL of this folder, not a later one with the same number. */
export async function isPostmaster(pid: number, cluster: string): Promise<boolean> {
  if (!processExists(pid)) return false;
  if (process.platform !== 'linux') return true;
  // The working directory of PostgreSQL is its data directory.
  const folder = await readlink(`/proc/${pid}/cwd`).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' || error.code === 'ESRCH' ? null : cluster,
  );
  return folder === cluster;
}

/** The running server of these files; null if there is none. */
export async function findPostmaster(installation: Installation): Promise<Postmaster | null> {
  const cluster = clusterOf(installation);
  const found = await readPidFile(cluster);
  return found && (await isPostmaster(found.pid, cluster)) ? found : null;
}
