import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { jwtVerify } from 'jose';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { findPostmaster } from '../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../src/db/embedded/installation.ts';
import { FORMAT_NAMES } from '../../src/ingest/formats/formats.ts';
import {
  administer,
  seededDatabase,
  siblingUrl,
  testDatabase,
} from '../support/database/database.ts';
import { dataFolder, prices } from '../support/process/programs.ts';

/** A command and all below it, with the words that call them. */
const commandsBelow = (command: Command, words: string[] = []): [string[], Command][] => [
  [words, command],
  ...command.commands.flatMap((each) => commandsBelow(each, [...words, each.name()])),
];

t.test('every command explains itself, with an example', async (t) => {
  const all = commandsBelow(await makeProgram());
  const names = all.map(([words]) => words.join(' '));
  t.strictSame(
    names.filter((_, at) => all[at]?.[1].commands.length === 0),
    [
      'serve',
      'db migrate',
      'db seed',
      'db roles',
      'db hash',
      'db verify',
      'db renew-epoch',
      'db export',
      'db import',
      ...FORMAT_NAMES.map((name) => `load ${name}`),
      'load calendar',
      'load vat',
      'load log',
      'load show',
      'load undo',
      'withdraw',
      'late',
      'keys create',
      'keys list',
      'keys show',
      'keys rotate',
      'keys revoke',
      'keys audit',
      'webhooks add',
      'webhooks list',
      'webhooks test',
      'webhooks rotate',
      'webhooks remove',
      'webhooks run',
      'token check',
      'token create',
      'openapi',
      'mcp',
    ],
  );
  for (const [words, command] of all) {
    t.not(command.description(), '', words.join(' '));
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    t.notMatch(help, /.{101}/, `${words.join(' ')} fits a terminal`);
    const isLeaf = command.commands.length === 0;
    if (isLeaf) t.match(help, /Examples?:\n {2}\S/, words.join(' '));
    for (const option of command.options) t.not(option.description, '', option.flags);
  }
  const top = await prices(t, {}, '--help');
  t.equal(top.code, 0);
  t.match(top.stdout, /Exit codes:[\s\S]*\b3 {2}the data was refused; nothing was written\n/);
  t.match(await prices(t, {}, 'keys', 'create', '--help'), { code: 0, stdout: /--scope <scope/ });
});

/** The command line of a key. */
const KEY = ['keys', 'create', '--name', 'a', '--scope', 'prices:*'];

t.test('a wrong command line is exit code 2 and says what is wrong', async (t) => {
  const { url: DATABASE_URL } = await seededDatabase(t);
  const wrong: [string[], RegExp][] = [
    [[], /Usage: commodity-prices/],
    [['keyz'], /unknown command 'keyz'/],
    [['keys', 'list', '--jsn'], /unknown option '--jsn'/],
    [['keys', 'create', '--scope', 'prices:*'], /--name/],
    [['keys', 'create', '--name', 'a', '--scope', 'prices:nikel'], /prices:nickel/],
    [[...KEY, '--expires', 'soon'], /--expires/],
    [[...KEY, '--expires', '2020-01-01'], /is over/],
    [['db', 'migrate', '--status', '--dry-run'], /one of/],
    [['db', 'renew-epoch'], /--yes/],
    [['load', 'csv', 'x.csv', '--allow-corrections'], /--reason/],
    [['token', 'create', '--scope', 'prices:*'], /JWT_SECRET/],
  ];
  const check = async ([args, message]: [string[], RegExp]): Promise<void> => {
    const { code, stdout, stderr } = await prices(t, { DATABASE_URL }, ...args);
    t.equal(code, 2, args.join(' '));
    t.equal(stdout, '');
    t.match(stderr, message);
    t.notMatch(stderr, /\n {4}at /, 'no stack');
  };
  await Promise.all(wrong.map(check));
  t.match(await prices(t, { PORT: 'x' }, 'keys', 'list'), { code: 2, stderr: /PORT: "x"/ });
});

