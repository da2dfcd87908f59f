import { dirname } from 'node:path';
import t from 'tap';
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

t.test('a folder to be scanned for keys is refused by its name', async (t) => {
  const folder = dirname(await dataFolder(t));
  const { code, stderr } = await prices(t, {}, 'keys', 'scan', folder);
  t.equal(code, 1);
  t.equal(stderr, `commodity-prices: cannot use ${folder}: it is a folder (EISDIR)\n`);
});
