import t from 'tap';
import { migrateUp } from '../../src/db/migrate/migrate.ts';
import { CORRECTING, fixture, loadFile } from '../ingest/support/loading.ts';
import { type Migrations, migrationsWith } from '../support/database/migrations.ts';
import { type RoledDatabase, roledDatabase, serviceClient } from '../support/database/roles.ts';
import { type ClosedLoopLoad, startClosedLoop } from '../support/http/closed-loop-load.ts';
import { type ListeningService, startListening, until } from '../support/http/sockets.ts';
import { within } from '../support/process/figures.ts';
import { checkBounds, recordFigures } from '../support/run/faults.ts';
import { EXPANSION } from './expansion.ts';

type Test = Parameters<typeof roledDatabase>[0];
type Checks = Pick<typeof t, 'same' | 'ok' | 'comment'>;

/** Small questions and large ones, of now and of the past. */
const QUESTIONS = [
  ['/v3/prices/nickel', {}],
  ['/v3/prices/nickel', { options: { includeSeries: true, includeSummary: true } }],
  ['/v3/prices/copper', { options: { currency: 'EUR', unitOfMeasure: 'lb', includeSeries: true } }],
  ['/v3/prices/lithium', { filters: { dateFrom: '2026-01-01' }, options: { includeSeries: true } }],
] as const;

/** A service on sockets under continuous load. */
async function busyService(t: Test, database: RoledDatabase): Promise<ClosedLoopLoad> {
  const client = serviceClient(t, database);
  return runLoad(t, await startListening(t, { ...database, client }));
}

/** Starts a continuous load on a warm service. */
async function runLoad(t: Test, service: ListeningService): Promise<ClosedLoopLoad> {
  const asking = startClosedLoop(t, service, QUESTIONS);
  await asking.next(60);
  asking.mark();
  return asking;
}

/** All were answered, and hardly any later than before. */
async function noneFailed(t: Checks, asking: ClosedLoopLoad): Promise<void> {
  await asking.next(20);
  const { sent, failed, before, since } = await asking.stop();
  const longer = within(Math.max(0, since.p99Ms - before.p99Ms), 1_000);
  const figures = { 'p99 increase during the migration': longer };
  recordFigures('F43', { requests: sent, failed: failed.length, ...figures });
  checkBounds(t, figures);
  t.same(failed, [], `none of ${sent} requests failed`);
  const times = [before.p99Ms, since.p99Ms, since.longestMs].map(Math.round).join(', ');
  t.comment(`p99 before, p99 and longest while it was migrated: ${times} ms`);
}

t.test('this version works on the schema of the next, which comes while it works', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const migrator = database.as('migrator');
  const { url: folder } = await migrationsWith(t, EXPANSION);
  const client = serviceClient(t, database);
  const service = await startListening(t, { ...database, client });
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
  const asking = await runLoad(t, service);
  t.same(await migrateUp(migrator.db, { folder, attemptsMax: 1_000 }), Object.keys(EXPANSION));
  await noneFailed(t, asking);
  t.same(await answers(), before, 'and it answers the same, to the byte');
  await until('a database that is ahead is ready', async () => {
    return (await fetch(`http://127.0.0.1:${service.port}/ready`)).status === 200;
  });
  const loaded = await loadFile(database.as('loader'), 'csv', fixture('prices.csv'), CORRECTING);
  t.equal(loaded.status, 'applied', 'and this version loads into it');
});

/** A session with an endless read of or write to a table. */
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
  const patience = { onWait, attemptsMax: 1_000 };
  const migrating = migrateUp(database.as('migrator').db, { folder, ...patience });
  await tried.promise;
  await noneFailed(t, asking);
  await session.query('commit');
  t.same(await migrating, ['0101-strong', '0102-stronger']);
});

t.test('a table that stays in use: the migration fails and says who uses it', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { url: folder } = await blockedMigration(t);
  await holder(t, database, 'access share');
  const migrator = database.as('migrator');
  const failure = await migrateUp(migrator.db, { folder, attemptsMax: 2 }).then(
    () => 'the migration succeeded',
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
