import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import t from 'tap';
import { openEmbedded, removeEmbedded } from '../../src/db/embedded/embedded.ts';
import { ownIdentity, withLock } from '../../src/db/embedded/process.ts';
import { dataFolder } from '../support/process/programs.ts';

const USER = fileURLToPath(new URL('../support/database/embedded-user.ts', import.meta.url));
/** No process of this machine has it: the kernel's numbers end far below. */
const DEAD_PID = 4_194_305_000;

type Test = Pick<typeof t, 'teardown'>;

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const postmasterOf = async (dataDir: string): Promise<number> =>
  Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);

/** Another process that uses the database of the folder. */
async function otherUser(test: Test, dataDir: string) {
  const child: ChildProcess = spawn(process.execPath, [USER, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  test.teardown(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = await once(lines, 'line');
  const end = async (signal?: NodeJS.Signals): Promise<void> => {
    if (signal) child.kill(signal);
    else child.stdin?.end();
    await once(child, 'exit');
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
  t.strictSame(await readdir(join(dataDir, 'leases')), []);
});

t.test('a connection without the password is refused', async (t) => {
  const dataDir = await dataFolder(t);
  const { url, release } = await openEmbedded(dataDir);
  const guess = new URL(url);
  guess.password = 'prices';
  await t.rejects(query(guess.href, 'select'), { code: '28P01' });
  const { mode } = await stat(join(dataDir, 'database-password'));
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

t.test('processes that start at once on a new folder share one server', async (t) => {
  const dataDir = await dataFolder(t);
  const users = await Promise.all([1, 2, 3].map(() => otherUser(t, dataDir)));
  t.equal(new Set(users.map((each) => each.url)).size, 1);
  t.equal(users.filter((each) => each.started).length, 1);
  await Promise.all(users.map((each) => each.end()));
  await t.rejects(query(users[0]?.url ?? '', 'select'), { code: 'ECONNREFUSED' });
});

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

t.test('after a killed server the next start has the data, at the same address', async (t) => {
  const dataDir = await dataFolder(t);
  const first = await openEmbedded(dataDir);
  await query(first.url, 'create table kept as select 42 as value');
  process.kill(await postmasterOf(dataDir), 'SIGKILL');
  const second = await openEmbedded(dataDir);
  t.match(second, { started: true, url: first.url });
  t.strictSame(await query(first.url, 'select value from kept'), [{ value: 42 }]);
  await first.release();
  await second.release();
  await t.rejects(query(first.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('files left by crashes prevent no start', async (t) => {
  const dataDir = await dataFolder(t);
  const [pid, ...beginning] = (await ownIdentity()).split(' ');
  const leases = join(dataDir, 'leases');
  const { url, release } = await openEmbedded(dataDir);
  await release();

  // A dead process holds the lock; the start of a database was cut off halfway.
  await writeFile(join(dataDir, 'embedded.lock'), `${DEAD_PID} 1@boot`);
  await mkdir(join(dataDir, 'postgres.new-1234'));
  await writeFile(join(dataDir, 'postgres.new-1234', 'PG_VERSION'), '18');
  // A dead process has a lease, and one whose number a later process, this one, has got.
  await writeFile(join(leases, `${DEAD_PID}-1`), `${DEAD_PID} 1@boot`);
  await writeFile(join(leases, `${pid}-1`), `${pid} 1${beginning.join(' ')}`);
  // The server's number went to another process as well.
  const port = new URL(url).port;
  await writeFile(
    join(dataDir, 'postgres', 'postmaster.pid'),
    `${pid}\n${join(dataDir, 'postgres')}\n1700000000\n${port}\n\n127.0.0.1\n\nready\n`,
  );

  const next = await openEmbedded(dataDir);
  t.equal(next.started, true);
  t.strictSame(
    (await readdir(dataDir)).filter((each) => each.startsWith('postgres.new')),
    [],
  );
  await next.release();
  await t.rejects(query(next.url, 'select'), { code: 'ECONNREFUSED' });
});

t.test('a living process’s lock is waited for, and named when it takes too long', async (t) => {
  const file = join(await dataFolder(t), '..', 'a.lock');
  await withLock(file, 1_000, async () => {
    await t.rejects(
      withLock(file, 100, async () => {}),
      { name: 'EmbeddedDatabaseError', message: new RegExp(`process ${process.pid} .*a\\.lock`) },
    );
  });
  t.equal(await withLock(file, 0, async () => 'mine'), 'mine');
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
  t.equal(await removeEmbedded(dataDir), true);
  t.equal(await stat(folder).catch(() => null), null, 'the folder can be removed again');
});
