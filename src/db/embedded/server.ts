import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import {
  accountOptions,
  clusterOf,
  environment,
  findPostmaster,
  isPostmaster,
  lastErrorOf,
  logFileOf,
  openLog,
  readPidFile,
  urlOf,
} from './files.ts';
import type { Installation } from './installation.ts';
import { EmbeddedDatabaseError, processExists } from './process.ts';

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

/** The preferred port if it is free, so that clients find the server again; otherwise any port. */
async function choosePort(preferred: number): Promise<number> {
  if (preferred > 0 && (await isFree(preferred))) return preferred;
  const probe = createServer();
  await once(probe.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}

/** A started server that may not be ready yet. */
interface Attempt {
  readonly pid: number | undefined;
  /** Length of the log before the start, in bytes. */
  readonly logFrom: number;
  /** The exit code, signal or failure; null while it runs. */
  ended(): string | null;
}

async function spawnPostgres(
  installation: Installation,
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
  const { handle, from } = await openLog(installation);
  const args = Object.entries(fixed).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(installation.binaries.postgres, ['-D', clusterOf(installation), ...args], {
    cwd: installation.home,
    env: environment(),
    // A separate process group: Ctrl-C in the terminal reaches only the service, which stops this.
    detached: true,
    stdio: ['ignore', handle.fd, handle.fd],
    ...accountOptions(installation.account),
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

/** Transient errors of a start: a port in use, and processes of a dead server that are ending. */
const PORT_TAKEN = /could not create any TCP|Address already in use/;
const STILL_STOPPING = /shared memory block|lock file/;

/** Waits until the server accepts connections. Returns null, or the reason why it ended. */
async function untilReady(
  installation: Installation,
  attempt: Attempt,
  port: number,
  deadline: number,
): Promise<string | null> {
  while (Date.now() < deadline) {
    const ended = attempt.ended();
    if (ended !== null) return `${ended}: ${await lastErrorOf(installation, attempt.logFrom)}`;
    const found = await readPidFile(clusterOf(installation));
    if (found?.ready && found.port === port && found.pid === attempt.pid) return null;
    await pause(POLL_MS);
  }
  return `it was not ready after ${START_MS / 1000} s`;
}

/**
 * Starts PostgreSQL on 127.0.0.1 and returns its port.
 * @throws EmbeddedDatabaseError if it does not start
 */
export async function startPostgres(
  installation: Installation,
  settings: Readonly<Record<string, string>>,
): Promise<number> {
  const cluster = clusterOf(installation);
  const previous = await readPidFile(cluster);
  // PostgreSQL mistakes any running process with that number for a server of the same files.
  if (previous && processExists(previous.pid) && !(await isPostmaster(previous.pid, cluster))) {
    await rm(join(cluster, 'postmaster.pid'), { force: true });
  }
  const deadline = Date.now() + START_MS;
  let port = await choosePort(previous?.port ?? 0);
  for (;;) {
    const attempt = await spawnPostgres(installation, port, settings);
    const failure = await untilReady(installation, attempt, port, deadline);
    if (failure === null) return port;
    const isTransient = PORT_TAKEN.test(failure) || STILL_STOPPING.test(failure);
    if (Date.now() >= deadline || !isTransient) {
      if (attempt.ended() === null) await stopPostgres(installation);
      throw new EmbeddedDatabaseError(
        `the embedded PostgreSQL did not start (${failure}); see ${logFileOf(installation)}`,
      );
    }
    await pause(POLL_MS * 5);
    if (PORT_TAKEN.test(failure)) port = await choosePort(0);
  }
}

/** Checks that the server of a port uses these files. Creates the database if it is missing. */
async function checkServer(installation: Installation, port: number): Promise<void> {
  const client = new pg.Client({ connectionString: await urlOf(installation, port, 'postgres') });
  await client.connect();
  try {
    const { rows } = await client.query(`select current_setting('data_directory') as folder,
      exists (select from pg_database where datname = 'prices') as present`);
    if (rows[0].folder !== clusterOf(installation)) {
      throw new EmbeddedDatabaseError(`port ${port} belongs to the database in ${rows[0].folder}`);
    }
    if (!rows[0].present) await client.query('create database prices');
  } finally {
    await client.end();
  }
}

/** Error codes of a server that starts or stops. */
const TRANSIENT_CODES = new Set(['57P03', '57P01', 'ECONNREFUSED', 'ECONNRESET']);

/**
 * Finds the running server of these files, and waits until it accepts connections.
 * @returns its port, or null if there is none
 * @throws EmbeddedDatabaseError if it does not accept connections
 */
export async function adoptPostgres(installation: Installation): Promise<number | null> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const found = await findPostmaster(installation);
    if (!found) return null;
    try {
      if (found.ready) {
        await checkServer(installation, found.port);
        return found.port;
      }
    } catch (error) {
      if (!TRANSIENT_CODES.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
    if (Date.now() > deadline) {
      throw new EmbeddedDatabaseError(
        `PostgreSQL runs on ${clusterOf(installation)} (process ${found.pid}) and accepts no ` +
          'connection',
      );
    }
    await pause(POLL_MS);
  }
}

/** Stops the server of these files, gracefully first, and waits for its end. */
export async function stopPostgres(installation: Installation): Promise<void> {
  const cluster = clusterOf(installation);
  const found = await findPostmaster(installation);
  if (!found) return;
  // Fast shutdown, then immediate shutdown with recovery at the next start, then SIGKILL.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (process.platform === 'win32') {
      const args = ['stop', '-D', cluster, '-m', signal === 'SIGINT' ? 'fast' : 'immediate'];
      await once(spawn(installation.binaries.pgCtl, args, { stdio: 'ignore' }), 'exit');
    } else if (processExists(found.pid)) {
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
