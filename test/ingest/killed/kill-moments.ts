import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Client, openClient } from '../../../src/db/client.ts';
import { contentHash } from '../../../src/db/content-hash.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../../src/db/embedded/embedded.ts';
import { findPostmaster } from '../../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { migrateUp } from '../../../src/db/migrate/migrate.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { RULES, verify } from '../../../src/verify/verify.ts';
import { administer, siblingUrl } from '../../support/database/database.ts';
import { sendSignal } from '../../support/process/signals.ts';
import { makeFolder } from '../../support/run/folders.ts';
import { CORRECTING, describePrices, loadFile, points } from '../support/loading.ts';

const LOADER = fileURLToPath(new URL('../loader.ts', import.meta.url));
const ROWS = 6_000;
/** Far above the restart time of a killed server. */
const PATIENCE_MS = 60_000;

/** Processes are killed, not the machine, so written files survive without fsync. */
const SETTINGS = { fsync: 'off' };

/** The target of SIGKILL: the loader, its backend, or the whole server. */
export const VICTIMS = ['loader', 'backend', 'server'] as const;
export type Victim = (typeof VICTIMS)[number];

/** The result of one kill. */
export interface Moment {
  readonly victim: Victim;
  /** Milliseconds after the loader reported its start. */
  readonly afterMs: number;
  /** The content of the database after the kill; `other` must not occur. */
  readonly found: 'before' | 'after' | 'other';
  /** True if a repeated load led to the content of an undisturbed load. */
  readonly converged: boolean;
  /** Violated rules of stored data after the repeated load. */
  readonly broken: readonly string[];
}

/** A server with a database from before the load, and the expected content after it. */
export interface KillWorld {
  /** Duration of an undisturbed load. */
  readonly loadMs: number;
  kill(victim: Victim, afterMs: number): Promise<Moment>;
  close(): Promise<void>;
}

const clientOf = (url: string): Client =>
  openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'kill test',
  });

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = clientOf(url);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

const hashOf = (url: string): Promise<string> =>
  withClient(url, async (client) => (await contentHash(client)).hash);

/** Retries until success: a killed server accepts connections only after recovery. */
async function untilItWorks<T>(work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);

const valuesOf = (code: string, add: number): string[] =>
  Array.from({ length: ROWS }, (_, index) => `${code},${day(index)},,${index + add},,`);

/** Creates the template database with published values of A. */
async function makeScene(url: string, folder: string): Promise<void> {
  const file = join(folder, 'published.csv');
  await writeFile(file, points(...valuesOf('A', 0)));
  await withClient(url, async (client) => {
    await migrateUp(client.db);
    await seed(client, { reference: true });
    await describePrices(client, 'A', 'B');
    await loadFile(client, 'csv', file);
  });
}

/** A started loader. */
interface StartedLoader {
  readonly child: ChildProcess;
  /** Time of the report that it is done; null if it ended before. */
  readonly done: Promise<number | null>;
}

/** Starts the loader. Resolves when it reports its start. */
async function startLoader(url: string, file: string): Promise<StartedLoader> {
  const child = spawn(process.execPath, [LOADER, url, 'load', file], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout });
  // Both lines may arrive in one chunk, so one reader must consume both.
  const started = once(lines, 'line');
  const done = new Promise<number | null>((resolve) => {
    lines.on('line', (line) => line === 'applied' && resolve(performance.now()));
    lines.on('close', () => resolve(null));
  });
  await started;
  return { child, done };
}

/** The backend process of the loader; null if there is none. */
async function backendOf(client: Client): Promise<number | null> {
  const { rows } = await client.pool.query<{ pid: number }>(`select pid from pg_stat_activity
    where application_name = 'loader to be killed' and datname = current_database()
    order by backend_start limit 1`);
  return rows[0]?.pid ?? null;
}

/** Waits until the server has noticed the end of the loader. */
async function settled(client: Client): Promise<void> {
  while ((await backendOf(client)) !== null);
}

