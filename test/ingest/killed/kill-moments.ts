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
import { choosePlace } from '../../../src/db/embedded/place.ts';
import { migrateUp } from '../../../src/db/migrate/migrate.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { RULES, verify } from '../../../src/verify/verify.ts';
import { administer, siblingUrl } from '../../support/database.ts';
import { makeFolder } from '../../support/folders.ts';
import { tell } from '../../support/tell.ts';
import { CORRECTING, describePrices, loadFile, points } from '../support.ts';

const LOADER = fileURLToPath(new URL('../loader.ts', import.meta.url));
const ROWS = 6_000;
/** A server that was killed is back long before that. */
const PATIENCE_MS = 60_000;

/** Processes die, not the machine: what was written to files is there, on a disk or not yet. */
const SETTINGS = { fsync: 'off' };

/** Whom SIGKILL hits: the loader, its backend, or the whole server. */
export const VICTIMS = ['loader', 'backend', 'server'] as const;
export type Victim = (typeof VICTIMS)[number];

/** What was found after a kill. */
export interface Moment {
  readonly victim: Victim;
  /** Milliseconds after the loader said that it had started. */
  readonly afterMs: number;
  /** Which content the database had then; `other` must never be. */
  readonly found: 'before' | 'after' | 'other';
  /** Whether running it again led to the content of a load that nobody killed. */
  readonly converged: boolean;
  /** Rules of stored data that are broken at the end. */
  readonly broken: readonly string[];
}

/** A server of its own with a database of before the load, and what the load makes of it. */
export interface KillWorld {
  /** How long a load takes that nobody kills. */
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

/** Tries until it works: a server that was killed takes connections after its recovery. */
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

/** Published values of A, in a database that others are copied from. */
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

/** A loader that has started. */
interface Loader {
  readonly child: ChildProcess;
  /** When it said that it was done; null when it ended before that. */
  readonly done: Promise<number | null>;
}

/** Starts the loader; resolves once it says so. */
async function startLoader(url: string, file: string): Promise<Loader> {
  const child = spawn(process.execPath, [LOADER, url, 'load', file], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout });
  // Both lines may come at once, or none may come: whoever reads the first must not miss the rest.
  const started = once(lines, 'line');
  const done = new Promise<number | null>((resolve) => {
    lines.on('line', (line) => line === 'applied' && resolve(performance.now()));
    lines.on('close', () => resolve(null));
  });
  await started;
  return { child, done };
}

/** The process of the loader's session; null when it has none, or none any more. */
async function backendOf(client: Client): Promise<number | null> {
  const { rows } = await client.pool.query<{ pid: number }>(`select pid from pg_stat_activity
    where application_name = 'loader to be killed' and datname = current_database()
    order by backend_start limit 1`);
  return rows[0]?.pid ?? null;
}

/** Waits until the server has noticed that the loader is gone. */
async function settled(client: Client): Promise<void> {
  while ((await backendOf(client)) !== null);
}

/** The world as one object; the server may be another one after each kill. */
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
    // The second load finds everything warm, as those do that are killed.
    for (const copy of [await this.copy(), await this.copy()]) {
      const { child, done } = await startLoader(copy, this.file);
      const began = performance.now();
      const [ended] = await Promise.all([done, once(child, 'close')]);
      if (ended === null) throw new Error('the loader failed though nobody killed it');
      this.loadMs = ended - began;
      this.after = await hashOf(copy);
    }
    if (this.before === this.after) throw new Error('the load changes nothing');
  }

  /** A database of before the load. */
  private async copy(): Promise<string> {
    this.copies += 1;
    const name = `copy_${this.copies}`;
    // Copied through the log, a sequence of the copy could step back in a crash: the log has it
    // without the numbers that the original had reserved.
    await administer(this.url, `create database ${name} template scene strategy file_copy`);
    return siblingUrl(this.url, name);
  }

  /** Kills the process that is meant, if it is still there. */
  private async strike(victim: Victim, loader: ChildProcess, client: Client): Promise<void> {
    if (victim === 'loader') {
      loader.kill('SIGKILL');
      return;
    }
    const place = await choosePlace(this.dataDir);
    const pid = victim === 'server' ? (await findPostmaster(place))?.pid : await backendOf(client);
    if (pid) tell(pid, 'SIGKILL');
  }

  async kill(victim: Victim, afterMs: number): Promise<Moment> {
    const url = await this.copy();
    const watcher = clientOf(url);
    await watcher.pool.query('select');
    const { child } = await startLoader(url, this.file);
    const closed = once(child, 'close');
    // The moment is random on purpose; what is asked of it holds at any moment.
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await this.strike(victim, child, watcher);
    // A loader that lost its session ends by itself.
    await closed;
    await watcher.close();
    if (victim === 'server') {
      this.servers.push(
        await untilItWorks(() => openEmbedded(this.dataDir, { settings: SETTINGS })),
      );
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

/** Starts a server of its own and loads the file once, to know how long that takes. */
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
