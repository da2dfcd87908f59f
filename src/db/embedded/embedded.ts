import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { initialise, urlOf } from './files.ts';
import { chooseInstallation, type Installation } from './installation.ts';
import { isAlive, ownIdentity, withLock } from './process.ts';
import { adoptPostgres, startPostgres, stopPostgres } from './server.ts';

/** Longer than the slowest start and stop together. */
const LOCK_WAIT_MS = 120_000;

/** A running embedded PostgreSQL, possibly shared with other processes. */
export interface EmbeddedDatabase {
  /** Address of the database, with its password. */
  readonly url: string;
  /** True if this call started the server; false if it was running. */
  readonly started: boolean;
  /** Message for the operator if files are stored outside the data folder, otherwise null. */
  readonly notice: string | null;
  /** Releases the server. The last release stops it. A second call waits for the first. */
  release(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Additional settings of PostgreSQL, used if this call starts it. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called before a server is started, or before a running one is used. */
  readonly onOpen?: (step: 'starts' | 'runs') => void;
}

const leasesOf = (installation: Installation): string => join(installation.dataDir, 'leases');

/** Creates the lease file of this process, which contains its identity. */
async function addLease(installation: Installation): Promise<string> {
  const identity = await ownIdentity();
  const folder = leasesOf(installation);
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${identity.split(' ')[0]}-${randomBytes(4).toString('hex')}`);
  await writeFile(file, identity);
  return file;
}

/** True if a running process has a lease. Removes the leases of ended processes. */
async function isInUse(installation: Installation): Promise<boolean> {
  const folder = leasesOf(installation);
  let alive = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    if (await isAlive(await readFile(file, 'utf8'))) alive += 1;
    else await rm(file, { force: true });
  }
  return alive > 0;
}

const locked = <T>(installation: Installation, work: () => Promise<T>): Promise<T> =>
  withLock(join(installation.dataDir, 'embedded.lock'), LOCK_WAIT_MS, work);

/** Stops the server if no process uses it. Returns true if none does. */
async function stopUnused(installation: Installation): Promise<boolean> {
  if (await isInUse(installation)) return false;
  await stopPostgres(installation);
  return true;
}

/**
 * Opens the PostgreSQL of a data folder. Uses the running server, or starts it, and initialises its
 * files if there are none (a few seconds). Processes with the same folder share the server. A
 * server, lock or lease that remains after a crash is reused or removed.
 * @throws EmbeddedDatabaseError if PostgreSQL is not installed or does not start
 */
export async function openEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const installation = await chooseInstallation(dataDir);
  const { port, lease, started } = await locked(installation, async () => {
    let running = await adoptPostgres(installation);
    const found = running !== null;
    options.onOpen?.(found ? 'runs' : 'starts');
    try {
      if (running === null) {
        await initialise(installation);
        await startPostgres(installation, options.settings ?? {});
        running = await adoptPostgres(installation);
      }
      if (running === null) throw new Error('PostgreSQL ended right after its start');
      return { port: running, lease: await addLease(installation), started: !found };
    } catch (error) {
      await stopUnused(installation);
      throw error;
    }
  });
  let released: Promise<void> | null = null;
  const release = (): Promise<void> => {
    released ??= locked(installation, async () => {
      await rm(lease, { force: true });
      await stopUnused(installation);
    });
    return released;
  };
  return { url: await urlOf(installation, port), started, notice: installation.notice, release };
}

/**
 * Removes a data folder, and its database files if they are stored elsewhere, unless a process uses
 * the server. Returns true if it removed them.
 */
export async function removeEmbedded(dataDir: string): Promise<boolean> {
  const installation = await chooseInstallation(dataDir);
  const isUnused = await locked(installation, () => stopUnused(installation));
  if (!isUnused) return false;
  await rm(installation.home, { recursive: true, force: true });
  await rm(installation.dataDir, { recursive: true, force: true });
  return true;
}
