import { chmod, mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { stopServer } from '../../../src/db/embedded/server.ts';
import { isAlive, ownIdentity } from './identity.ts';

const PREFIX = 'commodity-prices-tests-';
const OWNER = 'owner';

/** Files in memory, where Linux has them. */
const MEMORY = '/dev/shm';
/** A run of all tests takes about 2 GB at its peak. */
const MEMORY_BYTES_MIN = 8e9;

/**
 * The folder for temporary files of a run: in memory if there is room, else that of the system. On
 * ext4 a seventh of the CPU of a run went into creating and removing files of databases.
 */
export async function temporaryFolder(): Promise<string> {
  if (process.env['TMPDIR'] !== undefined) return tmpdir();
  const memory = await statfs(MEMORY).catch(() => null);
  const bytes = memory === null ? 0 : memory.bavail * memory.bsize;
  return Math.min(bytes, freemem()) >= MEMORY_BYTES_MIN ? MEMORY : tmpdir();
}

/** A private folder of this process, and the servers that run on folders inside it. */
export interface TestFolder {
  readonly path: string;
  /** Stops the servers and removes the folder. */
  remove(): Promise<void>;
}

/** Stops the server of a data folder. Removes the folder, and files that are stored elsewhere. */
export async function removeData(dataDir: string): Promise<void> {
  const installation = await chooseInstallation(dataDir);
  await stopServer(installation);
  for (const folder of [installation.home, installation.dataDir]) {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes a folder and stops the servers of the data folders in it. */
async function removeFolder(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeData(join(path, entry.name));
  }
  await rm(path, { recursive: true, force: true });
}

/** Makes a folder that the account of the database can enter, also if this process is root. */
export async function makeFolder(): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), PREFIX));
  await chmod(path, 0o755);
  await writeFile(join(path, OWNER), await ownIdentity());
  return { path, remove: () => removeFolder(path) };
}

/** Removes folders of killed runs. Folders of living processes stay. */
export async function sweepFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (!name.startsWith(PREFIX)) continue;
    const owner = await readFile(join(path, OWNER), 'utf8').catch(() => null);
    if (owner !== null && !(await isAlive(owner))) await removeFolder(path);
  }
}
