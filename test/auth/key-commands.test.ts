import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { newKey } from '../../src/auth/key-format.ts';
import { testDatabase } from '../support/database.ts';
import { dataFolder, prices } from '../support/running.ts';

t.test('the audit tells a person which scopes a key was given', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const scopes = ['--scope', 'prices:nickel', '--scope', 'prices:copper'];
  const made = await prices(t, { DATABASE_URL }, 'keys', 'create', '--name', 'desk', ...scopes);
  t.equal(made.code, 0);
  const { stdout } = await prices(t, { DATABASE_URL }, 'keys', 'audit');
  t.match(stdout, /^AT +ACTOR +ACTION +ID +CHANGE +REASON\n/);
  for (const scope of ['nickel', 'copper']) {
    t.match(stdout, new RegExp(` changed +\\S+ +scope prices:${scope} given +–\n`));
  }
  t.match(stdout, / created +\S+ +– +–\n/);
});

t.test('a key that nothing limits is shown as such', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const create = ['keys', 'create', '--name', 'desk', '--scope', 'prices:*'];
  const limits = ['--rate', '0/min', '--concurrency', '0'];
  const { stdout } = await prices(t, { DATABASE_URL }, ...create, ...limits);
  t.match(stdout, /^limits {3}any rate, any number at a time$/m);
});

t.test('programs are told null for what nothing limits, and nothing of other limits', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const run = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', ...args, '--json');
  const make = async (...options: string[]) =>
    JSON.parse((await run('create', '--name', 'a', '--scope', 'prices:*', ...options)).stdout);
  const none = await make('--rate', '0', '--concurrency', '0');
  t.same(none.limits, { perMinute: null, burst: null, concurrent: null });
  t.same((await make('--rate', '0')).limits, { perMinute: null, burst: null });
  t.same((await make('--rate', '600')).limits, { perMinute: 600, burst: 60 });
  t.same((await make('--concurrency', '5')).limits, { concurrent: 5 }, 'the rate is the service’s');
  t.equal((await make()).limits, null);
  const listed = JSON.parse((await run('list')).stdout);
  t.same(listed[0].limits, none.limits);
  t.same(listed[3].limits, { concurrent: 5 });
  for (const args of [
    ['show', none.id],
    ['rotate', none.id],
    ['revoke', none.id, '--reason', 'left'],
  ]) {
    t.same(JSON.parse((await run(...args)).stdout).limits, none.limits, args[0]);
  }
});

t.test('a rate of another form is refused with the form', async (t) => {
  const create = ['keys', 'create', '--name', 'desk', '--scope', 'prices:*', '--rate'];
  for (const rate of ['600/s', '600 / min', 'fast', '-1', '1.5/min', '/min']) {
    const message = `--rate: "${rate}" is not a rate like 600/min, or 0 for no limit`;
    const { code, stderr } = await prices(t, {}, ...create.slice(0, -1), `--rate=${rate}`);
    t.same([code, stderr], [2, `commodity-prices: ${message}\n`]);
  }
});

t.test(
  'times are told to the second in UTC, and which key took the place of another',
  async (t) => {
    const { url: DATABASE_URL } = await testDatabase(t);
    const run = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', ...args);
    const made = await run('create', '--name', 'desk', '--scope', 'prices:*', '--json');
    const { id } = JSON.parse(made.stdout);
    const rotated = await run('rotate', id, '--expires', '2190-12-31');
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
    t.match(rotated.stderr, new RegExp(`^The key ${id} works until ${time}\\.\\n$`));
    t.match(
      rotated.stdout,
      new RegExp(`^created {2}${time}\nexpires {2}2190-12-31T23:59:59Z$`, 'm'),
    );
    const heir = /^id {7}(\w+)$/m.exec(rotated.stdout)?.[1];
    t.match((await run('show', id)).stdout, `\nreplaced by ${heir}\n`);
    t.match((await run('list')).stdout, new RegExp(` ${time} +never `));
    t.match((await run('audit')).stdout, new RegExp(`^${time} `, 'm'));
  },
);

t.test('a folder to be scanned for keys is refused by its name', async (t) => {
  const folder = dirname(await dataFolder(t));
  const { code, stderr } = await prices(t, {}, 'keys', 'scan', folder);
  t.equal(code, 1);
  t.equal(stderr, `commodity-prices: cannot use ${folder}: it is a folder (EISDIR)\n`);
});

t.test('what is found is told, whichever of the files cannot be read', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const folder = dirname(await dataFolder(t));
  const [leaking, clean, missing] = ['leaking', 'clean', 'missing'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const { text, publicId: id } = newKey();
  await writeFile(leaking, `key=${text}\n`);
  await writeFile(clean, 'nothing');
  const scan = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', 'scan', ...args);
  const unread = (path: string, why: string) => `commodity-prices: cannot use ${path}: ${why}\n`;
  const stderr =
    unread(missing, 'there is no such file (ENOENT)') + unread(folder, 'it is a folder (EISDIR)');
  t.same(await scan(missing, leaking, folder), {
    code: 3,
    stdout: `${leaking}:1:5: key ${id} (unknown)\n`,
    stderr,
  });
  const { stdout, ...rest } = await scan(missing, leaking, folder, '--json');
  t.same(rest, { code: 3, stderr });
  t.same(JSON.parse(stdout), [{ file: leaking, id, line: 1, column: 5, status: 'unknown' }]);
  t.same(await scan(missing, clean, folder), { code: 1, stdout: '', stderr });
  t.same(await scan(folder, '--json'), {
    code: 1,
    stdout: '[]\n',
    stderr: unread(folder, 'it is a folder (EISDIR)'),
  });
  t.same(await scan(clean), { code: 0, stdout: '', stderr: 'No key was found.\n' });
});

t.test('a file that is compressed is told, and counts as one that was not searched', async (t) => {
  const folder = dirname(await dataFolder(t));
  const [packed, clean] = [join(folder, 'access.log.gz'), join(folder, 'clean')];
  await writeFile(packed, gzipSync(newKey().text));
  await writeFile(clean, 'nothing');
  t.same(await prices(t, {}, 'keys', 'scan', packed, clean), {
    code: 1,
    stdout: '',
    stderr:
      `commodity-prices: cannot search ${packed}: it is compressed (gzip): unpack it first, or ` +
      'pipe it in, as by zcat FILE | npm run --silent prices -- keys scan -\n',
  });
});
