import { existsSync } from 'node:fs';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { dataFolder, prices, startService } from '../support/process/programs.ts';

const CREATE = ['keys', 'create', '--name', 'a', '--scope', 'prices:*', '--json'];

t.test('no command runs with a misspelt setting, and each names the setting', async (t) => {
  const DATA_DIR = await dataFolder(t);
  const env = { DATA_DIR, DATABASE_ULR: 'postgres://a:hunter2@127.0.0.1:1/b', LOG_LEVLE: 'warn' };
  const stderr = ['DATABASE_ULR DATABASE_URL', 'LOG_LEVLE LOG_LEVEL']
    .map((names) => names.split(' '))
    .map(
      ([given, meant]) =>
        `commodity-prices: ${given} is not a setting of the service; did you mean ${meant}?\n`,
    )
    .join('');
  for (const args of [
    ['db', 'migrate'],
    CREATE,
    ['load', 'csv', 'prices.csv'],
    ['load', 'ecb', '--fetch'],
    ['token', 'create', '--scope', 'prices:*'],
  ]) {
    const outcome = await prices(t, env, ...args);
    t.strictSame(outcome, { code: 2, stdout: '', stderr }, args.join(' '));
  }
  t.notOk(existsSync(DATA_DIR), 'no embedded database was made');
});

t.test('a command names its database on stderr, without the password', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const { hostname, port, pathname, password } = new URL(DATABASE_URL);
  const line = `Database: ${pathname.slice(1)} at ${hostname}:${port}\n`;
  const created = await prices(t, { DATABASE_URL }, ...CREATE);
  t.match(created, { code: 0, stderr: line });
  t.match(JSON.parse(created.stdout), { name: 'a' });
  if (password !== '') t.notMatch(created.stderr, password);
  const migrated = await prices(t, { DATABASE_URL }, 'db', 'migrate', '--status', '--json');
  t.match(migrated, { code: 0, stderr: line });
  const short = { DATABASE_URL: 'postgres://a:hunter2@127.0.0.1:1', PGDATABASE: 'other' };
  const failed = await prices(t, short, 'keys', 'list');
  t.match(failed, {
    code: 1,
    stderr: /^Database: other at 127\.0\.0\.1:1\ncommodity-prices: [^\n]+\n$/,
  });
  t.notMatch(failed.stderr, 'hunter2');
  const unreachable = { DATABASE_URL: 'postgres://a:hunter2@127.0.0.1:1/b' };
  const quiet = ['load', 'csv', 'x.csv'];
  t.match(await prices(t, unreachable, ...quiet), {
    stderr: /^Database: b at 127\.0\.0\.1:1\n/,
  });
  t.notMatch((await prices(t, unreachable, ...quiet, '--quiet')).stderr, 'Database:');
});

t.test('a command names the folder of the embedded database', async (t) => {
  const DATA_DIR = await dataFolder(t);
  const { code, stderr, stdout } = await prices(t, { DATA_DIR }, 'keys', 'list', '--json');
  t.strictSame([code, stdout], [0, '[]\n'], stderr);
  t.match(stderr, `Database: embedded in ${DATA_DIR}\n`);
});

t.test('nothing uses the embedded database in production', async (t) => {
  const env = { DATA_DIR: await dataFolder(t), NODE_ENV: 'production' };
  const stderr =
    'commodity-prices: DATABASE_URL: must be set with NODE_ENV=production; the embedded database ' +
    'is only for trials and development\n';
  for (const args of [['db', 'migrate'], CREATE, ['load', 'log']]) {
    t.strictSame(await prices(t, env, ...args), { code: 2, stdout: '', stderr }, args.join(' '));
  }
  const service = startService(t, env);
  t.equal(await service.ended, 2);
  t.match(service.stderr(), stderr);
  t.notOk(existsSync(env.DATA_DIR));
});
