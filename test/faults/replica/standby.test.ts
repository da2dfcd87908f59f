import t from 'tap';
import { revokeKey } from '../../../src/auth/keys/keys.ts';
import { type Cluster, ownCluster } from '../../support/database/cluster.ts';
import { lockWaits } from '../../support/database/lock-waits.ts';
import { inRevision, inTransaction } from '../../support/database/minimal-data.ts';
import { named, quotaOf, rateAt, SHARES } from '../../support/database/quota.ts';
import { standbyOf } from '../../support/database/standby.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { keyFor } from '../../support/http/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { type Figures, failedOf, within } from '../../support/process/figures.ts';
import {
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  type OpenLoad,
  openLoad,
  quantile,
  send,
  type Target,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength, LENGTH } from '../../support/run/length.ts';

type Test = typeof t;

const RATE = byLength(20, 50);
/** Measured runs use the default gate. */
const RUNNING_MAX = byLength('0', '64');
const WAITING_MAX = byLength('10000', '128');
const KEYS_LAG_MS_MAX = byLength('5000', '10000');
const PRICES: HttpRequest = {
  path: '/v3/prices/nickel',
  body: '{"options":{"includeSeries":true}}',
};
/** Requests with points, which no cache holds: every answer of a market needs the database. */
const QUESTIONS: readonly HttpRequest[] = [
  {
    path: '/v3/prices/nickel',
    body: '{"filters":{"codes":["CP-NI-0001"]},"options":{"includeSeries":true}}',
  },
  {
    path: '/v3/prices/copper',
    body: '{"filters":{"dateFrom":"2026-06-01"},"options":{"includeSeries":true}}',
  },
  { path: '/v3/prices' },
];

const SETTINGS = { max_standby_streaming_delay: '200ms' };

const quota = quotaOf(t);

/** Applies the CPU quota to servers, if there is one. */
async function confined(...clusters: readonly Cluster[]): Promise<void> {
  if (LENGTH !== 'short') for (const cluster of clusters) await cluster.confine(quota);
}

let primary = await ownCluster(t);
let standby = await standbyOf(t, primary, SETTINGS);
await confined(primary, standby);

/** Starts a service on some servers and waits for its first answer; the primary makes its key. */
async function on(
  writer: Cluster,
  url: string,
  env: Record<string, string> = {},
): Promise<ServiceProcess> {
  const own = { DATABASE_URL: url, PRICE_BOOK_BYTES: '0', RUNNING_MAX, WAITING_MAX, ...env };
  const service = await writer.using((database) => startServiceProcess(t, database, own));
  if (LENGTH !== 'short') quota.add(service.running.child.pid ?? 0);
  await until('its key has come', async () => (await ask(service)).status === 200);
  return service;
}

const ask = (target: Target, body = '{}'): Promise<HttpAnswer> =>
  send(false, target, { path: '/v3/prices/nickel', body });

