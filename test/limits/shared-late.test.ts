import { randomBytes, randomUUID } from 'node:crypto';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { configOf } from '../../src/config/config.ts';
import { monotonicMs } from '../../src/limits/bucket.ts';
import { Exchange } from '../../src/limits/exchange.ts';
import { Limits } from '../../src/limits/limits.ts';
import { NO_TOKENS, SECRET } from '../support/auth/auth-app.ts';
import { goodClaims, secretToken } from '../support/auth/tokens.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { NO_LIMITS } from '../support/http/no-limits.ts';
import { until } from '../support/http/sockets.ts';

const SETTINGS = {
  principal: { perMinute: 1, burst: 10, concurrent: 0 },
  failuresPerMinute: 5,
  gate: { runningMax: 0, waitingMax: 0, waitMs: 1 },
};
const OWN = SETTINGS.principal;
const SLOWLY = { perMinute: 0.001, burst: 1_000, concurrent: 0 };

/** Waits until the exchange of these limits has read the counts of others once more. */
async function turn(pool: TestDatabase['pool'], limits: Limits): Promise<void> {
  for (const name of ['before', 'after']) {
    const counted = `${name} ${randomUUID()}`;
    limits.takeRequest(counted, SLOWLY, monotonicMs());
    await until('the exchange has its turn', async () => {
      const { rows } = await pool.query('select from rate_usage where name = $1', [
        `p ${SLOWLY.perMinute} ${counted}`,
      ]);
      return rows.length > 0;
    });
  }
}

t.test('counts from before the start of an instance are ignored', async (t) => {
  const { pool } = await testDatabase(t);
  // An instance that runs for long, and a client that was quiet for a while.
  await pool.query(`insert into rate_usage (instance, name, taken, updated_at)
    values (gen_random_uuid(), 'p 1 key:a', 1000000, clock_timestamp() - interval '1 minute')`);
  const limits = new Limits(SETTINGS);
  const exchange = new Exchange(pool, limits, (error) => t.error(error));
  t.teardown(() => exchange.close());
  await turn(pool, limits);
  await pool.query(`update rate_usage set taken = taken + 3, updated_at = clock_timestamp()
    where name = 'p 1 key:a'`);
  await turn(pool, limits);
  const verdict = limits.takeRequest('key:a', OWN, monotonicMs());
  t.match(verdict, { isAllowed: true });
  t.ok((verdict?.remaining ?? 10) < 9, 'later counts count');
});

t.test(
  'a wait includes possible requests of instances without a report, unless they have stopped',
  async (t) => {
    const { pool } = await testDatabase(t);
    // One that is gone.
    await pool.query(`insert into rate_usage (instance, name, taken, updated_at)
      values (gen_random_uuid(), '', 0, clock_timestamp() - interval '1 minute')`);
    const idle = new Exchange(pool, new Limits(SETTINGS), (error) => t.error(error));
    t.teardown(() => idle.close());
    await until('one is there', async () => {
      const { rows } = await pool.query('select from rate_usage');
      return rows.length === 2;
    });
    const peerCounts: number[] = [];
    class ListeningService extends Limits {
      override setPeers(others: number): void {
        super.setPeers(others);
        peerCounts.push(others);
      }
    }
    const limits = new ListeningService(SETTINGS);
    const exchange = new Exchange(pool, limits, (error) => t.error(error));
    t.teardown(() => exchange.close());
    await until('the exchange listens', () => peerCounts.length > 0);
    t.equal(peerCounts[0], 1);
    const nowMs = monotonicMs();
    const waits = Array.from({ length: OWN.burst + 1 }, () =>
      limits.takeRequest('key:a', OWN, nowMs),
    );
    // One minute per request: its own, and those that the other instance may have taken.
    t.match(waits.at(-1), { isAllowed: false, resetSeconds: 60 * (1 + OWN.burst + 1) });
  },
);

t.test('a subject is reported to other instances as a hash, whatever its text', async (t) => {
  const database = await testDatabase(t);
  const { JWT_ISSUER, JWT_AUDIENCE } = NO_TOKENS;
  const tokens = { JWT_ISSUER, JWT_AUDIENCE, JWT_SECRET: SECRET };
  const config = configOf({ ...NO_LIMITS, ...tokens, RATE_PER_MINUTE: '600' });
  const { client, pool: usagePool } = database;
  const app = await buildApp({ config, client, usagePool });
  t.teardown(() => app.close());
  const subjects = ['ann@example.org', randomBytes(2_000).toString('hex'), 'a\u0000b'];
  for (const sub of subjects) {
    const authorization = `Bearer ${secretToken(goodClaims({ sub }))}`;
    const { statusCode } = await app.inject({ url: '/v3/me', headers: { authorization } });
    t.equal(statusCode, 200);
  }
  let names: string[] = [];
  await until('all are reported', async () => {
    const { rows } = await usagePool.query<{ name: string }>(
      "select name from rate_usage where name <> ''",
    );
    names = rows.map(({ name }) => name);
    return names.length === subjects.length;
  });
  for (const name of names) t.match(name, /^p 600 token:[\w-]{43}$/);
});
