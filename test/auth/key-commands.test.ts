import t from 'tap';
import { showKey } from '../../src/auth/keys/info.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import { testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';

t.test('the printed audit shows which scopes a key was granted', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const scopes = ['--scope', 'prices:nickel', '--scope', 'prices:copper'];
  const created = await prices(t, { DATABASE_URL }, 'keys', 'create', '--name', 'desk', ...scopes);
  t.equal(created.code, 0);
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
  const usual = await prices(t, { DATABASE_URL }, ...create);
  const text = /^limits {3}those of the service \(RATE_PER_MINUTE, 600 when not set\)$/m;
  t.match(usual.stdout, text, 'the rate that clients meet first');
});

t.test('JSON output has null for a missing limit, and no limits of the service', async (t) => {
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

t.test('times are shown to the second in UTC, with the key that replaces another', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t);
  const run = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', ...args);
  const created = await run('create', '--name', 'desk', '--scope', 'prices:*', '--json');
  const { id } = JSON.parse(created.stdout);
  const rotated = await run('rotate', id, '--expires', '2190-12-31');
  const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ';
  t.match(rotated.stderr, new RegExp(`\\nThe key ${id} works until ${time}\\.\\n$`));
  t.match(rotated.stdout, new RegExp(`^created {2}${time}\nexpires {2}2190-12-31T23:59:59Z$`, 'm'));
  const replacement = /^id {7}(\w+)$/m.exec(rotated.stdout)?.[1];
  t.match((await run('show', id)).stdout, `\nreplaced by ${replacement}\n`);
  t.match((await run('list')).stdout, new RegExp(` ${time} +never `));
  t.match((await run('audit')).stdout, new RegExp(`^${time} `, 'm'));
});

t.test('a revocation that waits for a lock ends, and names its holder', async (t) => {
  const database = await roledDatabase(t);
  const { id } = await createKey(database.db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const revoke = (DATABASE_URL: string) =>
    prices(t, { DATABASE_URL }, 'keys', 'revoke', id, '--reason', 'leaked', '--json');
  // A database of the same template: its tables have the same numbers.
  const other = await testDatabase(t);
  const outcomes = await inTransaction(database.pool, async (holder) => {
    await holder.query("set local application_name = 'pgAdmin 4'");
    await holder.query('select from api_key for update');
    const { rows } = await holder.query('select pg_backend_pid() as pid, current_user as name');
    const holding = `process ${rows[0].pid} \\(account ${rows[0].name}, pgAdmin 4`;
    const named = `the keys were locked for 5 s by ${holding}`;
    const both = await inTransaction(other.pool, async (unrelated) => {
      await unrelated.query('lock table api_key in share row exclusive mode');
      return Promise.all([revoke(database.url), revoke(database.urlOf('keys'))]);
    });
    return { named, both };
  });
  const { named, both } = outcomes;
  t.match(both[0], {
    code: 4,
    stdout: '',
    stderr: new RegExp(`${named}, since 20\\S+Z\\); nothing`),
  });
  t.match(both[1], { code: 4, stdout: '', stderr: new RegExp(`${named}[,)][^;]*; nothing`) });
  t.match(await showKey(database.db, id), { status: 'active' });
  t.match(await revoke(database.urlOf('keys')), { code: 0 });
});
