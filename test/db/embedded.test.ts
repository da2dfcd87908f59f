import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import t from 'tap';
import { openEmbedded } from '../../src/db/embedded/embedded.ts';
import { chooseInstallation } from '../../src/db/embedded/installation.ts';
import { until } from '../support/http/sockets.ts';
import { dataFolder } from '../support/process/programs.ts';
import { removeData } from '../support/run/folders.ts';

const USER = fileURLToPath(new URL('../support/database/embedded-user.ts', import.meta.url));
/** No process of this machine has it: the kernel's numbers end far below. */
const DEAD_PID = 2_000_000_000;

type Test = Pick<typeof t, 'teardown'>;

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const postmasterOf = async (dataDir: string): Promise<number> =>
  Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);

/** The folder of the database files, which root stores elsewhere if it must. */
const homeOf = async (dataDir: string): Promise<string> => (await chooseInstallation(dataDir)).home;

/** The unfinished files of a new database. */
async function draftsIn(dataDir: string): Promise<string[]> {
  const names = await readdir(await homeOf(dataDir));
  return names.filter((each) => each.startsWith('postgres.new'));
}

/** Another process that uses the database of the folder. */
async function otherUser(test: Test, dataDir: string) {
  const child: ChildProcess = spawn(process.execPath, [USER, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  test.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = await once(lines, 'line');
  const end = async (signal?: NodeJS.Signals): Promise<number | null> => {
    if (signal) child.kill(signal);
    else child.stdin?.end();
    const [code] = (await once(child, 'exit')) as [number | null];
    return code;
  };
  return { ...(JSON.parse(line) as { url: string; started: boolean }), end };
}

t.test('the first opens, others share, and the last one out stops the server', async (t) => {
  process.env['PGDATA'] = '/nonexistent';
  process.env['PGPORT'] = '1';
  t.teardown(() => {
    delete process.env['PGDATA'];
    delete process.env['PGPORT'];
  });
  const dataDir = await dataFolder(t);
  const first = await openEmbedded(dataDir);
  t.equal(first.started, true);
  const second = await openEmbedded(dataDir);
  t.match(second, { started: false, url: first.url });
  const other = await otherUser(t, dataDir);
  t.match(other, { started: false, url: first.url });

  t.strictSame(
    await query(
      first.url,
      `select current_setting('server_encoding') as encoding, current_setting('timezone') as zone,
        current_setting('listen_addresses') as address, current_setting('data_checksums') as sums,
        current_setting('unix_socket_directories') as sockets, current_database() as name,
        (select datlocprovider::text || datlocale from pg_database
          where datname = current_database()) as locale`,
    ),
    [
      {
        encoding: 'UTF8',
        zone: 'UTC',
        address: '127.0.0.1',
        sums: 'on',
        sockets: '',
        name: 'prices',
        locale: 'bC.UTF-8',
      },
    ],
  );
  await query(first.url, 'create table kept as select 42 as value');

  await first.release();
  await second.release();
  t.ok(await query(first.url, 'select'), 'the other process still has it');
  await other.end();
  await t.rejects(query(first.url, 'select'), { code: 'ECONNREFUSED' });

  const later = await openEmbedded(dataDir);
  t.equal(later.started, true);
  t.strictSame(await query(later.url, 'select value from kept'), [{ value: 42 }]);
  await later.release();
  await later.release();
});

t.test('a connection without the password is refused', async (t) => {
  const dataDir = await dataFolder(t);
  const { url, release } = await openEmbedded(dataDir);
  const guess = new URL(url);
  guess.password = 'prices';
  await t.rejects(query(guess.href, 'select'), { code: '28P01' });
  const { mode } = await stat(join(dataDir, 'postgres', 'database-password'));
  t.equal(mode & 0o777, 0o600);
  await release();
});

t.test('a terminal’s Ctrl-C does not reach the server', async (t) => {
  const dataDir = await dataFolder(t);
  const { release } = await openEmbedded(dataDir);
  const groupOf = (pid: number): string =>
    execFileSync('ps', ['-o', 'pgid=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  const pid = await postmasterOf(dataDir);
  t.equal(groupOf(pid), String(pid));
  await release();
});

t.test('ten processes that start at once on a new folder share one server', async (t) => {
  const dataDir = await dataFolder(t);
  const users = await Promise.all(Array.from({ length: 10 }, () => otherUser(t, dataDir)));
  t.equal(new Set(users.map((each) => each.url)).size, 1);
  t.equal(users.filter((each) => each.started).length, 1);
  const codes = await Promise.all(users.map((each) => each.end()));
  t.same(new Set(codes), new Set([0]), 'none fails because another one stops the server');
  await t.rejects(query(users[0]?.url ?? '', 'select'), { code: 'ECONNREFUSED' });
  t.same(await draftsIn(dataDir), []);
});

t.test('a process that starts while the last one stops the server gets a server', async (t) => {
  const dataDir = await dataFolder(t);
  let last = await openEmbedded(dataDir);
  for (let round = 0; round < 8; round += 1) {
    const [next] = await Promise.all([openEmbedded(dataDir), last.release()]);
    t.ok(await query(next.url, 'select'), next.started ? 'a new server' : 'the running server');
    last = next;
  }
  await last.release();
  await t.rejects(query(last.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('a session that is ended during its release does not fail, or leave a server', async (t) => {
  const dataDir = await dataFolder(t);
  const { url, release } = await openEmbedded(dataDir);
  const [held] = await query(
    url,
    "select pid from pg_stat_activity where application_name like '% user of the server'",
  );
  const pid = Number(held?.['pid']);
  // Its statements wait until it is terminated.
  process.kill(pid, 'SIGSTOP');
  const released = release();
  process.kill(pid, 'SIGTERM');
  process.kill(pid, 'SIGCONT');
  await t.resolves(released);
  await t.rejects(query(url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('two last processes that end at once stop the server', async (t) => {
  const dataDir = await dataFolder(t);
  for (let round = 0; round < 4; round += 1) {
    const both = [await openEmbedded(dataDir), await openEmbedded(dataDir)];
    await Promise.all(both.map(({ release }) => release()));
    await t.rejects(query(both[0]?.url ?? '', 'select'), { code: 'ECONNREFUSED' });
  }
});

t.test(
  'a crash that ends all sessions leaves the server to the processes that use it',
  async (t) => {
    const dataDir = await dataFolder(t);
    const service = await openEmbedded(dataDir);
    const sessions = `select pid from pg_stat_activity where backend_type = 'client backend'
    and pid <> pg_backend_pid()`;
    const [held] = await query(service.url, sessions);
    process.kill(Number(held?.['pid']), 'SIGKILL');
    await until('it is used again', async () => {
      const rows = await query(service.url, sessions).catch(() => []);
      return rows.length > 0 && rows[0]?.['pid'] !== held?.['pid'];
    });
    const command = await openEmbedded(dataDir);
    t.match(command, { started: false, url: service.url });
    await command.release();
    t.ok(await query(service.url, 'select'), 'the end of the command does not stop it');
    await service.release();
    await t.rejects(query(service.url, 'select'), { code: 'ECONNREFUSED' });
  },
);

t.test('a killed owner leaves a server that the next one adopts and stops', async (t) => {
  const dataDir = await dataFolder(t);
  const owner = await otherUser(t, dataDir);
  await owner.end('SIGKILL');
  t.ok(await query(owner.url, 'select'), 'the server still runs');
  const next = await openEmbedded(dataDir);
  t.match(next, { started: false, url: owner.url });
  await next.release();
  await t.rejects(query(owner.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('after a killed server the next start has the data', async (t) => {
  const dataDir = await dataFolder(t);
  const first = await openEmbedded(dataDir);
  await query(first.url, 'create table kept as select 42 as value');
  process.kill(await postmasterOf(dataDir), 'SIGKILL');
  const second = await openEmbedded(dataDir);
  t.equal(second.started, true);
  t.strictSame(await query(second.url, 'select value from kept'), [{ value: 42 }]);
  await first.release();
  await second.release();
  await t.rejects(query(second.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('a first start whose process is killed can be repeated', async (t) => {
  const dataDir = await dataFolder(t);
  const child = spawn(process.execPath, [USER, dataDir], { stdio: ['pipe', 'ignore', 'inherit'] });
  await until('initdb has begun', async () => (await draftsIn(dataDir)).length > 0);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const next = await openEmbedded(dataDir);
  t.equal(next.started, true);
  t.ok(await query(next.url, 'select'));
  t.same(await draftsIn(dataDir), []);
  await next.release();
});

/** A running program of the account that runs PostgreSQL. */
async function otherProgram(test: Test, dataDir: string): Promise<number> {
  const { account } = await chooseInstallation(dataDir);
  const owner = account ? { uid: account.uid, gid: account.gid } : {};
  const child = spawn('sleep', ['600'], { cwd: '/', stdio: 'ignore', ...owner });
  test.teardown(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  return child.pid ?? 0;
}

t.test('a postmaster.pid left by a crash prevents no start', async (t) => {
  const dataDir = await dataFolder(t);
  const first = await openEmbedded(dataDir);
  await first.release();
  const files = join(await homeOf(dataDir), 'postgres');
  for (const pid of [DEAD_PID, process.pid, await otherProgram(t, dataDir)]) {
    const left = `${pid}\n${files}\n1700000000\n5432\n\n127.0.0.1\n\nready\n`;
    await writeFile(join(files, 'postmaster.pid'), left);
    const next = await openEmbedded(dataDir);
    t.equal(next.started, true);
    await next.release();
    await t.rejects(query(next.url, 'select'), { code: 'ECONNREFUSED' });
  }
});

t.test('a folder of version 1.0.0 works, whatever a crash left in it', async (t) => {
  const dataDir = await dataFolder(t);
  const first = await openEmbedded(dataDir);
  await query(first.url, 'create table kept as select 42 as value');
  await first.release();
  const home = await homeOf(dataDir);
  await rename(join(home, 'postgres', 'database-password'), join(home, 'database-password'));
  await writeFile(join(dataDir, 'embedded.lock'), `${process.pid} 1@boot`);
  await mkdir(join(dataDir, 'leases'));
  await writeFile(join(dataDir, 'leases', `${process.pid}-1`), `${process.pid} 1@boot`);
  await mkdir(join(home, 'postgres.new-12ab'));
  await writeFile(join(home, 'postgres.new-12ab.password'), 'x');

  const next = await openEmbedded(dataDir);
  t.strictSame(await query(next.url, 'select value from kept'), [{ value: 42 }]);
  t.same(await draftsIn(dataDir), []);
  await next.release();
  await t.rejects(query(next.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('files of another version are refused, with the reason and the log', async (t) => {
  const dataDir = await dataFolder(t);
  const { release } = await openEmbedded(dataDir);
  await release();
  await writeFile(join(await homeOf(dataDir), 'postgres', 'PG_VERSION'), '15\n');
  await t.rejects(openEmbedded(dataDir), {
    name: 'EmbeddedDatabaseError',
    message: /database files are incompatible with server\); see .*postgres\.log$/,
  });
});

t.test('data goes where the account of the database can reach it', async (t) => {
  const dataDir = await dataFolder(t);
  await chmod(join(dataDir, '..'), 0o700);
  const { url, notice, release } = await openEmbedded(dataDir);
  const [row] = await query(url, `select current_setting('data_directory') as folder`);
  const folder = String(row?.['folder']);
  await release();
  if (process.getuid?.() === 0) {
    t.match(folder, /^\/var\/lib\/commodity-prices\/[0-9a-f]{12}\/postgres$/);
    t.match(notice, join(folder, '..'));
    t.notMatch(notice, /\n/);
  } else {
    t.equal(folder, join(dataDir, 'postgres'));
    t.equal(notice, null);
  }
  await removeData(dataDir);
  t.equal(await stat(folder).catch(() => null), null, 'the folder can be removed again');
});
