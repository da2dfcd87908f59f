import t from 'tap';
import { type Login, roleName } from '../../src/db/migrate/roles.ts';
import { fileOf, points } from '../ingest/support/loading.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';

t.test('a command with the account of another task says which account to use', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const file = await fileOf(t, points('CP-NI-0001,2026-07-02,,1,,'));
  const create = ['keys', 'create', '--name', 'a', '--scope', 'prices:*'];
  const withdraw = ['withdraw', 'CP-NI-0001', '--all', '--reason', 'a'];
  const cases: readonly [account: Login, args: readonly string[]][] = [
    ['keys', ['load', 'csv', file]],
    ['service', ['load', 'csv', file]],
    ['service', withdraw],
    ['usage', ['load', 'log']],
    ['loader', create],
    ['service', ['keys', 'revoke', 'AAAAAAAAAA', '--reason', 'a']],
    ['loader', ['keys', 'list']],
    ['loader', ['db', 'seed', '--reference']],
    ['service', ['db', 'roles']],
  ];
  const advice =
    /may not do this; name the account for this task in DATABASE_URL: prices_loader loads/;
  const check = async ([account, args]: (typeof cases)[number]): Promise<void> => {
    const what = `${args.slice(0, 2).join(' ')} as ${roleName('prices', account)}`;
    const DATABASE_URL = database.urlOf(account);
    const { code, stderr } = await prices(t, { DATABASE_URL }, ...args);
    t.equal(code, 1, what);
    t.match(stderr, advice, what);
    t.notMatch(stderr, /\n {4}at /, `${what}: no stack`);
  };
  const reader = await prices(t, { DATABASE_URL: database.urlOf('reader') }, 'load', 'log');
  t.match(reader, { code: 1, stderr: /does not see it, as prices_reader/ });
  for (let at = 0; at < cases.length; at += 2)
    await Promise.all(cases.slice(at, at + 2).map(check));
});
