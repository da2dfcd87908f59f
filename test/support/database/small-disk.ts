import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openEmbedded } from '../../../src/db/embedded/embedded.ts';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { makeFolder } from '../run/folders.ts';
import type { Cluster } from './cluster.ts';
import { administer, siblingUrl } from './database.ts';

const run = promisify(execFile);
const USER = fileURLToPath(new URL('./embedded-user.ts', import.meta.url));

/** A database with little disk space. */
export interface SmallDisk {
  readonly url: string;
  /** Leaves this many MB free; does nothing if the size cannot be controlled. */
  leave(megabytes: number): Promise<void>;
  /** Frees space; returns the database URL from then on. */
  makeRoom(): Promise<string>;
  close(): Promise<void>;
}

const MB = 1_048_576;
const BALLAST = 'ballast';

/** Mounts a small tmpfs, outside the swept folders; null without the permission. */
export async function mountTmpfs(megabytes: number): Promise<string | null> {
  const path = await mkdtemp(join(tmpdir(), 'commodity-prices-disk-'));
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path]);
    return path;
  } catch {
    await rm(path, { recursive: true });
    return null;
  }
}

/** Fills a file system up to this many free bytes. */
export async function fillUp(mount: string, leave = 0): Promise<void> {
  const ballast = join(mount, BALLAST);
  await rm(ballast, { force: true });
  const { stdout } = await run('df', ['--output=avail', '-B1', mount]);
  const free = Number(stdout.split('\n')[1]);
  await writeFile(ballast, Buffer.alloc(Math.max(0, free - leave)));
}

/** Frees the space that `fillUp` took. */
export const makeRoom = (mount: string): Promise<void> => rm(join(mount, BALLAST), { force: true });

/** Unmounts a small file system. */
export async function unmount(mount: string): Promise<void> {
  await run('umount', [mount]);
  await rm(mount, { recursive: true });
}

/** A tablespace on its own small tmpfs; null if none can be mounted. */
export async function smallTmpfs(): Promise<SmallDisk | null> {
  const mount = await mountTmpfs(200);
  if (mount === null) return null;
  await chmod(mount, 0o755);
  const folder = await makeFolder();
  const server = await openEmbedded(join(folder.path, 'data'));
  const { account } = await chooseInstallation(join(folder.path, 'data'));
  const space = join(mount, 'space');
  await mkdir(space);
  if (account) await run('chown', [`${account.uid}:${account.gid}`, space]);
  await administer(
    server.url,
    `create tablespace small location '${space}'`,
    'create database small tablespace small',
  );
  const leave = (megabytes: number) => fillUp(mount, megabytes * MB);
  const url = siblingUrl(server.url, 'small');
  const makeRoomThere = async (): Promise<string> => {
    await makeRoom(mount);
    return url;
  };
  const close = async (): Promise<void> => {
    await server.release();
    await folder.remove();
    await unmount(mount);
  };
  return { url, leave, makeRoom: makeRoomThere, close };
}

/** A server with a file size limit just above a WAL segment. */
export async function smallFiles(): Promise<SmallDisk> {
  const folder = await makeFolder();
  const dataDir = join(folder.path, 'data');
  const child = spawn(
    'sh',
    ['-c', 'ulimit -f 34816; exec "$0" "$@"', process.execPath, USER, dataDir],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, 'line');
  const limited = (JSON.parse(line) as { url: string }).url;
  await administer(limited, 'create database small');
  let server: Awaited<ReturnType<typeof openEmbedded>> | null = null;
  const endLimited = async (): Promise<void> => {
    if (child.exitCode !== null) return;
    child.stdin.end();
    await once(child, 'exit');
  };
  const makeRoom = async (): Promise<string> => {
    await endLimited();
    server = await openEmbedded(dataDir);
    return siblingUrl(server.url, 'small');
  };
  const close = async (): Promise<void> => {
    await endLimited();
    await server?.release();
    await folder.remove();
  };
  return { url: siblingUrl(limited, 'small'), leave: async () => {}, makeRoom, close };
}

/** Controls the disk space for the WAL of a server. */
export interface SmallLog {
  /** Takes all space of the WAL; kills the server if there is no own file system. */
  fill(): Promise<'ENOSPC' | 'SIGKILL'>;
  /** Frees space and restarts the server. */
  makeRoom(): Promise<void>;
}

/** Moves the WAL of a server to its own small tmpfs, if one can be mounted. */
export async function smallLog(
  test: { teardown(work: () => Promise<void>): void },
  cluster: Cluster,
): Promise<SmallLog> {
  const mount = await mountTmpfs(200);
  if (mount === null) {
    const fill = async () => {
      await cluster.kill();
      return 'SIGKILL' as const;
    };
    return { fill, makeRoom: () => cluster.restart('immediate') };
  }
  await chmod(mount, 0o755);
  test.teardown(async () => {
    await cluster.stop().catch(() => {});
    await unmount(mount);
  });
  const [log, moved] = [join(cluster.folder, 'pg_wal'), join(mount, 'pg_wal')];
  await cluster.stop();
  await run('cp', ['-a', log, moved]);
  await rm(log, { recursive: true });
  await symlink(moved, log);
  await cluster.restart('fast');
  return {
    fill: async () => {
      await fillUp(mount);
      return 'ENOSPC';
    },
    makeRoom: async () => {
      await makeRoom(mount);
      await cluster.restart('immediate');
    },
  };
}
