import type pg from 'pg';
import t from 'tap';
import { monotonicMs } from '../../src/limits/bucket.ts';
import { Exchange } from '../../src/limits/exchange.ts';
import { Limits } from '../../src/limits/limits.ts';
import { testDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';

const SETTINGS = {
  principal: { perMinute: 6, burst: 10, concurrent: 0 },
  failuresPerMinute: 5,
  gate: { runningMax: 0, waitingMax: 0, waitMs: 1 },
};
const OWN = SETTINGS.principal;
/** The rate of names that send continuously. */
const OFTEN = { perMinute: 6_000, burst: 1_000, concurrent: 0 };

/** Waits until an instance has read the counts of the others. */
async function untilExchanged(pool: pg.Pool, limits: Limits, name: string): Promise<void> {
  const countInTable = async (): Promise<number> => {
    limits.takeRequest(name, OFTEN, monotonicMs());
    const text = 'select taken from rate_usage where name = $1';
    const { rows } = await pool.query(text, [`p ${OFTEN.perMinute} ${name}`]);
    return Number(rows[0]?.taken ?? 0);
  };
  await until('the count is written', async () => (await countInTable()) > 0);
  const first = await countInTable();
  // An exchange writes, then reads: a second write proves a read.
  await until('the next count is written', async () => (await countInTable()) > first);
}

t.test(
  'counts of one instance reach the others; a later instance starts without counts',
  async (t) => {
    const { pool } = await testDatabase(t);
    const exchanges: Exchange[] = [];
    const instance = (): Limits => {
      const limits = new Limits(SETTINGS);
      exchanges.push(new Exchange(pool, limits, (error) => t.error(error)));
      return limits;
    };
    t.teardown(() => Promise.all(exchanges.map((each) => each.close())));
    const [one, other] = [instance(), instance()];
    await Promise.all([untilExchanged(pool, one, 'one'), untilExchanged(pool, other, 'other')]);
    const nowMs = monotonicMs();
    for (let taken = 0; taken < 10; taken += 1) one.takeRequest('key:a', OWN, nowMs);
    for (let failed = 0; failed < 5; failed += 1) one.countFailure('192.0.2.1', nowMs);
    t.equal(one.takeRequest('key:a', OWN, nowMs)?.isAllowed, false);
    await until(
      'the other instance knows the failures',
      () => other.failureWaitSeconds('192.0.2.1', nowMs) !== null,
    );
    t.equal(other.takeRequest('key:a', OWN, nowMs)?.isAllowed, false, 'the limits hold together');
    const late = instance();
    await untilExchanged(pool, late, 'late');
    t.equal(late.takeRequest('key:a', OWN, monotonicMs())?.isAllowed, true);
  },
);

t.test(
  'if the store fails, each instance enforces its own limits, and the failure is reported once',
  async (t) => {
    const { pool } = await testDatabase(t);
    const failures: (Error | null)[] = [];
    await pool.query('alter table rate_usage rename to elsewhere');
    const limits = new Limits(SETTINGS);
    const exchange = new Exchange(pool, limits, (error) => failures.push(error));
    t.teardown(() => exchange.close());
    await until('the failure is reported', () => failures.length > 0);
    t.match(failures, [/rate_usage/]);
    const nowMs = monotonicMs();
    for (let taken = 0; taken < 10; taken += 1) limits.takeRequest('key:a', OWN, nowMs);
    t.equal(limits.takeRequest('key:a', OWN, nowMs)?.isAllowed, false);
    await pool.query('alter table elsewhere rename to rate_usage');
    await until('the recovery is reported', () => failures.length > 1);
    t.equal(failures[1], null, 'and that it works again');
  },
);
