import t from 'tap';
import { applyRoles, roleName } from '../../src/db/migrate/roles.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { findings } from '../verify/support.ts';

t.test('the reader reads every view, and nothing else', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { pool } = database.as('reader');
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'published'::regnamespace and relkind = 'v' order by relname`,
  );
  const views = rows.map(({ name }) => name);
  const known = ['change', 'point', 'point_version', 'price', 'rate', 'revision', 'vat_rate'];
  t.same(views, known);
  for (const view of views) {
    // Without the schema: it is the search path of the account.
    const found = await pool.query(`select * from ${view} limit 1`);
    t.equal(found.rows.length, 1, view);
    for (const change of [`delete from ${view}`, `insert into ${view} select * from ${view}`]) {
      await t.rejects(
        pool.query(`begin read write; ${change}`),
        /permission denied|cannot/,
        change,
      );
      await pool.query('rollback');
    }
  }
  t.equal((await pool.query('select * from point_asof(1000) limit 1')).rows.length, 1);
  const tables = await database.pool.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')`,
  );
  t.ok(tables.rows.length > 20);
  for (const { name } of tables.rows) {
    await t.rejects(pool.query(`select from public.${name}`), /permission denied/, name);
  }
  await t.rejects(pool.query('select * from public.price_at(1)'), /permission denied/);
  await t.rejects(pool.query('select open_revision(null)'), /does not exist|permission denied/);
  await t.rejects(pool.query('create temp table a ()'), /permission denied|read-only/);
  await t.rejects(database.as('service').pool.query('select from published.point'), /permission/);
});

t.test(
  'db verify finds a right that the reader should not have, and one that is missing',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const reader = roleName(database.prefix, 'reader');
    const keys = roleName(database.prefix, 'keys');
    const { pool } = database;
    t.strictSame(await findings(database.client), [], 'as db roles made them');
    const wrong: [string, object][] = [
      [`grant select on series to ${reader}`, { what: 'public.series', account: reader }],
      [`grant select (digest) on api_key to ${reader}`, { what: 'public.api_key.digest' }],
      [`grant update on published.rate to ${reader}`, { what: 'published.rate', right: 'UPDATE' }],
      [`grant select on published.price to ${keys}`, { what: 'published.price', account: keys }],
      ['grant select on published.price to public', { what: 'published.price' }],
      [`revoke select on published.point from ${reader}`, { what: 'published.point' }],
      [`revoke usage on schema published from ${reader}`, { what: 'schema published' }],
      [
        `revoke execute on function published.point_asof(bigint) from ${reader}`,
        { what: 'published.point_asof(bigint)' },
      ],
      [`grant ${roleName(database.prefix, 'owner')} to ${reader}`, { account: reader }],
    ];
    for (const [statement, row] of wrong) {
      await pool.query(statement);
      t.match(
        await findings(database.client),
        [{ rule: 'reader-confined', rows: [row] }],
        statement,
      );
      if (statement.startsWith('grant') && statement.includes('owner')) {
        await pool.query(`revoke ${roleName(database.prefix, 'owner')} from ${reader}`);
      }
      if (statement.includes('(digest)'))
        await pool.query(`revoke select (digest) on api_key from ${reader}`);
      await applyRoles(database.db, database.prefix);
      t.strictSame(await findings(database.client), [], 'db roles restores the rights');
    }
  },
);

t.test('the reader needs nothing of the schema public', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  await database.pool.query('revoke usage on schema public from public');
  t.strictSame(await findings(database.client), [], 'the other accounts have the right themselves');
  t.equal((await database.as('reader').pool.query('select * from point limit 1')).rows.length, 1);
});
