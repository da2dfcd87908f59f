import t from 'tap';
import { Limits } from '../../src/limits/limits.ts';
import { Exchange } from '../../src/limits/shared.ts';
import { testDatabase } from '../support/database.ts';

const SETTINGS = {
  principal: { perMinute: 60, burst: 10, concurrent: 0 },
  failuresPerMinute: 5,
  gate: { runningMax: 0, waitingMax: 0, waitMsMax: 1 },
};
const OWN = SETTINGS.principal;

/** Waits until something holds; the exchange has a second's rhythm. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(async () => {
    if (!(await holds())) return;
    clearInterval(timer);
    resolve();
  }, 20);
  await promise;
}

t.test(
  'what one instance counts, the others count as well; one that comes later starts clean',
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
    // Both have looked once before anything is counted.
    await until(async () => {
      one.takeRequest('warm', OWN, Date.now());
      const { rows } = await pool.query(`select from rate_usage where name = 'p warm'`);
      return rows.length > 0;
    });
    await until(() => (other.takeRequest('probe', OWN, Date.now())?.remaining ?? 0) < 10);
    const nowMs = Date.now();
    for (let taken = 0; taken < 10; taken += 1) one.takeRequest('key:a', OWN, nowMs);
    for (let failed = 0; failed < 5; failed += 1) one.countFailure('192.0.2.1', nowMs);
    t.equal(one.takeRequest('key:a', OWN, nowMs)?.isAllowed, false);
    await until(() => other.failedTooOften('192.0.2.1', nowMs) !== null);
    t.equal(other.takeRequest('key:a', OWN, nowMs)?.isAllowed, false, 'the limits hold together');
    const late = instance();
    await until(() => exchanges.length === 3);
    t.equal(late.takeRequest('key:a', OWN, Date.now())?.isAllowed, true);
  },
);

t.test('a store that fails leaves each instance its own limits, and is told once', async (t) => {
  const { pool } = await testDatabase(t);
  const told: (Error | null)[] = [];
  await pool.query('alter table rate_usage rename to elsewhere');
  const limits = new Limits(SETTINGS);
  const exchange = new Exchange(pool, limits, (error) => told.push(error));
  t.teardown(() => exchange.close());
  await until(() => told.length > 0);
  t.match(told, [/rate_usage/]);
  for (let taken = 0; taken < 10; taken += 1) limits.takeRequest('key:a', OWN, Date.now());
  t.equal(limits.takeRequest('key:a', OWN, Date.now())?.isAllowed, false);
  await pool.query('alter table elsewhere rename to rate_usage');
  await until(() => told.length > 1);
  t.equal(told[1], null, 'and that it works again');
});