async function revisionOf(target: Target): Promise<string> {
  const { status, text } = await ask(target);
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 300)}`);
  return JSON.parse(text).$metadata.revision;
}

/** Commits a revision and waits until a service returns it. */
async function committed(writer: Cluster, target: Target, name: string): Promise<void> {
  const number = await writer.using(({ pool }) =>
    inRevision(pool, `update price set name = '${name}' where code = 'CP-NI-0001'`),
  );
  await until('the service reports it', async () =>
    (await revisionOf(target)).endsWith(`.${number}`),
  );
}

/** A second key and its revocation. */
async function anotherKey(writer: Cluster, target: Target) {
  const key = await writer.using((database) => keyFor(database, ['prices:nickel']));
  const other = { port: target.port, key };
  await until('the key has reached the standby', async () => (await ask(other)).status === 200);
  const publicId = key.split('_')[2] ?? '';
  const revoke = () => writer.using(({ db }) => revokeKey(db, publicId, 'a test'));
  return { other, revoke };
}

const isRevoked = async (target: Target): Promise<boolean> =>
  codeOf(await ask(target)) === 'api_key_revoked';

/** Waits for this many more answers. */
const more = (load: OpenLoad, count: number): Promise<void> => {
  const goal = load.answers.length + count;
  return until('more are answered', () => load.answers.length >= goal);
};

/** A table locked on the standby by a statement that waits for another lock. */
async function tableOfWaiter(): Promise<string> {
  let name = '';
  await until('a waiter holds a table', async () => {
    const { rows } = await standby.query(
      `select relation::regclass::text as name from pg_locks
          join pg_stat_activity using (pid) join pg_class on pg_class.oid = relation
        where granted and mode = 'AccessShareLock' and wait_event_type = 'Lock'
          and relkind = 'r' and relnamespace = 'public'::regnamespace limit 1`,
    );
    name = rows[0]?.name ?? '';
    return name !== '';
  });
  return name;
}

/** Makes the standby cancel a statement that conflicts with a replayed lock. */
async function conflict(test: Test, target: Target): Promise<number> {
  const count = async (): Promise<number> => {
    const { rows } = await standby.query(
      'select sum(confl_lock + confl_deadlock)::int as count from pg_stat_database_conflicts',
    );
    return rows[0].count;
  };
  const before = await count();
  const pending = await primary.using(({ pool }) =>
    inTransaction(pool, async (first) => {
      await first.query('lock table series in access exclusive mode');
      // Uncommitted WAL reaches the standby together with later WAL.
      await primary.query('select pg_switch_wal()');
      const pending = [1, 2, 3].map(() => send(false, target, PRICES));
      await standby.using(({ pool }) =>
        until('they wait for it', async () => (await lockWaits(pool)) > 0),
      );
      const table = await tableOfWaiter();
      await inTransaction(pool, (second) =>
        second.query(`lock table ${table} in access exclusive mode`),
      );
      const { rows: written } = await primary.query('select pg_current_wal_flush_lsn() as lsn');
      await until('the standby shows that lock as well', async () => {
        const { rows } = await standby.query(
          `select pg_last_wal_replay_lsn() >= '${written[0].lsn}'::pg_lsn as "isThere"`,
        );
        return rows[0].isThere;
      });
      return pending;
    }),
  );
  const answers = await Promise.all(pending);
  test.same(
    answers.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text}`),
    [],
  );
  await until('the conflict is counted', async () => (await count()) > before);
  return (await count()) - before;
}

/** Time until a key is answered with 503 because keys cannot be checked. */
async function believedAfter(sinceMs: number, target: Target): Promise<number> {
  let ms = 0;
  await until('no key is believed', async () => {
    const sent = performance.now();
    const answer = await ask(target);
    if (answer.status === 200) ms = sent - sinceMs;
    return codeOf(answer) === 'auth_unavailable';
  });
  return ms;
}

const pausing = (what: 'pause' | 'resume') => standby.query(`select pg_wal_replay_${what}()`);

type Share = (typeof SHARES)[number];

/** Stops services, which would otherwise keep reconnecting. */
async function end(...services: readonly ServiceProcess[]): Promise<void> {
  for (const { running } of services) {
    running.child.kill('SIGKILL');
    await running.ended;
  }
}

