import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import {
  clusterOf,
  findPostmaster,
  lastErrorIn,
  logFileOf,
  removeStalePidFile,
  runProgram,
  urlOf,
} from './files.ts';
import type { Installation } from './installation.ts';
import { EmbeddedDatabaseError } from './process.ts';

const START_MS = 60_000;
const STOP_MS = 30_000;
const POLL_MS = 20;

/**
 * Advisory lock of the database `postgres`. Each process that uses the server holds it shared; the
 * process that gets it exclusively is the last one, and stops the server.
 */
const LOCK = 1;

async function freePort(): Promise<number> {
  const probe = createServer();
  await once(probe.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}

/** Runs `pg_ctl`. @returns the text that it logged if it failed, otherwise null */
const control = (installation: Installation, ...args: string[]): Promise<string | null> =>
  runProgram(installation, installation.binaries.pgCtl, [...args, '--silent']);

/** Failures that end by themselves: another server starts or ends, or a port was taken. */
const TRANSIENT = /lock file|shared memory block|could not create any TCP|Address already in use/;

/** Starts PostgreSQL on a free port of 127.0.0.1. @returns the log if it does not start */
async function tryStart(
  installation: Installation,
  settings: Readonly<Record<string, string>>,
): Promise<string | null> {
  removeStalePidFile(installation);
  const all = {
    port: String(await freePort()),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    ...settings,
  };
  const options = Object.entries(all).map(([name, value]) => `-c "${name}=${value}"`);
  const timeout = `--timeout=${START_MS / 1000}`;
  return control(installation, 'start', '--wait', timeout, `--options=${options.join(' ')}`);
}

/** Connects to the server of a port, and checks that it uses these files. */
async function connect(installation: Installation, port: number): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: await urlOf(installation, port, 'postgres'),
    application_name: 'commodity-prices user of the server',
  });
  // A lost session emits `end` as well.
  session.on('error', () => {});
  try {
    await session.connect();
    const { rows } = await session.query(`select current_setting('data_directory') as folder`);
    if (rows[0].folder === clusterOf(installation)) return session;
    throw new EmbeddedDatabaseError(`port ${port} belongs to the database in ${rows[0].folder}`);
  } catch (error) {
    await session.end();
    throw error;
  }
}

/** Takes the lock, and creates the database if it is missing. */
async function use(installation: Installation, session: pg.Client): Promise<void> {
  try {
    // Waits while another process stops the server, which ends this session.
    await session.query(`select pg_advisory_lock_shared(${LOCK})`);
    const { rowCount } = await session.query(`select from pg_database where datname = 'prices'`);
    if (rowCount === 0) await createDatabase(session);
  } catch (error) {
    await leaveServer(installation, session).catch(() => {});
    throw error;
  }
}

async function createDatabase(session: pg.Client): Promise<void> {
  await session.query('create database prices').catch((error: pg.DatabaseError) => {
    // Another process created it at the same time.
    if (!['42P04', '23505'].includes(error.code ?? '')) throw error;
  });
}

/** True for an error of a server that starts, stops or recovers. */
const isTransient = (error: unknown): boolean =>
  error instanceof pg.DatabaseError
    ? (error.code ?? '').startsWith('57P')
    : !(error instanceof EmbeddedDatabaseError);

/**
 * Opens a session of the running server, which holds the lock. Waits until the server accepts
 * connections, or until it has ended.
 * @returns null if there is no server
 * @throws EmbeddedDatabaseError if it does not accept connections
 */
export async function joinServer(installation: Installation): Promise<pg.Client | null> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const found = findPostmaster(installation);
    if (!found) return null;
    try {
      if (found.ready) {
        const session = await connect(installation, found.port);
        await use(installation, session);
        return session;
      }
    } catch (error) {
      if (!isTransient(error)) throw error;
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

/**
 * Starts PostgreSQL and opens a session. If another process starts or stops the server at the same
 * time, waits for it.
 * @throws EmbeddedDatabaseError if it does not start
 */
export async function startServer(
  installation: Installation,
  settings: Readonly<Record<string, string>>,
): Promise<{ session: pg.Client; started: boolean }> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const failure = await tryStart(installation, settings);
    const session = await joinServer(installation);
    if (session) return { session, started: failure === null };
    if (failure !== null && (Date.now() > deadline || !TRANSIENT.test(failure))) {
      throw new EmbeddedDatabaseError(
        `the embedded PostgreSQL did not start (${lastErrorIn(failure)}); see ` +
          logFileOf(installation),
      );
    }
    await pause(POLL_MS);
  }
}

/**
 * Stops the server of these files, if one runs.
 * @throws EmbeddedDatabaseError if it does not end
 */
export async function stopServer(installation: Installation): Promise<void> {
  const pid = findPostmaster(installation)?.pid;
  // Another process may start the next server as soon as this one has ended.
  const hasEnded = (): boolean => findPostmaster(installation)?.pid !== pid;
  // Immediate: without a checkpoint, the next start recovers from the log.
  for (const mode of ['fast', 'immediate']) {
    if (pid === undefined || hasEnded()) return;
    // `pg_ctl --wait` would wait for the end of the next server.
    await control(installation, 'stop', `--mode=${mode}`, '--no-wait');
    const deadline = Date.now() + STOP_MS;
    while (!hasEnded() && Date.now() < deadline) await pause(POLL_MS);
  }
  if (!hasEnded()) throw new EmbeddedDatabaseError(`PostgreSQL (process ${pid}) does not end`);
}

/**
 * Ends a session of `joinServer`, and stops the server if it was the last one. Returns after the
 * end of a server that another process stops at the same time.
 * @throws EmbeddedDatabaseError if the server does not end
 */
export async function leaveServer(installation: Installation, session: pg.Client): Promise<void> {
  try {
    await session.query(`select pg_advisory_unlock_shared(${LOCK})`);
    const { rows } = await session.query(`select pg_try_advisory_lock(${LOCK}) as "isLast"`);
    if (rows[0].isLast) await stopServer(installation);
  } catch (error) {
    if (!isTransient(error)) throw error;
    // The server was stopped by its other last user, or restarts after a crash.
    const next = await joinServer(installation);
    if (next) await leaveServer(installation, next);
  } finally {
    await session.end();
  }
}