t.test('keys are made, listed, shown and revoked', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const keys = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', ...args);
  t.match(await keys('list', '--json'), { code: 0, stdout: '[]\n', stderr: /^Database: .+\n$/ });

  const scopes = ['--scope', 'prices:nickel,prices:cobalt', '--scope', 'prices:copper'];
  const created = await keys('create', '--name', 'desk 4', ...scopes, '--expires', '30', '--json');
  t.equal(created.code, 0);
  const key = JSON.parse(created.stdout);
  t.match(key, { key: /^cps_live_/, name: 'desk 4', owner: null, status: 'active' });
  t.strictSame([...key.scopes].sort(), ['prices:cobalt', 'prices:copper', 'prices:nickel']);
  const days = (Date.parse(key.expiresAt) - Date.now()) / 86_400_000;
  t.ok(days > 29.9 && days < 30.1, 'the key is valid for 30 days');

  const { key: secret, ...info } = key;
  t.match(JSON.parse((await keys('show', key.id, '--json')).stdout), info);
  const listed = await keys('list');
  t.match(listed.stdout, /^ID .*\n.*desk 4/);
  t.notMatch(listed.stdout, secret);

  t.match(await keys('revoke', key.id, '--reason', 'lost'), { code: 0, stdout: /revoked .*lost/ });
  const gone = JSON.parse((await keys('show', key.id, '--json')).stdout);
  t.match(gone, { status: 'revoked', revokedReason: 'lost' });
  t.match(await keys('show', 'AAAAAAAAAA'), { code: 2, stderr: /no key with the id AAAAAAAAAA/ });
  const misplaced = await keys('show', secret);
  t.equal(misplaced.code, 2);
  t.notMatch(misplaced.stderr, secret, 'a misplaced key is not repeated');

  const forPeople = await keys('create', '--name', 'a', '--scope', 'prices:*', '--no-expiry');
  t.match(forPeople.stdout, /expires +never[\s\S]*\ncps_live_\w+\n/);
});

t.test('a new database of another encoding than UTF-8 is not migrated', async (t) => {
  const { url } = await seededDatabase(t);
  const name = `${new URL(url).pathname.slice(1)}_ascii`;
  const locale = `encoding 'SQL_ASCII' locale_provider libc locale 'C'`;
  await administer(url, `create database "${name}" template template0 ${locale}`);
  t.teardown(() => administer(url, `drop database "${name}" with (force)`));
  const migrated = await prices(t, { DATABASE_URL: siblingUrl(url, name) }, 'db', 'migrate');
  t.match(migrated, {
    code: 2,
    stderr: /the encoding SQL_ASCII, and needs UTF8; .*--encoding=UTF8/,
  });
});

t.test('a database without the schema is migrated by command only', async (t) => {
  const { url } = await seededDatabase(t);
  const name = `${new URL(url).pathname.slice(1)}_bare`;
  await administer(url, `create database "${name}" template template0`);
  t.teardown(() => administer(url, `drop database "${name}" with (force)`));
  const DATABASE_URL = siblingUrl(url, name);
  const db = (...args: string[]) => prices(t, { DATABASE_URL }, 'db', ...args);
  const status = async () => JSON.parse((await db('migrate', '--status', '--json')).stdout);

  const early = await prices(t, { DATABASE_URL }, 'keys', 'list');
  t.match(early, { code: 2, stderr: /db migrate/ });
  t.match(await status(), [{ name: '0001-revisions', executedAt: null }]);

  const preview = await db('migrate', '--dry-run');
  t.equal(preview.code, 0);
  t.match(preview.stdout, /create table price \(/);
  t.match(
    await status(),
    [{ name: '0001-revisions', executedAt: null }],
    'the preview changed nothing',
  );
  await administer(DATABASE_URL, preview.stdout);
  t.pass('what it printed runs as it is');
  await administer(DATABASE_URL, 'drop schema public cascade', 'create schema public');

  t.match(await db('migrate'), { code: 0, stdout: /Ran 0001-revisions/ });
  t.match(await db('migrate'), { code: 0, stdout: /up to date/ });
  t.match(await status(), [{ name: '0001-revisions', executedAt: /^20/ }]);
  t.match(await db('migrate', '--dry-run', '--json'), { code: 0, stdout: '[]\n' });
  t.match(await db('seed', '--reference', '--json'), { code: 0, stdout: /"sample": null/ });
});

t.test('seeding twice changes nothing', async (t) => {
  const { url: DATABASE_URL, pool } = await testDatabase(t, { seeded: true });
  const revision = async () => (await pool.query('select max(number) from revision')).rows;
  const before = await revision();
  const again = await prices(t, { DATABASE_URL }, 'db', 'seed', '--json');
  t.match(JSON.parse(again.stdout), {
    reference: { inserted: 0 },
    sample: { prices: 0, points: 0, rates: 0, corrected: 0 },
  });
  t.strictSame(await revision(), before);
});

t.test('a load ends with 0 when applied, 3 when refused, 1 when there is no file', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t, { seeded: true });
  const file = join(await dataFolder(t), '..', 'values.csv');
  const load = (...args: string[]) => prices(t, { DATABASE_URL }, 'load', 'csv', file, ...args);
  t.match(await load(), { code: 1, stderr: /cannot use .*values\.csv.*\n$/ });
  await writeFile(file, 'code,date,low,mid,high\nCP-NI-0001,2010-01-04,10,11,12\n');
  t.match(await load('--vintage', '2020-01-01'), {
    code: 0,
    stdout: /^New values: 1, of 1 code\n {2}CP-NI-0001 1, 2010-01-04\nLoaded \(batch/,
  });
  t.match(await load('--json', '--vintage', '2020-01-01'), {
    code: 0,
    stdout: /"status": "already-loaded"/,
  });
  await writeFile(file, 'code,date,low,mid,high\nCP-NI-0001,2010-01-05,10,9,12\n');
  const refused = await load('--vintage', '2020-01-02');
  t.match(refused, { code: 3, stdout: /Refused; nothing was changed/ });
  t.match(refused.stderr, /values\.csv:2: .*\(low_mid_high\)/);
  await writeFile(file, 'code,date,low,mid,high\nCP-NI-0001,2010-01-06,10,11,12\n');
  const several = await load(file, '--json');
  t.strictSame(
    JSON.parse(several.stdout).map(({ status }: { status: string }) => status),
    ['applied', 'already-loaded'],
    'several files are a load each, in their order',
  );
  await rm(file);
});

