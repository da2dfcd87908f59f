import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { newKey } from '../../../src/auth/keys/format.ts';
import { CONSTANTS } from '../../../src/config/constants.ts';
import { roleName } from '../../../src/db/migrate/roles.ts';
import { HS256, SECRET } from '../../support/auth/auth-app.ts';
import { goodClaims, secretToken } from '../../support/auth/tokens.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { lockWaits, whileLocked } from '../../support/database/lock-waits.ts';
import { roledDatabase } from '../../support/database/roles.ts';
import { startLoadThread } from '../../support/http/load-thread.ts';
import { counted, type Watched, WITH_METRICS, watchedBy } from '../../support/http/metrics.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import {
  agentOf,
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  quantile,
  send,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

/** A token, because an uncached key would need a lookup first. */
const TOKENS = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
};
const token = (market = '*', more = {}): string =>
  secretToken(goodClaims({ scope: `prices:${market}`, ...more }));

/** The token of a client that has used up its burst, which suffices for every other client. */
const SPENT = token('*', { sub: 'a client without a pause' });
const BURST = byLength(1_500, 5_000);

/** A request with points, which no cache holds: its answer needs the database. */
const PRICES: HttpRequest = {
  path: '/v3/prices/nickel',
  body: '{"options":{"includeSeries":true}}',
};

/** Requests that need no pool connection, with their expected answers. */
const CHEAP: readonly (readonly [status: number, ask: HttpRequest])[] = [
  [404, { path: '/v3/nothing' }],
  [405, { method: 'DELETE', path: '/v3/prices/nickel' }],
  [401, { ...PRICES, headers: { authorization: 'Bearer nonsense' } }],
  [401, { ...PRICES, headers: { 'x-api-key': `${newKey().text}x` } }],
  [403, { path: '/v3/prices/copper', headers: { authorization: `Bearer ${token('nickel')}` } }],
  [400, { ...PRICES, body: '{"filters":{"nothing":[]}}' }],
  [400, { ...PRICES, body: '{' }],
  [429, { ...PRICES, headers: { authorization: `Bearer ${SPENT}` } }],
  [415, { ...PRICES, headers: { 'content-type': 'text/plain' } }],
  [200, { path: '/live' }],
  [200, { path: '/health' }],
  [200, { path: '/v3/prices/health' }],
];

/** Requests without a route have a rate limit over all clients, and wait for it. */
const OPEN_APART_MS = 1_000 / CONSTANTS.OPEN_PER_SECOND + 10;

/** A service with warm caches of key and prices: only points need the database. */
async function warm(test: Test, database: TestDatabase, env: Record<string, string>) {
  const service = await startServiceProcess(test, database, { PRICE_BOOK_BYTES: '0', ...env });
  for (const ask of [PRICES, PRICES, PRICES, { path: '/ready' }]) {
    await until(
      'the request is answered',
      async () => (await send(false, service, ask)).status === 200,
    );
  }
  return service;
}

/** Sends requests until every pool connection waits; replaces timed-out requests. */
async function onEachConnection(database: TestDatabase, ask: () => Promise<HttpAnswer>) {
  const unanswered = new Set<Promise<HttpAnswer>>();
  await until('all connections are busy', async () => {
    while (unanswered.size < 8) {
      const answer = ask();
      unanswered.add(answer);
      void answer.then(() => unanswered.delete(answer));
    }
    return (await lockWaits(database.pool)) === 8;
  });
  return [...unanswered];
}

fault(
  'F7',
  'every connection to the database busy',
  '503 overloaded with Retry-After ≤ 600 ms; requests without a connection ≤ 20 ms, health ≤ ' +
    '50 ms',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const minutes = {
      DATABASE_STATEMENT_TIMEOUT_MS: '300000',
      REQUEST_DEADLINE_MS: '300000',
      WAITING_MS_MAX: '500',
      WAITING_MAX: '64',
    };
    const rate = { RATE_PER_MINUTE: '1', RATE_BURST: String(BURST) };
    const { port } = await warm(t, database, { ...minutes, ...rate, ...TOKENS });
    const service = { port, key: token() };
    const spending = startLoadThread(t, { port, key: SPENT }, { path: '/v3/me' });
    spending.pace({ perSecond: Number.POSITIVE_INFINITY, lines: 8, count: BURST });
    await until('its rate is spent', () => spending.answers.length >= BURST);
    const agent = agentOf(t, Number.POSITIVE_INFINITY);
    const count = byLength(100, 500);
    const cheap: HttpAnswer[] = [];
    const health: HttpAnswer[] = [];
    const askCheap = async (): Promise<void> => {
      for (const [status, ask] of CHEAP) {
        if (status === 404 || status === 405) await pause(OPEN_APART_MS);
        const answer = await send(agent, service, ask);
        t.equal(answer.status, status, `${ask.method ?? ''} ${ask.path} ${answer.text}`);
        (status === 200 ? health : cheap).push(answer);
      }
      await pause(10);
    };
    const { busy, refused } = await whileLocked(database, async () => {
      const busy = await onEachConnection(database, () => send(agent, service, PRICES));
      // A separate thread, so that the latencies are those of the service alone.
      const load = startLoadThread(t, service, PRICES);
      load.pace({ perSecond: count, lines: count, count });
      do await askCheap();
      while (load.answers.length < count);
      return { busy, refused: await load.stop() };
    });
    const outcomes = new Set(refused.map((each) => `${each.status} ${codeOf(each)}`));
    t.same([...outcomes], ['503 overloaded']);
    t.same(unacceptable(refused), []);
    t.ok(
      (await Promise.all(busy)).every(({ status }) => status === 200),
      'the others continue',
    );
    t.equal((await send(agent, service, PRICES)).status, 200);
    return {
      rejected: refused.length,
      'longest refusal': within(quantile(refused, 1), 600),
      'requests meanwhile': cheap.length + health.length,
      'longest without a connection': within(quantile(cheap, 1), 20),
      'longest health': within(quantile(health, 1), 50),
    };
  },
);

