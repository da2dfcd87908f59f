import t from 'tap';
import type { Market } from '../../src/catalog/markets.ts';
import { marketOf } from '../../src/catalog/markets.ts';
import { checkRevision } from '../../src/db/newest-revision.ts';
import { revisionAsOf } from '../../src/db/revisions.ts';
import { optionsOf } from '../../src/prices/plan/options.ts';
import { type SnapshotPlan, snapshotReader } from '../../src/prices/snapshot.ts';
import { testDatabase } from '../support/database/database.ts';
import { failureOf } from '../support/database/minimal-data.ts';
import { logStatements } from '../support/database/statement-log.ts';
import { serviceOn } from '../support/http/service.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';

/** A request for nickel at an instant. */
const planAt = (asOf: string, after: string | null = null): SnapshotPlan => ({
  market: marketOf('nickel') as Market,
  options: optionsOf({ asOf }),
  page: { limit: null, after: after === null ? null : { revision: after, code: 'X' } },
});

t.test('a past instant is looked up once, until a known revision is gone', async (t) => {
  const { db, pool } = await testDatabase(t, { seeded: true });
  const client = await pool.connect();
  const newest = await checkRevision(client as never, null);
  client.release();
  let lookups = 0;
  const snapshot = snapshotReader(db, 'ECB', (own, instant) => {
    lookups += 1;
    return revisionAsOf(own, instant);
  });
  const { rows } = await pool.query('select max(committed_at) as at from revision');
  const instant = new Date(rows[0].at).toISOString().replace('Z', '999Z');
  const plan = planAt(instant);
  const first = await snapshot(plan, newest);
  t.same(await snapshot(plan, newest), first);
  t.same(await snapshot(plan, { ...newest, order: newest.order + 1 }), first, 'a later revision');
  t.equal(lookups, 1);
  await snapshot(plan, { ...newest, history: newest.history + 1 });
  t.equal(lookups, 2, 'a server without a known revision took over');
  const walk = failureOf(snapshot(planAt(instant, 'other.1'), newest));
  t.match(await walk, { code: 'invalid_cursor' }, 'a cursor of another revision');
});

t.test('a repeated request for the past asks the database for nothing but points', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const statements = logStatements(database.pool);
  const service = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
  const { rows } = await database.pool.query('select clock_timestamp() as at');
  const asOf = new Date(rows[0].at).toISOString();
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0002', ['2026-08-01', null, '1', null]),
  );
  const ask = async (options: object) => {
    const body = { filters: { codes: ['CP-NI-0002'] }, options: { asOf, ...options } };
    return (await service.post('nickel', body)).text;
  };
  const [records, series] = [await ask({}), await ask({ includeSeries: true })];
  await ask({});
  statements.length = 0;
  t.equal(await ask({}), records);
  t.same(statements, []);
  t.equal(await ask({ includeSeries: true }), series);
  t.equal(statements.length, 1);
});
