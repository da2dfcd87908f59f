import type pg from 'pg';
import t from 'tap';
import { utcMicroseconds } from '../../src/db/instant.ts';
import { numberOf, revisionAsOf } from '../../src/db/revisions.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  failureOf,
  inRevision,
  insertOf,
  inTransaction,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';

t.test('an instant is brought to UTC and to the microsecond, never rounded up', async (t) => {
  for (const [sent, wanted] of Object.entries({
    '2026-03-05T16:00:00Z': '2026-03-05T16:00:00.000000Z',
    '2026-03-05t16:00:00.5z': '2026-03-05T16:00:00.500000Z',
    '2026-03-05T16:00:00.1234569999+00:00': '2026-03-05T16:00:00.123456Z',
    '2026-03-05T23:59:59.999999999Z': '2026-03-05T23:59:59.999999Z',
    '2026-01-01T00:30:00+01:00': '2025-12-31T23:30:00.000000Z',
    '2026-03-05T16:00:00-23:59': '2026-03-06T15:59:00.000000Z',
    '2016-12-31T23:59:60.25Z': '2017-01-01T00:00:00.250000Z',
    '2017-01-01T09:59:60+10:00': '2017-01-01T00:00:00.000000Z',
    '0000-01-01T00:00:00+23:59': '1970-01-01T00:00:00.000000Z',
    '1969-12-31T23:59:59Z': '1970-01-01T00:00:00.000000Z',
  })) {
    t.equal(utcMicroseconds(sent), wanted, sent);
  }
  for (const bad of ['', 'now', '2026-03-05', '2026-03-05T16:00:00']) {
    t.throws(() => utcMicroseconds(bad), /instant/, bad);
  }
});

/** The revision number at an instant; null in the future. */
const numberAsOf = async (db: Parameters<typeof revisionAsOf>[0], at: string) => {
  const revision = await revisionAsOf(db, at);
  return revision && numberOf(revision);
};

const times = async (pool: pg.Pool): Promise<{ number: string; at: string; before: string }[]> => {
  const text = (of: string) =>
    `to_char((${of}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
  const { rows } = await pool.query(
    `select number, ${text('committed_at')} as at,
      ${text("committed_at - interval '1 microsecond'")} as before from revision order by number`,
  );
  return rows;
};

t.test('the time of a commit includes it, one microsecond before does not', async (t) => {
  const { pool, db } = await testDatabase(t);
  await writeMinimalData(pool);
  for (let day = 1; day <= 20; day += 1) {
    await inRevision(pool, insertOf('series', pointRow({ date: `'2024-02-01'::date + ${day}` })));
  }
  for (const { number, at, before } of await times(pool)) {
    t.equal(await numberAsOf(db, at), number);
    t.equal(await numberAsOf(db, before), String(Number(number) - 1));
  }
  t.equal(await numberAsOf(db, '1970-01-01T00:00:00Z'), '0', 'before the first');
});

t.test('a future instant is refused by the clock of the database', async (t) => {
  const { pool, db } = await testDatabase(t);
  const { rows } = await pool.query(
    `select (clock_timestamp() + interval '1 hour')::text as later, clock_timestamp()::text as now`,
  );
  t.equal(await numberAsOf(db, rows[0].later), null);
  t.equal(await numberAsOf(db, rows[0].now), '0', 'nothing was ever committed');
});

/** Resolves when a session waits for a commit that another one has begun. */
const someoneWaits = (pool: pg.Pool): Promise<void> =>
  until('someone waits', async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity
        where datname = current_database() and wait_event = 'PgSleep'`,
    );
    return rows.length > 0;
  });

t.test('an instant waits for earlier commits that are not visible yet', async (t) => {
  const { pool, db } = await testDatabase(t);
  await writeMinimalData(pool);
  // A stalled machine may exceed the short default timeout.
  await pool.query("alter function revision_as_of(timestamptz) set lock_timeout = '60s'");
  const [first] = await times(pool);
  const pending = await inTransaction(pool, async (writer) => {
    await writer.query("select open_revision('slow')");
    await writer.query(insertOf('series', pointRow()));
    const open = await writer.query('select clock_timestamp()::text as now');
    t.equal(await numberAsOf(db, open.rows[0].now), '1', 'its time is not yet written');
    // The first statement of a commit: it fixes the time of the revision.
    await writer.query('set constraints all immediate');
    const sealed = await writer.query('select clock_timestamp()::text as now');
    t.equal(await numberAsOf(db, first?.at ?? ''), '1', 'a settled instant does not wait');
    const answer = numberAsOf(db, sealed.rows[0].now);
    await someoneWaits(pool);
    return { answer };
  });
  t.equal(await pending.answer, '2');
});

t.test('the identity of a source of rates never changes', async (t) => {
  const { pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const { message } = await failureOf(pool.query('update fx_source set is_sample = true'));
  t.match(message, 'fx_source');
  const { rowCount } = await pool.query("update fx_source set name = 'Another name'");
  t.equal(rowCount, 1, 'but its name may');
});
