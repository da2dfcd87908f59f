import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { roleName } from '../../src/db/migrate/roles.ts';
import { administer, seededDatabase } from '../support/database/database.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { until } from '../support/http/sockets.ts';
import { prices } from '../support/process/programs.ts';
import { makeFolder } from '../support/run/folders.ts';

t.test('an unreachable database is one line that names it, without its password', async (t) => {
  const env = { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/none' };
  const { code, stderr } = await prices(t, env, 'keys', 'list');
  t.equal(code, 1);
  const [database, why, ...others] = stderr.split('\n');
  t.equal(database, 'Database: none at 127.0.0.1:1');
  t.match(why, /^commodity-prices: DATABASE_URL: cannot use 127\.0\.0\.1:1\/none /);
  t.same(others, ['']);
  t.notMatch(stderr, /hunter2/);
});

t.test('no part of a password is shown when it breaks its address', async (t) => {
  for (const password of ['p@ss/w%rd', '67#89', '67/89', '67?89', 'a%rz']) {
    const env = { DATABASE_URL: `postgres://me:${password}@127.0.0.1:1/none` };
    const { code, stderr } = await prices(t, env, 'keys', 'list');
    t.equal(code, 2, password);
    t.match(stderr, /^commodity-prices: DATABASE_URL: [^\n]*percent-encoded[^\n]*\n$/);
    t.notMatch(stderr, /ss\/w|w%|67|89|rz|127/);
  }
});

/** The line that names the database, and no other. */
const ONE_LINE = /^Database: [^\n]*\n$/;

t.test('a password that is set beside the address is taken as it is', async (t) => {
  const { url } = await seededDatabase(t);
  const role = `role_${new URL(url).pathname.slice(1)}`.toLowerCase().slice(0, 60);
  const PGPASSWORD = 'p@ss/w%rd#?:';
  await administer(
    url,
    `create role "${role}" login password '${PGPASSWORD}'`,
    `grant pg_read_all_data to "${role}"`,
  );
  t.teardown(() => administer(url, `drop role "${role}"`));
  const own = new URL(url);
  own.username = role;
  own.password = '';
  const env = { DATABASE_URL: own.href, PGPASSWORD };
  t.match(await prices(t, env, 'keys', 'list', '--json'), { code: 0, stderr: ONE_LINE });
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'password');
  await writeFile(path, `${PGPASSWORD}\n`);
  const fromFile = { DATABASE_URL: own.href, PGPASSWORD_FILE: path };
  t.match(await prices(t, fromFile, 'keys', 'list', '--json'), { code: 0, stderr: ONE_LINE });
  const { code, stderr } = await prices(t, { ...fromFile, PGPASSWORD }, 'keys', 'list');
  t.equal(code, 2);
  t.equal(
    stderr,
    'commodity-prices: PGPASSWORD_FILE: set only one of PGPASSWORD_FILE, PGPASSWORD\n',
  );
});

/** An address without its password. */
function withoutPassword(url: string): string {
  const address = new URL(url);
  address.password = '';
  return address.href;
}

t.test(
  'a service uses a changed password file for its next connection, without a restart',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const { prefix, pool, url } = database;
    const folder = await makeFolder();
    t.teardown(folder.remove);
    const fileOf = (login: 'service' | 'usage'): string => join(folder.path, login);
    /** Writes a file as Kubernetes does: the whole file takes the place of the one before. */
    const putPassword = async (login: 'service' | 'usage', password: string): Promise<void> => {
      await writeFile(`${fileOf(login)}.new`, `${password}\n`);
      await rename(`${fileOf(login)}.new`, fileOf(login));
    };
    for (const login of ['service', 'usage'] as const) {
      await putPassword(login, database.passwords.get(login) ?? '');
    }
    const service = await startServiceProcess(t, database, {
      DATABASE_URL: withoutPassword(database.urlOf('service')),
      USAGE_DATABASE_URL: withoutPassword(database.urlOf('usage')),
      PGPASSWORD_FILE: fileOf('service'),
      USAGE_PGPASSWORD_FILE: fileOf('usage'),
    });
    const ask = (query = '') =>
      fetch(`http://127.0.0.1:${service.port}/v3/prices/nickel${query}`, {
        headers: { 'x-api-key': service.key },
      });
    t.equal((await ask()).status, 200);
    for (const login of ['service', 'usage'] as const) {
      const password = `changed-${login}`;
      await administer(url, `alter role "${roleName(prefix, login)}" password '${password}'`);
      await putPassword(login, password);
    }
    // The server ends each session, as a failover does: all connections are made again.
    const accounts = [roleName(prefix, 'service'), roleName(prefix, 'usage')];
    const { rowCount } = await pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where usename = any($1)',
      [accounts],
    );
    t.ok(Number(rowCount) > 0);
    await until('requests are answered', async () => (await ask()).status === 200);
    // The service writes the last use when it stops, over a connection of the other account.
    service.running.child.kill('SIGTERM');
    t.equal(await service.running.ended, 0);
    const { rows } = await pool.query('select count(*)::integer as used from key_use');
    t.same(rows, [{ used: 1 }]);
    t.notMatch(service.running.stderr(), /password authentication failed|PASSWORD_FILE/);
  },
);

t.test(
  'without a file of its own, the account for the use of keys shares that of the service',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const { prefix, pool, url } = database;
    const folder = await makeFolder();
    t.teardown(folder.remove);
    const path = join(folder.path, 'password');
    await writeFile(path, 'shared-password');
    for (const login of ['service', 'usage'] as const) {
      await administer(url, `alter role "${roleName(prefix, login)}" password 'shared-password'`);
    }
    const service = await startServiceProcess(t, database, {
      DATABASE_URL: withoutPassword(database.urlOf('service')),
      USAGE_DATABASE_URL: withoutPassword(database.urlOf('usage')),
      PGPASSWORD_FILE: path,
    });
    const { status } = await fetch(`http://127.0.0.1:${service.port}/v3/prices/nickel`, {
      headers: { 'x-api-key': service.key },
    });
    t.equal(status, 200);
    service.running.child.kill('SIGTERM');
    await service.running.ended;
    const { rows } = await pool.query('select count(*)::integer as used from key_use');
    t.same(rows, [{ used: 1 }]);
  },
);
