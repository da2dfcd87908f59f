import t from 'tap';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { answerOf, dechunked, postText, RawConnection, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { openLoad, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const SERIES = { options: { includeSeries: true } };
const database = await testDatabase(t);
await fill(database, { prices: 60, points: byLength(1_500, 3_000) });

/** A service that sends its largest answer to a client that stalls. */
async function midway(test: Test, url: string, env: Record<string, string> = {}) {
  const service = await startServiceProcess(
    test,
    { ...database, url },
    { PRICE_BOOK_BYTES: '0', ...env },
  );
  const connection = new RawConnection(test, service.port);
  connection.socket.write(postText(service, BULK_MARKET.slug, SERIES));
  await connection.firstBytes();
  return { ...service, connection, child: service.running.child };
}

/** Ends a service with a signal; returns exit code and duration. */
async function ended(
  { running }: Pick<Awaited<ReturnType<typeof midway>>, 'running'>,
  meanwhile: () => void | Promise<void> = () => {},
) {
  const begun = performance.now();
  running.child.kill('SIGTERM');
  await meanwhile();
  return { code: await running.ended, ms: performance.now() - begun };
}

fault(
  'F37',
  'SIGTERM during a largest answer, with a stuck client, and with the database away; a second ' +
    'SIGTERM',
  'answers are complete; exit code 0 after ≤ 25 s; the second SIGTERM ends the process at once',
  async (t) => {
    const patience = byLength<Record<string, string>>({ SHUTDOWN_TIMEOUT_MS: '120000' }, {});
    const reading = await midway(t, database.url, patience);
    const whole = await ended(reading, () => void reading.connection.socket.resume());
    t.equal(whole.code, 0);
    const text = await reading.connection.ended();
    t.ok(dechunked(answerOf(text).body)?.endsWith('}'), 'the answer is whole');

    const limit = { SHUTDOWN_TIMEOUT_MS: byLength('1000', '20000'), STALL_TIMEOUT_MS: '120000' };
    const stuck = await ended(await midway(t, database.url, limit));
    t.equal(stuck.code, 0, 'a client that reads nothing');

    const proxy = await tcpProxyTo(t, database.url);
    const away = await midway(t, proxy.url, limit);
    proxy.freeze();
    const frozen = await ended(away, () => void away.connection.socket.resume());
    t.equal(frozen.code, 0, 'a database that says nothing');

    const hasty = await midway(t, database.url, { ...limit, SHUTDOWN_TIMEOUT_MS: '120000' });
    let second = 0;
    const twice = await ended(hasty, () => {
      // An immediate second signal counts as the same keystroke, even if the service stalled.
      const again = setInterval(() => {
        second = performance.now();
        hasty.child.kill('SIGTERM');
      }, 700);
      hasty.child.once('exit', () => clearInterval(again));
    });
    t.equal(twice.code, 1);
    return {
      stops: 4,
      'with a reader': within(whole.ms, 25_000),
      'with a stuck client': within(stuck.ms, 25_000),
      'with the database away': within(frozen.ms, 25_000),
      'after a second SIGTERM': within(performance.now() - second, 1_000),
    };
  },
);

/** Counts the database sessions of the service. */
async function sessions({ pool }: TestDatabase): Promise<number> {
  const { rows } = await pool.query(`select count(*)::int as sessions from pg_stat_activity
    where datname = current_database() and application_name like 'commodity-prices%'
      and application_name not like '%test%'`);
  return rows[0].sessions;
}

fault(
  'F38',
  'the service killed with SIGKILL under load',
  'its sessions end ≤ 2 s later; a new process answers ≤ 3 s after its start',
  async (t) => {
    const service = await midway(t, database.url);
    const load = openLoad(t, service, [{ path: '/v3/prices' }], byLength(20, 100));
    await until('the service answers requests', () => load.answers.length >= 20);
    service.child.kill('SIGKILL');
    const killed = performance.now();
    await service.running.ended;
    await until('its sessions end', async () => (await sessions(database)) === 0);
    const gone = performance.now() - killed;
    await load.stop();
    const begun = performance.now();
    const next = await startServiceProcess(t, database);
    const ask = { path: `/v3/prices/${BULK_MARKET.slug}`, body: '{}' };
    await until(
      'the new process answers',
      async () => (await send(false, next, ask)).status === 200,
    );
    return {
      'sessions gone after': within(gone, 2_000),
      'answers after': within(performance.now() - begun, 3_000),
    };
  },
);
