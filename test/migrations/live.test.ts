import t from 'tap';
import { migrateDown, migrateUp, migrationStatus } from '../../src/db/migrate.ts';
import { CORRECTING, fixture, loadFile } from '../ingest/support.ts';
import { checkBounds, tellFigures } from '../support/faults.ts';
import { within } from '../support/figures.ts';
import { type Migrations, migrationsWith, type Step } from '../support/migrations.ts';
import { type RoledDatabase, roledDatabase, serviceClient } from '../support/roles.ts';
import { serviceOn } from '../support/service.ts';
import { type Listening, listening, until } from '../support/sockets.ts';
import { type Steady, steadily } from '../support/steady.ts';

type Test = Parameters<typeof roledDatabase>[0];
type Checks = Pick<typeof t, 'same' | 'ok' | 'comment'>;

/** Small questions and large ones, of now and of the past. */
const QUESTIONS = [
  ['/v3/prices/nickel', {}],
  ['/v3/prices/nickel', { options: { includeSeries: true, includeSummary: true } }],
  ['/v3/prices/copper', { options: { currency: 'EUR', unitOfMeasure: 'lb', includeSeries: true } }],
  ['/v3/prices/lithium', { filters: { dateFrom: '2026-01-01' }, options: { includeSeries: true } }],
] as const;

/** A service on sockets, and somebody who asks it all the time. */
async function busyService(t: Test, database: RoledDatabase): Promise<Steady> {
  const client = serviceClient(t, database);
  return asked(t, await listening(t, { ...database, client }));
}

/** Somebody who asks a service all the time, once it is warm. */
async function asked(t: Test, service: Listening): Promise<Steady> {
  const asking = steadily(t, service, QUESTIONS);
  await asking.next(60);
  asking.mark();
  return asking;
}

/** All were answered, and hardly any later than before. */
async function noneFailed(t: Checks, asking: Steady): Promise<void> {
  await asking.next(20);
  const { sent, failed, before, since } = await asking.stop();
  const longer = within(Math.max(0, since.p99Ms - before.p99Ms), 1_000);
  const figures = { 'p99 more while it is migrated': longer };
  tellFigures('F43', { requests: sent, failed: failed.length, ...figures });
  checkBounds(t, figures);
  t.same(failed, [], `none of ${sent} requests failed`);
  const times = [before.p99Ms, since.p99Ms, since.longestMs].map(Math.round).join(', ');
  t.comment(`p99 before, p99 and longest while it was migrated: ${times} ms`);
}

/** Brings the schema to the oldest form on which this version answers; returns what is left. */
async function oldestOf(t: Test, database: RoledDatabase): Promise<string[]> {
  const migrator = database.as('migrator');
  while ((await migrateDown(migrator.db, { loseData: true })) !== '0002-changes');
  for (;;) {
    const left = (await migrationStatus(migrator.db)).filter(({ state }) => state === 'pending');
    const [next] = left;
    const answers = await serviceOn(t, { ...database, client: serviceClient(t, database) })
      .then((service) => service.post('nickel', {}))
      .then(({ status }) => status === 200)
      .catch(() => false);
    if (answers || !next) return left.map(({ name }) => name);
    await migrateUp(migrator.db, { until: next.name });
  }
}

t.test(
  'no request fails from the oldest schema that this version can use, to its own',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const pending = await oldestOf(t, database);
    const asking = await busyService(t, database);
    t.same(await migrateUp(database.as('migrator').db, { triesMax: 1_000 }), pending);
    await noneFailed(t, asking);
  },
);