/** The server may be another one after each kill. */
class World implements KillWorld {
  readonly folder: Awaited<ReturnType<typeof makeFolder>>;
  readonly file: string;
  loadMs = 0;
  private readonly servers: EmbeddedDatabase[] = [];
  private before = '';
  private after = '';
  private copies = 0;

  constructor(folder: Awaited<ReturnType<typeof makeFolder>>) {
    this.folder = folder;
    this.file = join(folder.path, 'load.csv');
  }

  private get dataDir(): string {
    return join(this.folder.path, 'data');
  }

  private get url(): string {
    return this.servers.at(-1)?.url ?? '';
  }

  async start(): Promise<void> {
    await writeFile(this.file, points(...valuesOf('A', 1), ...valuesOf('B', 5)));
    this.servers.push(await openEmbedded(this.dataDir, { settings: SETTINGS }));
    await administer(this.url, 'create database scene');
    const scene = siblingUrl(this.url, 'scene');
    await makeScene(scene, this.folder.path);
    this.before = await hashOf(scene);
    // The second load finds warm caches, like the loads that are killed.
    for (const copy of [await this.copy(), await this.copy()]) {
      const { child, done } = await startLoader(copy, this.file);
      const began = performance.now();
      const [ended] = await Promise.all([done, once(child, 'close')]);
      if (ended === null) throw new Error('the loader failed without a kill');
      this.loadMs = ended - began;
      this.after = await hashOf(copy);
    }
    if (this.before === this.after) throw new Error('the load changes nothing');
  }

  /** Copies the template database. */
  private async copy(): Promise<string> {
    this.copies += 1;
    const name = `copy_${this.copies}`;
    // With WAL copy, a crash could reset a sequence of the copy: the log lacks the numbers that the
    // original had reserved.
    await administer(this.url, `create database ${name} template scene strategy file_copy`);
    return siblingUrl(this.url, name);
  }

  /** Kills the target process, if it still exists. */
  private async strike(victim: Victim, loader: ChildProcess, client: Client): Promise<void> {
    if (victim === 'loader') {
      loader.kill('SIGKILL');
      return;
    }
    const place = await chooseInstallation(this.dataDir);
    const pid = victim === 'server' ? findPostmaster(place)?.pid : await backendOf(client);
    if (pid) sendSignal(pid, 'SIGKILL');
  }

  async kill(victim: Victim, afterMs: number): Promise<Moment> {
    let url = await this.copy();
    const watcher = clientOf(url);
    await watcher.pool.query('select');
    const { child } = await startLoader(url, this.file);
    const closed = once(child, 'close');
    // The moment is random on purpose; the checks hold at any moment.
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await this.strike(victim, child, watcher);
    // A loader without session ends by itself.
    await closed;
    await watcher.close();
    if (victim === 'server') {
      this.servers.push(
        await untilItWorks(() => openEmbedded(this.dataDir, { settings: SETTINGS })),
      );
      // The next server has another port.
      url = siblingUrl(this.url, new URL(url).pathname.slice(1));
    }
    await untilItWorks(() => withClient(url, settled));
    const hash = await hashOf(url);
    const found = hash === this.before ? 'before' : hash === this.after ? 'after' : 'other';
    const end = await withClient(url, async (client) => {
      await loadFile(client, 'csv', this.file, CORRECTING);
      const { rules } = await verify(client, RULES, () => {});
      return rules.filter(({ count }) => count > 0).map(({ rule }) => rule);
    });
    const converged = (await hashOf(url)) === this.after;
    await administer(this.url, `drop database ${new URL(url).pathname.slice(1)}`);
    return { victim, afterMs, found, converged, broken: end };
  }

  async close(): Promise<void> {
    for (const server of this.servers) await server.release();
    await this.folder.remove();
  }
}

/** Starts a server and measures an undisturbed load. */
export async function killWorld(): Promise<KillWorld> {
  const world = new World(await makeFolder());
  try {
    await world.start();
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}
