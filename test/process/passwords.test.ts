import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { administer, seededDatabase } from '../support/database/database.ts';
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
