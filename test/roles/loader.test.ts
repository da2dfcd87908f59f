import t from 'tap';
import { seed } from '../../src/db/seed/seed.ts';
import { CORRECTING, fixture, loadFile, loadText } from '../ingest/support/loading.ts';
import { n, pinkSheet } from '../ingest/support/workbook.ts';
import { roledDatabase } from '../support/database/roles.ts';

t.test('the account of the loader may do all that loads do', async (t) => {
  const database = await roledDatabase(t);
  await seed(database.client, { reference: true });
  const client = database.as('loader');
  const rows = [['2020M01', null, n('100'), null, n('200'), n('300')]];
  const reports = [
    await loadText(t, client, 'worldbank', pinkSheet({ rows })),
    await loadFile(client, 'ecb', fixture('ecb-hist.csv')),
    await loadFile(client, 'csv', fixture('prices.csv')),
    await loadFile(client, 'ndjson', fixture('prices.ndjson')),
    await loadText(t, client, 'csv', 'code,date,mid,name\nXX-NI-1,2026-01-01,1,New\n', CORRECTING),
    await loadText(t, client, 'csv', 'code,date,mid\nXX-NI-1,2026-01-01,2\n'),
  ];
  t.strictSame(
    reports.map(({ status }) => status),
    ['applied', 'applied', 'applied', 'applied', 'applied', 'refused'],
  );
});

/** Ways to change published data or to disable the guards. */
const FORBIDDEN = [
  'update series_history set mid = 1',
  'delete from series_history',
  'insert into series_history select *, 9 from series',
  'truncate series_history',
  "insert into revision (number, committed_at, reason) values (99, now(), 'forged')",
  "update revision set reason = 'forged'",
  'delete from revision',
  "insert into revision_scope (scope, revision) values ('nickel', 1)",
  'delete from revision_scope',
  'insert into change_segment (revision, price_id) values (1, 1)',
  'update change_segment set first_seq = null',
  'delete from change_segment',
  'update load_batch set rows = 0',
  'delete from load_batch',
  'delete from load_coverage',
  'delete from price',
  'delete from product',
  'truncate series',
  "update unit_of_measure set name = 'x'",
  "update service set epoch = 'aaaa'",
  "insert into market (slug, name) values ('gold', 'Gold')",
  'select digest from api_key',
  "insert into api_key (public_id, name, digest) values ('0123456789', 'x', '\\x00')",
  'delete from api_key_scope',
  'alter table series disable trigger all',
  'alter table series_history disable trigger user',
  'set session_replication_role = replica',
  'drop trigger series_keep_updated on series',
  'create or replace function series_keep() returns trigger language plpgsql as $$ begin end $$',
  'alter function series_keep() security invoker',
  'drop table series',
  'set role prices_owner',
  'create table mine (a integer)',
  "select setval('price_id_seq', 1)",
];

t.test('the account of the loader cannot touch history, revisions, ledger or keys', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { pool } = database.as('loader');
  for (const statement of FORBIDDEN) {
    const named = statement.replace('prices_owner', `${database.prefix}_owner`);
    const failure = await pool.query(named).then(
      () => 'nothing stopped it',
      (error: Error) => error.message,
    );
    t.match(failure, /permission denied|must be owner/, statement);
  }
  await t.rejects(pool.query('update series set mid = mid + 1'), /needs a revision of its own/);
});

t.test('a trigger on a table of its own does not lend the loader the owner’s rights', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { pool } = database.as('loader');
  for (const name of ['series_keep', 'series_touch', 'seal_revision']) {
    const forging = `begin;
      create temporary table forged (like series);
      create trigger forge after update on forged referencing old table as superseded
        for each statement execute function ${name}()`;
    await t.rejects(pool.query(forging), /permission denied for function/, name);
    await pool.query('rollback');
  }
});

t.test('a temporary table of the same name has no effect', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const client = await database.as('loader').pool.connect();
  t.teardown(() => client.release(true));
  await client.query(`
    set search_path = pg_temp, public;
    create temporary table revision (number bigint, opened_by xid8);
    create temporary table price (id integer, market_id smallint, code text);
    create temporary table series_history (like public.series_history);
    insert into pg_temp.price values (999999, 1, 'XX-1')`);
  const point = `insert into public.series (price_id, date, mid, published_at, revision)
    values (999999, '2020-01-01', 1, '2020-01-01', current_revision())`;
  await client.query("begin; select open_revision('an orphan')");
  await t.rejects(client.query(point), /there is no price 999999/);
  await client.query(`rollback; begin;
    insert into pg_temp.revision values (7, pg_current_xact_id());
    select set_config('prices.revision', '7', true)`);
  await t.rejects(
    client.query('update public.series set mid = mid + 1'),
    /was not opened by this transaction/,
  );
  await client.query("rollback; begin; select open_revision('a correction')");
  await client.query(`update public.series set mid = mid, corrections = 1
    where (price_id, date) = (select price_id, date from public.series limit 1)`);
  await client.query('commit');
  const { rows } = await database.pool.query('select from public.series_history');
  t.equal(rows.length > 0, true, 'superseded rows are in the real history');
  t.equal((await client.query('select from pg_temp.series_history')).rows.length, 0);
});