/** What a later version may do to the schema: everything that this version need not know of. */
const EXPANSION: Readonly<Record<string, Step>> = {
  '0101-column': {
    // With no writer on its way, column, history and the function that keeps it change as one.
    up: `
      select lock_revisions();;
      alter table price add column rank integer;;
      alter table price_history add column rank integer;;
      do $do$
      declare
        columns text := (select string_agg(quote_ident(attname), ', ' order by attnum)
          from pg_attribute where attrelid = 'price'::regclass and attnum > 0 and not attisdropped);
      begin
        execute format($f$
          create or replace function price_keep() returns trigger language plpgsql
            security definer set search_path = pg_catalog, public, pg_temp as $$
          begin
            insert into price_history (%1$s, revision_to)
              select %1$s, current_revision() from superseded where revision < current_revision();
            return null;
          end $$
        $f$, columns);
      end $do$;;
      create function price_ranked_at(at bigint) returns table (id integer, rank integer)
        language sql stable parallel safe
      begin atomic
        select id, rank from price where revision <= at
        union all
        select id, rank from price_history where revision <= at and revision_to > at;
      end`,
  },
  '0102-check': {
    up: 'alter table price add constraint price_rank check (rank > 0) not valid',
  },
  '0103-validated': { up: 'alter table price validate constraint price_rank' },
  '0104-index': {
    up: `drop index concurrently if exists series_published;;
      create index concurrently series_published on series (published_at)`,
    transaction: false,
  },
  '0105-table': {
    up: `create table price_note (price_id integer references price (id), note text not null)`,
  },
  '0106-not-null': {
    up: `alter table load_batch add column host text not null default 'unknown'`,
  },
};

t.test('this version works on the schema of the next, which comes while it works', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const migrator = database.as('migrator');
  const { url: folder } = await migrationsWith(t, EXPANSION);
  const client = serviceClient(t, database);
  const service = await listening(t, { ...database, client });
  const answers = () =>
    Promise.all(
      QUESTIONS.map(async ([path, body]) => {
        const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, {
          method: 'POST',
          headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        return [answer.status, await answer.text()];
      }),
    );
  const before = await answers();
  const asking = await asked(t, service);
  t.same(await migrateUp(migrator.db, { folder, triesMax: 1_000 }), Object.keys(EXPANSION));
  await noneFailed(t, asking);
  t.same(await answers(), before, 'and it answers the same, to the byte');
  await until('a database that is ahead is ready', async () => {
    return (await fetch(`http://127.0.0.1:${service.port}/ready`)).status === 200;
  });
  const loaded = await loadFile(database.as('loader'), 'csv', fixture('prices.csv'), CORRECTING);
  t.equal(loaded.status, 'applied', 'and this version loads into it');
});

/** Somebody who reads a table, or writes to it, and does not come to an end. */
async function holder(t: Test, database: RoledDatabase, mode: string) {
  const session = await database.pool.connect();
  t.teardown(() => session.release(true));
  await session.query(`begin; lock table series in ${mode} mode`);
  return session;
}

async function blockedMigration(t: Test): Promise<Migrations> {
  return migrationsWith(t, {
    '0101-strong': { up: 'alter table series set (fillfactor = 90)' },
    '0102-stronger': { up: 'alter table series alter column batch_id set default null' },
  });
}

t.test('a table in use: the migration tries again, and readers pass it by', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { url: folder } = await blockedMigration(t);
  const session = await holder(t, database, 'access share');
  const asking = await busyService(t, database);
  const tried = Promise.withResolvers<void>();
  const onWait = (tries: number): void => {
    if (tries === 3) tried.resolve();
  };
  const patience = { onWait, triesMax: 1_000 };
  const migrating = migrateUp(database.as('migrator').db, { folder, ...patience });
  await tried.promise;
  await noneFailed(t, asking);
  await session.query('commit');
  t.same(await migrating, ['0101-strong', '0102-stronger']);
});

t.test('a table that stays in use: the migration gives up and says who uses it', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { url: folder } = await blockedMigration(t);
  await holder(t, database, 'access share');
  const migrator = database.as('migrator');
  const failure = await migrateUp(migrator.db, { folder, triesMax: 2 }).then(
    () => 'it came through',
    (error: Error) => `${error.name}: ${error.message}`,
  );
  t.match(
    failure,
    /^LockedOutError: a table was locked each of 2 times, perhaps by process \d+ \(/,
  );
  t.match(failure, /, commodity-prices test\)/);
  const { rows } = await migrator.pool.query('show lock_timeout');
  t.same(rows, [{ lock_timeout: '0' }], 'its connection is as before');
});