/** Asserts the answers while the database does not respond. */
const SILENT = /^503 (database|auth)_unavailable$/;

/** Sends a request that reaches the statement timeout. */
async function timedOut(test: Test, database: TestDatabase, service: ServiceProcess) {
  const agent = agentOf(test, 8);
  let answers: readonly HttpAnswer[] = [];
  // On a stalled machine the database may be silent long enough to count as down.
  await until('all are reported', async () => {
    answers = await whileLocked(database, async () => {
      const all = await Promise.all(Array.from({ length: 8 }, () => send(agent, service, PRICES)));
      await until('no statement is left', async () => (await lockWaits(database.pool)) === 0);
      return all;
    });
    const outcomes = new Set(answers.map((each) => `${each.status} ${codeOf(each)}`));
    const other = [...outcomes].filter((each) => each !== '504 query_timeout');
    test.same(
      byLength(
        other.filter((each) => !SILENT.test(each)),
        other,
      ),
      [],
    );
    return other.length === 0;
  });
  // A busy machine may exceed the short timeout of this service.
  const again = async (): Promise<boolean> => (await send(agent, service, PRICES)).status === 200;
  const each = (): Promise<void> => until('the connections are used again', again);
  await Promise.all(Array.from({ length: 8 }, each));
  return answers;
}

fault(
  'F9',
  'a statement that runs too long',
  '504 query_timeout after 8 to 10 s; its session ends; the connection is available again',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const limitMs = byLength(500, 8_000);
    const timedOutBy = async (name: string, other: string): Promise<readonly HttpAnswer[]> => {
      const service = await warm(t, database, { [name]: String(limitMs), [other]: '60000' });
      const answers = await timedOut(t, database, service);
      // Timers of Node and of PostgreSQL count in whole milliseconds.
      t.ok(Math.min(...answers.map(({ ms }) => ms)) > limitMs - 5, 'none before its time');
      return answers;
    };
    const first = await timedOutBy('DATABASE_STATEMENT_TIMEOUT_MS', 'REQUEST_DEADLINE_MS');
    const second = await timedOutBy('REQUEST_DEADLINE_MS', 'DATABASE_STATEMENT_TIMEOUT_MS');
    return {
      requests: first.length + second.length,
      'by PostgreSQL, longest': within(quantile(first, 1), 10_000),
      'by the deadline, longest': within(quantile(second, 1), 10_000),
    };
  },
);

/** Internals that no answer may reveal: tables, accounts, PostgreSQL messages. */
const NAMES = /permission|denied|relation|function|column|series"|gone|exist|select|42[P58]\d+/gi;

fault(
  'F10',
  'a revoked right, a dropped function',
  '500 internal_error and 503 schema_outdated without a database name; the metrics of the ' +
    'alerts count each; answers again after the repair',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const account = { ...database, url: database.urlOf('service') };
    const service = await startServiceProcess(t, account, {
      PRICE_BOOK_BYTES: '0',
      ...WITH_METRICS,
    });
    const role = roleName(database.prefix, 'service');
    const ask = (): Promise<HttpAnswer> => send(false, service, PRICES);
    const internal = await watchedBy('PricesInternalError');
    const failing = await watchedBy('PricesFailing');
    const faults = [
      ['500 internal_error', 'revoke select on price from ROLE', 'grant select on price to ROLE'],
      ['500 internal_error', 'revoke select on series from ROLE', 'grant select on series to ROLE'],
      [
        '503 schema_outdated',
        'alter function series_at(bigint) rename to series_at_gone',
        'alter function series_at_gone(bigint) rename to series_at',
      ],
    ] as const;
    const before = [await counted(service, internal), await counted(service, failing)];
    let [answers, named] = [0, 0];
    for (const [told, take, give] of faults) {
      await database.pool.query(take.replace('ROLE', `"${role}"`));
      const answer = await ask();
      t.equal(`${answer.status} ${codeOf(answer)}`, told, take);
      const { requestId: _id, ...said } = JSON.parse(answer.text);
      named += [...JSON.stringify(said).matchAll(NAMES)].length;
      named += answer.text.split(role).length - 1;
      await database.pool.query(give.replace('ROLE', `"${role}"`));
      await until('the right is back', async () => (await ask()).status === 200);
      answers += 2;
    }
    t.equal(named, 0, 'nothing is named');
    t.match(service.running.stderr(), 'permission denied', 'the log names the cause');
    const since = async (watched: Watched, at: number): Promise<number> =>
      (await counted(service, watched)) - (before[at] ?? 0);
    await until('each is counted', async () => (await since(failing, 1)) >= faults.length);
    t.equal(await since(internal, 0), 2, 'the alert for unexpected errors fires for two of them');
    return {
      faults: faults.length,
      requests: answers,
      'names exposed': within(named, 0, 'names'),
      'counted for PricesInternalError': await since(internal, 0),
      'for PricesFailing': await since(failing, 1),
    };
  },
);
