import pg from 'pg';
import t from 'tap';
import { type Client, openClient } from '../../src/db/client.ts';
import { roleName } from '../../src/db/migrate/roles.ts';
import { numberOf, revisionAsOf } from '../../src/db/revisions.ts';
import { undo } from '../../src/ingest/ledger/undo.ts';
import { withdraw } from '../../src/ingest/ledger/withdraw.ts';
import type { TestDatabase } from '../support/database/database.ts';
import { failureOf, inTransaction } from '../support/database/minimal-data.ts';
import { accountPrefix, addressAs, clientAs, roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';
import {
  describePrices,
  fileOf,
  loadingDatabase,
  loadText,
  points,
  stateOf,
} from './support/loading.ts';

const ADVISORY = [7130541502, 7130541503, 7130541504].flatMap((key) => [
  `select pg_advisory_lock(${key})`,
  `select pg_advisory_lock_shared(${key})`,
]);

/** Locks available to a read-only account; PREPARE needs no privilege. */
const LOCKS_OF_READERS = [
  'lock table write_lock, seal_lock, revision, series in access share mode',
  ...['write_lock', 'seal_lock', 'revision', 'series'].flatMap((table) => [
    `prepare ${table}_1 as select from ${table} for update`,
    `prepare ${table}_2 as insert into ${table} default values`,
    `prepare ${table}_3 as delete from ${table}`,
  ]),
];

/** Locks that it must not get. */
const REFUSED = [
  'lock table write_lock in row share mode',
  'lock table write_lock in share update exclusive mode',
  'lock table seal_lock in share update exclusive mode',
  'select lock_revisions()',
  'select from write_lock for update',
  'comment on table write_lock is null',
];

/** Runs a function in a session of a read-only account. */
async function asReader(
  test: Pick<typeof t, 'teardown'>,
  { url, pool }: TestDatabase,
  work: (session: pg.Client) => Promise<void>,
): Promise<void> {
  const account = roleName(accountPrefix(test), 'service');
  await pool.query(`create role "${account}" login password 'a-password';
    grant select on all tables in schema public to "${account}"`);
  const session = new pg.Client({ connectionString: addressAs(url, account, 'a-password') });
  await session.connect();
  try {
    await work(session);
  } finally {
    await session.end();
    await pool.query(`drop owned by "${account}"`);
  }
}

/** A client with this lock timeout. */
function waiting(test: Pick<typeof t, 'teardown'>, url: string, lockTimeoutMs: number): Client {
  const client = openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    lockTimeoutMs,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });
  test.teardown(() => client.close());
  return client;
}

t.test('an account that only reads cannot stop a load, whatever it locks', async (t) => {
  const database = await loadingDatabase(t);
  const { client, db, pool } = database;
  await describePrices(client, 'A');
  await asReader(t, database, async (session) => {
    for (const each of REFUSED) {
      await session.query('begin');
      const outcome = await session.query(each).then(
        () => 'the statement succeeded',
        ({ message }) => message,
      );
      t.match(outcome, /permission denied|must be owner/, each);
      await session.query('rollback');
    }
    for (const each of ADVISORY) await session.query(each);
    await session.query('begin');
    for (const each of LOCKS_OF_READERS) await session.query(each);
    const held = await session.query(
      `select from pg_locks where pid = pg_backend_pid() and mode = 'RowExclusiveLock'`,
    );
    t.ok(held.rows.length >= 4, 'PREPARE holds them to the end of the transaction');
    const loader = waiting(t, database.url, 10_000);
    t.match(await loadText(t, loader, 'csv', points('A,2026-01-01,,1,,')), { status: 'applied' });
    const { rows } = await pool.query(
      `select clock_timestamp() - interval '1 microsecond' as now, max(number) as newest
        from revision`,
    );
    const found = await revisionAsOf(db, rows[0].now);
    t.equal(found && numberOf(found), rows[0].newest, 'and readers are answered');
  });
});

t.test('if a superuser created the accounts, readers cannot take advisory locks', async (t) => {
  const { pool } = (await roledDatabase(t)).as('service');
  for (const each of ADVISORY) {
    t.match((await failureOf(pool.query(each))).message, /permission denied for function/);
  }
});

t.test('a writer that waits says who holds the lock, and fails after its timeout', async (t) => {
  const { client, pool, url } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const loaded = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  const state = await stateOf(pool);
  const who = /process \d+ \(account \w+, commodity-prices test, since 20\d\d-.*Z\)/;
  const locked = { name: 'LockedOutError', message: who };
  const text = points('A,2026-01-02,,2,,');
  const file = await fileOf(t, text);
  await inTransaction(pool, async (writer) => {
    await writer.query('select lock_revisions()');
    const held: string[] = [];
    const onHeld = (holders: string) => held.push(holders);
    await t.rejects(loadText(t, waiting(t, url, 2_300), 'csv', text, { onHeld }), locked);
    t.equal(held.length, 1, 'the holder was reported before');
    t.match(held[0], who);
    const common = { actor: 'a test', reason: 'a test' };
    const soon = waiting(t, url, 100);
    await t.rejects(undo(soon, { batch: loaded.batch ?? 0, ...common }), locked);
    const selection = { code: 'A', dates: ['2026-01-01'] };
    await t.rejects(withdraw(soon, { selection, ...common }), locked);
    const env = { DATABASE_URL: url, LOAD_LOCK_TIMEOUT_MS: '100' };
    const command = await prices(t, env, 'load', 'csv', file);
    t.equal(command.code, 4, command.stderr);
    t.match(command.stderr, /another writer did not end within 0.1 s: process \d+ \(account /);
    await writer.query('select pg_advisory_xact_lock(7130541504)');
    const migrate = await prices(t, env, 'db', 'migrate');
    t.equal(migrate.code, 4, migrate.stderr);
    t.match(
      migrate.stderr,
      /the lock for changes of schema and accounts is held by process \d+ \(/,
    );
  });
  t.equal(await stateOf(pool), state);
  t.match(await loadText(t, waiting(t, url, 100), 'csv', text), { status: 'applied' });
});

t.test('sessions of our own may be idle for hours, whatever the account says', async (t) => {
  const { pool, url } = await loadingDatabase(t);
  await pool.query(
    `do $$ begin execute format('alter database %I set idle_session_timeout = ''1s''',
      current_database()); end $$`,
  );
  const { rows } = await clientAs(t, url).pool.query('show idle_session_timeout');
  t.same(rows, [{ idle_session_timeout: '0' }]);
});
