import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { initialise, urlOf } from './files.ts';
import { choosePlace, type Place } from './place.ts';
import { isAlive, ownIdentity, withLock } from './process.ts';
import { adoptPostgres, startPostgres, stopPostgres } from './server.ts';

/** Longer than a start and a stop take together at their worst. */
const LOCK_WAIT_MS = 120_000;

/** An embedded PostgreSQL that runs for us, perhaps for others as well. */
export interface EmbeddedDatabase {
  /** Address of the database, with its password. */
  readonly url: string;
  /** True if this call started the server; false when it ran already. */
  readonly started: boolean;
  /** One line for a person, when files lie elsewhere than in the data folder. */
  readonly notice: string | null;
  /** Gives the server back; the last one to do so stops it. A second call waits for the first. */
  release(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Further settings of PostgreSQL, used when this call starts it. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Told before a server is started, or that the one which runs is used. */
  readonly onOpen?: (step: 'starts' | 'runs') => void;
}

const leasesOf = (place: Place): string => join(place.dataDir, 'leases');

/** Notes that this process uses the server: the file says which process, for ever uniquely. */
async function addLease(place: Place): Promise<string> {
  const identity = await ownIdentity();
  const folder = leasesOf(place);
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${identity.split(' ')[0]}-${randomBytes(4).toString('hex')}`);
  await writeFile(file, identity);
  return file;
}

/** True if a living process uses the server; forgets those that died. */
async function isInUse(place: Place): Promise<boolean> {
  const folder = leasesOf(place);
  let alive = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    if (await isAlive(await readFile(file, 'utf8'))) alive += 1;
    else await rm(file, { force: true });
  }
  return alive > 0;
}

const locked = <T>(place: Place, work: () => Promise<T>): Promise<T> =>
  withLock(join(place.dataDir, 'embedded.lock'), LOCK_WAIT_MS, work);

/** Stops the server unless somebody uses it; returns whether nobody does. */
async function stopUnused(place: Place): Promise<boolean> {
  if (await isInUse(place)) return false;
  await stopPostgres(place);
  return true;
}

/**
 * Opens the PostgreSQL that lies under a data folder: adopts the one that runs, else starts it,
 * and makes its files when there are none (a few seconds). Processes that share the folder share
 * the server. What a crash left (server, lock, process files) is used or cleared.
 * @throws EmbeddedDatabaseError in words for a person, when it is not installed or does not start
 */
export async function openEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const place = await choosePlace(dataDir);
  const { port, lease, started } = await locked(place, async () => {
    let running = await adoptPostgres(place);
    const found = running !== null;
    options.onOpen?.(found ? 'runs' : 'starts');
    try {
      if (running === null) {
        await initialise(place);
        await startPostgres(place, options.settings ?? {});
        running = await adoptPostgres(place);
      }
      if (running === null) throw new Error('PostgreSQL ended right after its start');
      return { port: running, lease: await addLease(place), started: !found };
    } catch (error) {
      await stopUnused(place);
      throw error;
    }
  });
  let released: Promise<void> | null = null;
  const release = (): Promise<void> => {
    released ??= locked(place, async () => {
      await rm(lease, { force: true });
      await stopUnused(place);
    });
    return released;
  };
  return { url: await urlOf(place, port), started, notice: place.notice, release };
}

/**
 * Removes a data folder, and where its data lies if that is elsewhere, unless a living process uses
 * its server; returns whether it did.
 */
export async function removeEmbedded(dataDir: string): Promise<boolean> {
  const place = await choosePlace(dataDir);
  const isUnused = await locked(place, () => stopUnused(place));
  if (!isUnused) return false;
  await rm(place.home, { recursive: true, force: true });
  await rm(place.dataDir, { recursive: true, force: true });
  return true;
}
