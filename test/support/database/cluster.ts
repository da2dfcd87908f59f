import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import type t from 'tap';
import { openClient } from '../../../src/db/client.ts';
import { openEmbedded } from '../../../src/db/embedded/embedded.ts';
import {
  accountOptions,
  clusterOf,
  environment,
  logFileOf,
  readPidFile,
} from '../../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { migrateUp } from '../../../src/db/migrate/migrate.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { until } from '../http/sockets.ts';
import { sendSignal } from '../process/signals.ts';
import { makeFolder } from '../run/folders.ts';
import type { TestDatabase } from './database.ts';
import type { Quota } from './quota.ts';

type Test = Pick<typeof t, 'teardown'>;

const run = promisify(execFile);

/** A PostgreSQL server of one test file, which may kill, stop and corrupt it. */
export interface Cluster {
  /** The URL of its database, stable across restarts. */
  readonly url: string;
  /** The folder of its files. */
  readonly folder: string;
  /** The log file, until a restart. */
  readonly log: string;
  /** Runs a statement on a connection of its own. */
  query(text: string): Promise<pg.QueryResult>;
  /** Runs work with a client of the database. */
  using<T>(work: (database: TestDatabase) => Promise<T>): Promise<T>;
  /** Stops it if it runs, and starts it again. */
  restart(mode: 'fast' | 'immediate'): Promise<void>;
  stop(): Promise<void>;
  /** Kills the postmaster with SIGKILL, like the OOM killer. */
  kill(): Promise<void>;
  /** The pids of a program's sessions, idle ones first; waits for at least one. */
  sessions(program: string): Promise<number[]>;
  /** Kills a session of a program during a statement with SIGKILL; waits for one. */
  killBusy(program: string): Promise<void>;
  /** The postmaster and all of its processes. */
  processes(): Promise<number[]>;
  /** Limits the server to a CPU quota, also after restarts. */
  confine(quota: Pick<Quota, 'add'>): Promise<void>;
}

/** State and parent of a process; empty when there is none. */
async function statOf(pid: number): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 2);
}

/** True if a process runs and is no zombie. */
const runs = async (pid: number): Promise<boolean> => /^[^ZX]/.test((await statOf(pid))[0] ?? '');

/** A process and its children. */
async function processesOf(pid: number): Promise<number[]> {
  const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = await Promise.all(all.map(statOf));
  return [pid, ...all.filter((_, at) => Number(stats[at]?.[1]) === pid)];
}

type RunQuery = (text: string) => Promise<pg.QueryResult>;

/** Runs work over a connection; its close ignores errors. */
async function over<T>(url: string, work: (query: RunQuery) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
  // The server may stop during the work.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work((text) => client.query(text));
  } finally {
    await client.end().catch(() => {});
  }
}

const queryOnce = (url: string, text: string): Promise<pg.QueryResult> =>
  over(url, (query) => query(text));

async function withDatabase<T>(url: string, work: (database: TestDatabase) => Promise<T>) {
  const client = openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 30_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });
  try {
    return await work({ url, db: client.db, pool: client.pool, client });
  } finally {
    await client.close();
  }
}

/** Starts a server with sample data; the teardown stops it and removes its files. */
export async function ownCluster(
  test: Test,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const home = await makeFolder();
  test.teardown(() => home.remove());
  const cluster = await clusterIn(test, join(home.path, 'data'), settings);
  await cluster.using(async ({ client }) => {
    await migrateUp(client.db);
    await seed(client);
  });
  return cluster;
}

async function sessionsOf(url: string, program: string): Promise<number[]> {
  const text = `select pid from pg_stat_activity where application_name = '${program}'
    order by state = 'idle' desc, pid`;
  let pids: number[] = [];
  // Between two sessions there may be none.
  await until(`there is a session of ${program}`, async () => {
    pids = (await queryOnce(url, text)).rows.map(({ pid }) => Number(pid));
    return pids.length > 0;
  });
  return pids;
}

const ATTEMPTS_PER_CONNECTION = 200;

async function killBusyOf(url: string, program: string): Promise<void> {
  const busy = `select pid from pg_stat_activity
    where application_name = '${program}' and state = 'active'`;
  // One connection keeps the time between SIGSTOP and SIGKILL short.
  const attempt = async (query: RunQuery): Promise<boolean> => {
    const [found] = (await query(busy)).rows;
    if (!found || !sendSignal(Number(found.pid), 'SIGSTOP')) return false;
    // The session may have become idle before SIGSTOP.
    const { rows } = await query(`${busy} and pid = ${found.pid}`);
    const isBusy = rows.length > 0;
    return sendSignal(Number(found.pid), isBusy ? 'SIGKILL' : 'SIGCONT') && isBusy;
  };
  // At half a core, a connection takes far longer than a statement of the session.
  const kill = async (query: RunQuery): Promise<boolean> => {
    for (let count = 0; count < ATTEMPTS_PER_CONNECTION; count += 1) {
      if (await attempt(query)) return true;
      await pause(5);
    }
    return false;
  };
  await until(`a busy session of ${program} is killed`, () => over(url, kill));
}

/** Starts the server of a folder; initializes an empty folder. */
export async function clusterIn(
  test: Test,
  dataDir: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const embedded = await openEmbedded(dataDir, {
    settings: { fsync: 'off', superuser_reserved_connections: '0', ...settings },
  });
  test.teardown(() => embedded.release());
  const { url } = embedded;
  const place = await chooseInstallation(dataDir);
  const folder = clusterOf(place);
  let confinement: Pick<Quota, 'add'> | null = null;
  const control = async (...args: string[]): Promise<void> => {
    // No output pipe: the server would inherit it and keep it open.
    const options = { cwd: place.home, env: environment(), ...accountOptions(place.account) };
    const all = [...args, '-D', folder, '-s', '-w', '-l', '/dev/null'];
    const running = run(place.binaries.pgCtl, all, options);
    // Confines pg_ctl so that its server inherits the quota; a faster server is added below.
    if (running.child.pid !== undefined) confinement?.add(running.child.pid);
    await running;
    const pid = postmaster();
    if (pid > 0) confinement?.add(...(await processesOf(pid)));
  };
  const postmaster = (): number => readPidFile(folder)?.pid ?? 0;
  return {
    url,
    folder,
    log: logFileOf(place),
    query: (text) => queryOnce(url, text),
    using: (work) => withDatabase(url, work),
    restart: (mode) => control('restart', '-m', mode),
    stop: () => control('stop', '-m', 'fast'),
    kill: async () => {
      const all = await processesOf(postmaster());
      sendSignal(all[0] ?? 0, 'SIGKILL');
      await until(
        'all of it is gone',
        async () => !(await Promise.all(all.map(runs))).includes(true),
      );
      // The next start would mistake a zombie process for a running server.
      await rm(join(folder, 'postmaster.pid'), { force: true });
    },
    sessions: (program) => sessionsOf(url, program),
    killBusy: (program) => killBusyOf(url, program),
    processes: async () => processesOf(postmaster()),
    confine: async (quota) => {
      confinement = quota;
      quota.add(...(await processesOf(postmaster())));
    },
  };
}