/** Runs all standby events up to its promotion. */
async function standbyFaults(test: Test, share: Share): Promise<Figures> {
  const alone = await on(primary, standby.url, { KEYS_LAG_MS_MAX });
  await committed(primary, alone, 'Read from a standby');
  const conflicts = await conflict(test, alone);
  const { perSecond, figures } = await rateAt(test, quota, share, alone, QUESTIONS, RATE);
  const walk = async (options: object) => {
    const { text } = await ask(alone, JSON.stringify({ options: { limit: 1, ...options } }));
    return JSON.parse(text).$metadata;
  };
  const page = await walk({});
  const { other, revoke } = await anotherKey(primary, alone);
  await pausing('pause');
  await revoke();
  const believed = await believedAfter(performance.now(), other);
  await pausing('resume');
  await until('the key is refused', () => isRevoked(other));

  const load = openLoad(test, alone, QUESTIONS, perSecond);
  await more(load, RATE);
  await primary.stop();
  await standby.query('select pg_promote()');
  await committed(standby, alone, 'Written after a promotion');
  await more(load, RATE);
  test.equal(
    (await walk({ cursor: page.nextCursor })).revision,
    page.revision,
    'the walk continues',
  );
  const answers = await load.stop();
  await end(alone);
  const failed = answers.filter(({ status }) => status !== 200);
  const failures = failed.map(({ status, text }) => `${status} ${text.slice(0, 200)}`);
  test.same(failures, []);
  return {
    ...figures,
    [named('requests', share)]: answers.length,
    [named('failed', share)]: failedOf(failed.length),
    [named('statements cancelled', share)]: conflicts,
    [named('keys accepted for', share)]: within(believed, Number(KEYS_LAG_MS_MAX)),
    [named('longest request', share)]: `${Math.round(quantile(answers, 1))} ms`,
  };
}

fault(
  'F11',
  'a standby: statements that it cancels, replay that stops, promotion',
  '0 failed requests, with one core and with half a core; keys of a standby that is behind get ' +
    '503 after ≤ 10 s; no revision decreases from page to page; promotion needs no restart',
  async (test) => {
    let figures: Figures = {};
    for (const [at, share] of SHARES.entries()) {
      if (at > 0) {
        primary = standby;
        quota.cores(null);
        // The next fault uses this standby too.
        standby = await standbyOf(t, primary, SETTINGS);
        await confined(standby);
      }
      figures = { ...figures, ...(await standbyFaults(test, share)) };
    }
    quota.cores(null);
    return figures;
  },
);

/** Kills the primary, promotes the standby and moves the address to it. */
async function failover(test: Test, share: Share): Promise<Figures> {
  const next = await standbyOf(test, standby);
  await confined(next);
  const address = await tcpProxyTo(test, standby.url);
  const service = await on(standby, address.url, {
    USAGE_DATABASE_URL: address.url,
    // Longer than a promotion with half a core; a fast machine sends more meanwhile than may wait.
    DATABASE_AWAY_MS_MAX: '6000',
    RATE_PER_MINUTE: '1000000',
    RATE_BURST: '1000000',
  });
  const { perSecond, figures } = await rateAt(test, quota, share, service, QUESTIONS, RATE);
  const load = openLoad(test, service, QUESTIONS, perSecond);
  await more(load, perSecond);
  await standby.kill();
  await next.query('select pg_promote()');
  address.redirectTo(next.url);
  await committed(next, service, 'Written after a failover');
  const over = load.answers.length;
  await more(load, perSecond);
  const answers = await load.stop();
  // A stop writes the last use of keys.
  service.running.child.kill('SIGTERM');
  await service.running.ended;
  test.not((await next.query('select from key_use')).rows.length, 0, 'use is recorded there');
  standby = next;
  test.same(unacceptable(answers), []);
  const failed = answers.filter(({ status }) => status !== 200);
  test.same(failed.filter((each) => answers.indexOf(each) >= over).map(codeOf), [], 'after it');
  return {
    ...figures,
    [named('requests', share)]: answers.length,
    [named('failed', share)]: failedOf(failed.length),
    [named('longest request', share)]: `${Math.round(quantile(answers, 1))} ms`,
  };
}

fault(
  'F12',
  'the database server killed, its standby promoted, and the address moved to it',
  '0 failed requests, with one core and with half a core, without a restart; key use is ' +
    'recorded on the new server',
  async (t) => {
    let figures: Figures = {};
    for (const share of SHARES) {
      quota.cores(null);
      figures = { ...figures, ...(await failover(t, share)) };
    }
    quota.cores(null);
    return figures;
  },
);
