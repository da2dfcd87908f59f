import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import {
  clusterOf,
  complaintOf,
  environment,
  findPostmaster,
  isPostmaster,
  logFileOf,
  openLog,
  readPidFile,
  urlOf,
  whoOf,
} from './files.ts';
import type { Place } from './place.ts';
import { EmbeddedDatabaseError, exists } from './process.ts';

const START_MS = 60_000;
const STOP_MS = 30_000;
const POLL_MS = 20;

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    await once(probe.listen({ host: '127.0.0.1', port }), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((done) => probe.close(done));
  }
}

/** The port that was used last, so that whoever still knows it finds the server again. */
async function choosePort(preferred: number): Promise<number> {
  if (preferred > 0 && (await isFree(preferred))) return preferred;
  const probe = createServer();
  await once(probe.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}

/** A server that was started and is not known to be ready. */
interface Attempt {
  readonly pid: number | undefined;
  /** How long the log was before. */
  readonly logFrom: number;
  /** The exit code, signal or failure; null while it runs. */
  ended(): string | null;
}

async function spawnPostgres(
  place: Place,
  port: number,
  settings: Readonly<Record<string, string>>,
): Promise<Attempt> {
  const fixed = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    ...settings,
  };
  const { handle, from } = await openLog(place);
  const args = Object.entries(fixed).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(place.binaries.postgres, ['-D', clusterOf(place), ...args], {
    cwd: place.home,
    env: environment(),
    // A process group of its own: Ctrl-C in the terminal is for the service, which then stops it.
    detached: true,
    stdio: ['ignore', handle.fd, handle.fd],
    ...whoOf(place.account),
  });
  let ended: string | null = null;
  child.on('error', (error) => {
    ended = error.message;
  });
  child.on('exit', (code, signal) => {
    ended = String(code ?? signal);
  });
  child.unref();
  await handle.close();
  return { pid: child.pid, logFrom: from, ended: () => ended };
}

/** What a start may meet that passes: a taken port, and a dead server's last processes. */
const PORT_TAKEN = /could not create any TCP|Address already in use/;
const STILL_ENDING = /shared memory block|lock file/;

/** Waits until the server takes connections; returns null, or why it ended instead. */
async function untilReady(
  place: Place,
  attempt: Attempt,
  port: number,
  deadline: number,
): Promise<string | null> {
  while (Date.now() < deadline) {
    const ended = attempt.ended();
    if (ended !== null) return `${ended}: ${await complaintOf(place, attempt.logFrom)}`;
    const found = await readPidFile(clusterOf(place));
    if (found?.ready && found.port === port && found.pid === attempt.pid) return null;
    await pause(POLL_MS);
  }
  return `it was not ready after ${START_MS / 1000} s`;
}

/**
 * Starts PostgreSQL on the files of this place, on 127.0.0.1 only, and returns its port.
 * @throws EmbeddedDatabaseError when it does not start
 */
export async function startPostgres(
  place: Place,
  settings: Readonly<Record<string, string>>,
): Promise<number> {
  const cluster = clusterOf(place);
  const left = await readPidFile(cluster);
  // PostgreSQL takes any living process of that number for another server of the same files.
  if (left && exists(left.pid) && !(await isPostmaster(left.pid, cluster))) {
    await rm(join(cluster, 'postmaster.pid'), { force: true });
  }
  const deadline = Date.now() + START_MS;
  let port = await choosePort(left?.port ?? 0);
  for (;;) {
    const attempt = await spawnPostgres(place, port, settings);
    const complaint = await untilReady(place, attempt, port, deadline);
    if (complaint === null) return port;
    const isPassing = PORT_TAKEN.test(complaint) || STILL_ENDING.test(complaint);
    if (Date.now() >= deadline || !isPassing) {
      if (attempt.ended() === null) await stopPostgres(place);
      throw new EmbeddedDatabaseError(
        `the embedded PostgreSQL did not start (${complaint}); see ${logFileOf(place)}`,
      );
    }
    await pause(POLL_MS * 5);
    if (PORT_TAKEN.test(complaint)) port = await choosePort(0);
  }
}

/** Asks the server of this port whether its files are ours, and makes our database if it lacks. */
async function checkServer(place: Place, port: number): Promise<void> {
  const client = new pg.Client({ connectionString: await urlOf(place, port, 'postgres') });
  await client.connect();
  try {
    const { rows } = await client.query(`select current_setting('data_directory') as folder,
      exists (select from pg_database where datname = 'prices') as present`);
    if (rows[0].folder !== clusterOf(place)) {
      throw new EmbeddedDatabaseError(`port ${port} belongs to the database in ${rows[0].folder}`);
    }
    if (!rows[0].present) await client.query('create database prices');
  } finally {
    await client.end();
  }
}

/** Errors of a server that is starting or stopping. */
const PASSING_CODES = new Set(['57P03', '57P01', 'ECONNREFUSED', 'ECONNRESET']);

/**
 * Finds the server that already runs on these files and waits until it takes connections.
 * @returns its port, or null when none runs
 * @throws EmbeddedDatabaseError when it runs and does not let us in
 */
export async function adoptPostgres(place: Place): Promise<number | null> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const found = await findPostmaster(place);
    if (!found) return null;
    try {
      if (found.ready) {
        await checkServer(place, found.port);
        return found.port;
      }
    } catch (error) {
      if (!PASSING_CODES.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
    if (Date.now() > deadline) {
      throw new EmbeddedDatabaseError(
        `PostgreSQL runs on ${clusterOf(place)} (process ${found.pid}) and takes no connection`,
      );
    }
    await pause(POLL_MS);
  }
}

/** Ends the server of these files, gently first; returns when it is gone. */
export async function stopPostgres(place: Place): Promise<void> {
  const cluster = clusterOf(place);
  const found = await findPostmaster(place);
  if (!found) return;
  // Fast: sessions end, everything is on disk. Immediate: the next start recovers. Then by force.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (process.platform === 'win32') {
      const args = ['stop', '-D', cluster, '-m', signal === 'SIGINT' ? 'fast' : 'immediate'];
      await once(spawn(place.binaries.pgCtl, args, { stdio: 'ignore' }), 'exit');
    } else if (exists(found.pid)) {
      process.kill(found.pid, signal);
    }
    const deadline = Date.now() + STOP_MS;
    while (Date.now() < deadline) {
      if (!(await isPostmaster(found.pid, cluster))) return;
      await pause(POLL_MS);
    }
  }
  throw new EmbeddedDatabaseError(`PostgreSQL (process ${found.pid}) does not end`);
}
