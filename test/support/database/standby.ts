import { execFile } from 'node:child_process';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type t from 'tap';
import { clusterOf } from '../../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { until } from '../http/sockets.ts';
import { makeFolder } from '../run/folders.ts';
import { type Cluster, clusterIn } from './cluster.ts';

type Test = Pick<typeof t, 'teardown'>;

const run = promisify(execFile);

/** Starts a standby of a server; the server stops briefly while its files are copied. */
export async function standbyOf(
  test: Test,
  primary: Cluster,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const home = await makeFolder();
  test.teardown(() => home.remove());
  const dataDir = join(home.path, 'data');
  const place = await chooseInstallation(dataDir);
  const folder = clusterOf(place);
  await primary.stop();
  // Keeps the owner: the files belong to the account that runs the server.
  await run('cp', ['-a', primary.folder, folder]);
  await primary.restart('fast');
  const { hostname, port, username, password } = new URL(primary.url);
  const source = `host=${hostname} port=${port} user=${username} password=${password}`;
  await appendFile(join(folder, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  await writeFile(join(folder, 'standby.signal'), '');
  return clusterIn(test, dataDir, settings);
}

/** Waits until a standby has caught up, then stops replication: it lacks later commits. */
export async function cutOff(primary: Cluster, standby: Cluster): Promise<void> {
  const { rows } = await primary.query('select pg_current_wal_flush_lsn() as lsn');
  await until('the standby has all', async () => {
    const reached = `select pg_last_wal_replay_lsn() >= '${rows[0].lsn}'::pg_lsn as "isThere"`;
    return (await standby.query(reached)).rows[0].isThere;
  });
  await standby.query("alter system set primary_conninfo = ''");
  await standby.query('select pg_reload_conf()');
  await until('nothing feeds it', async () => {
    const { rows: receivers } = await standby.query('select from pg_stat_wal_receiver');
    return receivers.length === 0;
  });
}
