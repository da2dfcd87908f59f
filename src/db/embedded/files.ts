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
import type { Account, Place } from './place.ts';
import { EmbeddedDatabaseError, exists } from './process.ts';

const LOG_BYTES_MAX = 10 * 1024 * 1024;

/** The name of the database and of its one account. */
const NAME = 'prices';

/** The folder that PostgreSQL calls its data directory. */
export const clusterOf = (place: Place): string => join(place.home, 'postgres');
const passwordFileOf = (place: Place): string => join(place.home, 'database-password');
/** Where PostgreSQL and initdb write what they have to say. */
export const logFileOf = (place: Place): string => join(place.dataDir, 'postgres.log');

/** The account as a child process wants it. */
export const whoOf = (account: Account | null) =>
  account ? { uid: account.uid, gid: account.gid } : undefined;

/** Nothing of our environment reaches PostgreSQL: neither PG* variables nor secrets. */
export function environment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'SystemRoot', 'TMPDIR', 'TEMP', 'TMP'];
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC' };
  for (const name of kept) if (process.env[name]) env[name] = process.env[name];
  return env;
}

/** The address of a database of this server. */
export async function urlOf(place: Place, port: number, database: string = NAME): Promise<string> {
  const file = passwordFileOf(place);
  const password = await readFile(file, 'utf8').catch((cause) => {
    throw new EmbeddedDatabaseError(`cannot read ${file}, the password of the database`, { cause });
  });
  return `postgres://${NAME}:${password.trim()}@127.0.0.1:${port}/${database}`;
}

async function makePassword(place: Place): Promise<string> {
  const file = passwordFileOf(place);
  const password = randomBytes(24).toString('base64url');
  const handle = await open(file, 'w', 0o600);
  await handle.writeFile(`${password}\n`);
  await handle.sync();
  await handle.close();
  return password;
}

/** The last line of PostgreSQL's log that says what went wrong. */
export async function complaintOf(place: Place, from: number): Promise<string> {
  const log = (await readFile(logFileOf(place))).subarray(from).toString('utf8');
  const lines = log.split('\n').filter((line) => /FATAL|PANIC|ERROR|error/.test(line));
  return lines.at(-1) ?? log.trim().split('\n').at(-1) ?? '';
}

/** Opens the log for appending; a log that has grown too large begins again. */
export async function openLog(place: Place) {
  const file = logFileOf(place);
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const handle = await open(file, size > LOG_BYTES_MAX ? 'w' : 'a', 0o600);
  return { handle, from: (await handle.stat()).size };
}

/**
 * Makes the files of a new database, unless they are there. They are made under another name and
 * renamed when complete, so that a killed initdb leaves nothing that looks like a database.
 */
export async function initialise(place: Place): Promise<void> {
  const cluster = clusterOf(place);
  for (const left of (await readdir(place.home)).filter((each) => each.startsWith('postgres.new-')))
    await rm(join(place.home, left), { recursive: true, force: true });
  if (await stat(cluster).catch(() => null)) return;

  const draft = join(place.home, `postgres.new-${randomBytes(6).toString('hex')}`);
  await mkdir(draft, { mode: 0o700 });
  // initdb wants an empty folder: the password for it lies in one beside.
  const secret = `${draft}.password`;
  const handle = await open(secret, 'wx', 0o600);
  await handle.writeFile(await makePassword(place));
  await handle.close();
  if (place.account) {
    for (const each of [draft, secret]) await chown(each, place.account.uid, place.account.gid);
  }
  await runInitdb(place, draft, secret);
  await rm(secret, { force: true });
  await rename(draft, cluster);
}

async function runInitdb(place: Place, draft: string, secret: string): Promise<void> {
  const { handle, from } = await openLog(place);
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
  const child = spawn(place.binaries.initdb, args, {
    cwd: place.home,
    env: environment(),
    stdio: ['ignore', handle.fd, handle.fd],
    ...whoOf(place.account),
  });
  const [code, signal] = await once(child, 'exit').finally(() => handle.close());
  if (code === 0) return;
  throw new EmbeddedDatabaseError(
    `initdb failed (${code ?? signal}): ${await complaintOf(place, from)}; see ${logFileOf(place)}`,
  );
}

/** What `postmaster.pid` says about the server of a data directory. */
interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
}

/** Reads `postmaster.pid`, which may be left from a dead server; null when there is none. */
export async function readPidFile(cluster: string): Promise<Postmaster | null> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return null;
  return { pid, port: Number(lines[3] ?? 0), ready: (lines[7] ?? '').trim() === 'ready' };
}

/** True if this process number is the PostgreSQL of this folder, not a later process. */
export async function isPostmaster(pid: number, cluster: string): Promise<boolean> {
  if (!exists(pid)) return false;
  if (process.platform !== 'linux') return true;
  // PostgreSQL works inside its data directory.
  const folder = await readlink(`/proc/${pid}/cwd`).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' || error.code === 'ESRCH' ? null : cluster,
  );
  return folder === cluster;
}

/** The server that runs on these files; null when none does. */
export async function findPostmaster(place: Place): Promise<Postmaster | null> {
  const cluster = clusterOf(place);
  const found = await readPidFile(cluster);
  return found && (await isPostmaster(found.pid, cluster)) ? found : null;
}
