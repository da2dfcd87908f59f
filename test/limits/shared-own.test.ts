import t from 'tap';
import { monotonicMs } from '../../src/limits/bucket.ts';
import { Exchange } from '../../src/limits/exchange.ts';
import { Limits, type PrincipalLimits } from '../../src/limits/limits.ts';
import { testDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';

const gate = { runningMax: 0, waitingMax: 0, waitMs: 1 };
/** A rate of a key's own, so slow that nothing comes back while a test runs. */
const OWN = { perMinute: 0.001, burst: 10, concurrent: 0 };
const MARK = { perMinute: 0.001, burst: 1_000, concurrent: 0 };

const DEFAULTS = [
  ['a much higher one', 60_000],
  ['none', 0],
] as const;

for (const [what, perMinute] of DEFAULTS) {
  t.test(
    `a key's own rate holds at an instance that never met it, the default being ${what}`,
    async (t) => {
      const { pool } = await testDatabase(t);
      const instance = (): Limits => {
        const principal: PrincipalLimits = { perMinute, burst: 1_000, concurrent: 0 };
        const limits = new Limits({ principal, failuresPerMinute: 5, gate });
        const exchange = new Exchange(pool, limits, (error) => t.error(error));
        t.teardown(() => exchange.close());
        return limits;
      };
      const [one, other] = [instance(), instance()];
      /** Takes one request of a name on both instances; returns the remainder on the second. */
      const left = (name: string): number => {
        one.takeRequest(name, MARK, monotonicMs());
        return other.takeRequest(name, MARK, monotonicMs())?.remaining ?? 0;
      };
      // Each call takes one: a smaller remainder proves that counts of the first one arrived.
      const untilExchanged = async (name: string): Promise<void> => {
        let checks = 0;
        await until('the other instance has read the first count', () => {
          checks += 1;
          return left(name) < MARK.burst - checks;
        });
      };
      await untilExchanged('before');
      const nowMs = monotonicMs();
      for (let taken = 0; taken < OWN.burst; taken += 1) one.takeRequest('key:a', OWN, nowMs);
      // This exchange also brings the count of the key, which is older.
      await untilExchanged('after');
      const verdict = other.takeRequest('key:a', OWN, monotonicMs());
      t.match(verdict, { isAllowed: false, remaining: 0 }, 'its burst was taken elsewhere');
      t.match(other.takeRequest('key:b', OWN, monotonicMs()), { isAllowed: true, remaining: 9 });
    },
  );
}
