import t from 'tap';
import { RULES } from '../../src/verify/verify.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';

const names = RULES.map(({ name }) => name);

t.test('the account of the service verifies, and the exit code says what came of it', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const verify = (...args: string[]) =>
    prices(t, { DATABASE_URL: database.urlOf('service') }, 'db', 'verify', ...args);
  const clean = await verify();
  // On a slow machine the command prints its progress.
  t.match(clean, { code: 0, stderr: /^Database: .+\n(\d+ of \d+: .+\n)*$/ });
  t.match(clean.stdout, new RegExp(`^${RULES.length} rules looked at, none is broken \\(revision`));
  const { rows } = await database.pool.query('select revision_text(3) as revision');
  await inTransaction(database.pool, async (client) => {
    await client.query('set local session_replication_role = replica');
    await client.query(`update series set corrections = 7 where date = '2026-01-30'`);
    await client.query('alter table price disable trigger price_stamp');
  });
  const json = await verify('--json');
  t.equal(json.code, 1);
  const report = JSON.parse(json.stdout);
  t.equal(report.revision, rows[0].revision);
  t.same(
    report.rules.map(({ rule }: { rule: string }) => rule),
    names,
  );
  const broken = report.rules.filter(({ count }: { count: number }) => count > 0);
  t.match(broken, [
    { rule: 'in-force', count: 1, rows: [{ what: 'trigger price.price_stamp' }] },
    { rule: 'corrections-counted', rows: { length: 20 } },
  ]);
  const counted = broken[1].count;
  t.ok(counted > 20);
  const text = await verify('--rule', 'corrections-counted', '--rule', 'history-whole');
  t.equal(text.code, 1);
  t.match(text.stdout, `corrections-counted: broken by ${counted}\n`);
  t.match(text.stdout, /\n {2}– price_id \d+ · date 2026-01-30 · revision \d+ · corrections 7/);
  t.match(text.stdout, `\n  – and ${counted - 20} more\n`);
  t.match(text.stdout, /\n2 rules looked at, 1 broken \(revision /);
  t.equal((await verify('--rule', 'history-whole')).code, 0);
});

t.test('rules are listed, and a name that is none is refused', async (t) => {
  const list = await prices(t, {}, 'db', 'verify', '--list', '--json');
  t.equal(list.code, 0);
  t.same(
    JSON.parse(list.stdout),
    RULES.map(({ name, meaning }) => ({ name, meaning })),
  );
  const wrong = await prices(t, {}, 'db', 'verify', '--rule', 'histoy-whole');
  t.match(wrong, { code: 2, stderr: /no such rule; did you mean history-whole\?/ });
});

t.test('each rule has a name of its own and says in sentences what holds', (t) => {
  t.equal(new Set(names).size, names.length);
  for (const { name, meaning } of RULES) {
    t.match(name, /^[a-z]+(-[a-z]+)+$/);
    t.match(meaning, /^[A-Z].*\.$/);
  }
  t.end();
});
