import { writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { roleName } from '../../src/db/migrate/roles.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';
import { makeFolder } from '../support/run/folders.ts';

t.test(
  'the ledger has who loaded beside the account of the database, by each way to name them',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const account = roleName(database.prefix, 'loader');
    const folder = await makeFolder();
    t.teardown(folder.remove);
    const file = join(folder.path, 'rates.csv');
    const env = { DATABASE_URL: database.urlOf('loader') };
    const ways: readonly [by: string[], env: Readonly<Record<string, string>>, actor: string][] = [
      [['--by', 'anna'], { ...env, PRICES_ACTOR: 'cron' }, 'anna'],
      [[], { ...env, PRICES_ACTOR: 'cron', SUDO_USER: 'otto' }, 'cron'],
      [[], { ...env, SUDO_USER: 'otto' }, process.getuid?.() === 0 ? 'otto' : userInfo().username],
    ];
    for (const [at, [by, settings]] of ways.entries()) {
      await writeFile(file, `Date, USD\n0${at + 4} January 1999, 1.1${at}\n`);
      t.match(await prices(t, settings, 'load', 'ecb', file, ...by), { code: 0 });
    }
    const { stdout } = await prices(t, env, 'load', 'log', '--limit', '3', '--json');
    t.match(JSON.parse(stdout), ways.map(([, , actor]) => ({ actor, account })).reverse());
    const text = await prices(t, env, 'load', 'log', '--limit', '3');
    t.match(text.stdout, `anna (${account})`);
    const blank = await prices(t, env, 'load', 'ecb', file, '--by', ' ');
    t.match(blank, { code: 2, stderr: /--by has to be a name of at most 100 printable/ });
  },
);

t.test(
  'the key audit has who made, rotated and revoked a key beside the account of the database',
  async (t) => {
    const database = await roledDatabase(t);
    const account = roleName(database.prefix, 'keys');
    const env = { DATABASE_URL: database.urlOf('keys') };
    const making = ['--name', 'desk', '--scope', 'prices:nickel', '--json'];
    const made = await prices(t, env, 'keys', 'create', ...making, '--by', 'anna');
    const { id } = JSON.parse(made.stdout);
    const rotated = await prices(t, env, 'keys', 'rotate', id, '--by', 'otto', '--json');
    const later = JSON.parse(rotated.stdout).id;
    const named = { ...env, PRICES_ACTOR: 'eva' };
    await prices(t, named, 'keys', 'revoke', later, '--reason', 'left');
    const audit = JSON.parse((await prices(t, env, 'keys', 'audit', '--json')).stdout) as {
      readonly actor: string;
      readonly account: string;
      readonly action: string;
    }[];
    const actors = (action: string) =>
      new Set(audit.filter((each) => each.action === action).map(({ actor }) => actor));
    t.same(actors('created'), new Set(['anna', 'otto']));
    t.same(actors('revoked'), new Set(['eva']));
    t.ok(audit.every((each) => each.account === account));
  },
);

t.test('no client can name another account of the database', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { pool } = database.as('keys');
  await t.rejects(
    pool.query(
      `insert into key_audit (actor, account, action, public_id) values ('x', 'y', 'created', 'z')`,
    ),
    /permission denied/,
  );
});