t.test('a token is signed with the secret of the service and honours its limits', async (t) => {
  const JWT_SECRET = 'a secret of thirty-two bytes or more';
  const env = { JWT_SECRET, DATABASE_URL: 'postgres://127.0.0.1:1/none', JWT_ISSUER: 'me' };
  const args = ['token', 'create', '--scope', 'prices:*', '--lifetime', '60', '--json'];
  const { stdout } = await prices(t, env, ...args);
  const { token } = JSON.parse(stdout);
  const { payload } = await jwtVerify(token, Buffer.from(JWT_SECRET), { issuer: 'me' });
  t.match(payload, { scope: 'prices:*', sub: 'development', aud: 'commodity-prices' });
  t.equal(Number(payload.exp) - Number(payload.iat), 60);
  const long = await prices(
    t,
    env,
    'token',
    'create',
    '--scope',
    'prices:*',
    '--lifetime',
    '99999',
  );
  t.match(long, { code: 2, stderr: /--lifetime/ });
  const issuer = { ...env, JWT_SECRET: '', JWT_JWKS_URL: 'https://issuer.example/keys' };
  t.match(await prices(t, issuer, ...args), { code: 2, stderr: /issuer/ });
});

t.test('the OpenAPI document needs no database', async (t) => {
  const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const yaml = await prices(t, env, 'openapi');
  t.match(yaml, { code: 0, stdout: /^openapi: 3\.1\.0\n/ });
  const { paths } = JSON.parse((await prices(t, env, 'openapi', '--json')).stdout);
  for (const { slug } of MARKETS) t.ok(paths[`/v3/prices/${slug}`]?.post, slug);
});

t.test('without DATABASE_URL a command brings its own database and takes it away', async (t) => {
  const DATA_DIR = await dataFolder(t);
  const created = await prices(t, { DATA_DIR }, ...KEY);
  t.match(created, { code: 0, stdout: /cps_live_/ });
  t.match(JSON.parse((await prices(t, { DATA_DIR }, 'keys', 'list', '--json')).stdout), [
    { name: 'a' },
  ]);
  t.equal(findPostmaster(await chooseInstallation(DATA_DIR)), null);
  t.ok(await stat(join(DATA_DIR, 'postgres')));
  t.notMatch(await readFile(join(DATA_DIR, 'postgres.log'), 'utf8'), /ERROR|PANIC/);
});

t.test('a command that is gone is refused by name, with what to do instead', async (t) => {
  const gone = await prices(t, {}, 'db', 'drill', '--keep');
  t.match(gone, { code: 2, stderr: /: db drill is gone: docs\/operations\.md/, stdout: '' });
  t.match(await prices(t, {}, 'db', 'migrate', '--down', '--yes'), {
    code: 2,
    stderr: /: db migrate --down is gone: the previous version runs on the schema of this one/,
    stdout: '',
  });
  for (const format of [['--format', 'ndjson'], ['--format=parquet']]) {
    t.match(await prices(t, {}, 'db', 'export', 'archive', ...format), {
      code: 2,
      stderr: /: db export --format is gone: every export is CSV, so leave the option out/,
      stdout: '',
    });
  }
  const callback = await prices(t, {}, 'db', 'renew-epoch', '--yes', '--if-lost-after', '41');
  t.match(callback, { code: 2, stderr: /: db renew-epoch --if-lost-after is gone: .*commit ids/ });
});
