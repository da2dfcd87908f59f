import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { createKey } from '../../../src/auth/keys/keys.ts';
import { HS256, SECRET } from '../../support/auth/auth-app.ts';
import { goodClaims, secretToken } from '../../support/auth/tokens.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { keyFor } from '../../support/http/service.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { within } from '../../support/process/figures.ts';
import {
  agentOf,
  codeOf,
  type HttpAnswer,
  openLoad,
  send,
  type Target,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';
import { compliantClient, type RetryCounts, refusedRetries } from './compliant-client.ts';

type Test = typeof t;

const BURST = 60;
const PER_SECOND = 10;
const TWICE = 2 * PER_SECOND;
/** In a short run the burst would hide that too much is admitted. */
const OFTEN = byLength(TWICE + BURST, TWICE);
const LIMITS = {
  RATE_PER_MINUTE: '600',
  RATE_BURST: String(BURST),
  CONCURRENT_MAX: '0',
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
};
const ASK = { path: '/v3/me' };
/** The window of the rate limit, as answers report it; the tests last three windows. */
const WINDOW_MS = byLength(2_000, 60_000);
const WINDOWS = 3;
const CLIENTS = byLength(2, 12);

const accepted = (answers: readonly HttpAnswer[]): number =>
  answers.filter(({ status }) => status === 200).length;

/** The most that a bucket gives while a clock that is outside of it runs. */
const allowance = (begun: number): number =>
  BURST + (PER_SECOND * (performance.now() - begun)) / 1_000;

/** Checks that every answer reports the limit, and every refusal when to retry. */
function checkRefusals(test: Test, answers: readonly HttpAnswer[]): void {
  test.same(unacceptable(answers), []);
  const refused = answers.filter(({ status }) => status !== 200);
  const outcomes = new Set(refused.map((each) => `${each.status} ${codeOf(each)}`));
  outcomes.delete('429 rate_limited');
  test.same([...outcomes], []);
  test.ok(answers.every(({ headers }) => headers['ratelimit']));
  test.ok(refused.every(({ headers }) => Number(headers['retry-after']) >= 1));
}

/** Sends twice the rate for three windows; no more is admitted than the bucket gives. */
async function twice(test: Test, target: Target, asks: readonly { path: string }[] = [ASK]) {
  const begun = performance.now();
  const load = openLoad(test, target, asks, OFTEN);
  await pause(WINDOWS * WINDOW_MS);
  const answers = await load.stop();
  const most = allowance(begun);
  checkRefusals(test, answers);
  test.ok(accepted(answers) <= most * 1.05, `${accepted(answers)} of ${most}`);
  // The first window has the burst beside its rate.
  const later = Array.from({ length: WINDOWS - 1 }, (_, at) => begun + (at + 1) * WINDOW_MS);
  const windows = later.map((from) =>
    accepted(answers.filter(({ endedAt: at }) => at >= from && at < from + WINDOW_MS)),
  );
  return { answers, share: (100 * accepted(answers)) / most, window: Math.max(...windows) };
}

/** Keeps silent until just before the edge of a window, and asks for all it can at both sides. */
async function edges(test: Test, target: Target) {
  const agent = agentOf(test, 16);
  const first = performance.now();
  const many = async (): Promise<HttpAnswer[]> =>
    Promise.all(Array.from({ length: 2 * BURST }, () => send(agent, target, ASK)));
  await send(agent, target, ASK);
  let over = Number.NEGATIVE_INFINITY;
  for (let edge = 1; edge < WINDOWS; edge += 1) {
    await pause(first + edge * WINDOW_MS - 500 - performance.now());
    const begun = performance.now();
    const before = await many();
    await pause(first + edge * WINDOW_MS - performance.now());
    const both = accepted([...before, ...(await many())]);
    const most = allowance(begun);
    test.ok(both <= most, `${both} at the edge of a window, of ${most}`);
    over = Math.max(over, both - most);
  }
  return BURST + over;
}

/** Two keys by turns, at twice the rate of both: neither is admitted more often than it may be. */
async function byTurns(test: Test, { port }: Target, keys: readonly string[]): Promise<number> {
  const loads = await Promise.all(keys.map((key) => twice(test, { port, key })));
  return Math.max(...loads.map(({ share }) => share));
}

/** Many tokens of one subject: it may do with all of them what it may with one. */
async function oneSubject(test: Test, target: Target): Promise<number> {
  const asks = Array.from({ length: 200 }, (_, at) => {
    const token = secretToken(goodClaims({ jti: String(at), sub: 'one' }));
    return { ...ASK, headers: { authorization: `Bearer ${token}` } };
  });
  return (await twice(test, target, asks)).share;
}

/** A key of its own rate. */
async function keyAt({ db }: TestDatabase, perMinute: number, burst: number): Promise<string> {
  const { key } = await createKey(db, {
    name: `${perMinute} a minute`,
    scopes: ['prices:*'],
    expiresAt: null,
    limits: { perMinute, burst, concurrent: null },
  });
  return key;
}

/** One request after another, until long after the limit: the reported numbers never increase. */
async function onlyDown(test: Test, target: Target): Promise<void> {
  const reported: { status: number; left: number; wait: number }[] = [];
  for (let at = 0; at < 2 * BURST; at += 1) {
    const { status, headers } = await send(false, target, ASK);
    const [, left, after] = /;r=(\d+);t=(\d+)$/.exec(String(headers['ratelimit'])) ?? [];
    reported.push({ status, left: Number(left), wait: Number(headers['retry-after'] ?? after) });
  }
  const expected = Array.from({ length: 2 * BURST }, (_, at) => ({
    status: at < BURST ? 200 : 429,
    left: Math.max(0, BURST - 1 - at),
  }));
  test.same(
    reported.map(({ status, left }) => ({ status, left })),
    expected,
  );
  const waits = reported.slice(BURST).map(({ wait }) => wait);
  test.same(
    waits,
    waits.toSorted((a, b) => b - a),
  );
}

/** Clients that obey Retry-After, each with a key of its own, for three windows. */
async function waiting(test: Test, database: TestDatabase, { port }: Target) {
  const end = performance.now() + WINDOWS * WINDOW_MS;
  const obeyed: Promise<RetryCounts>[] = [];
  for (let at = 0; at < CLIENTS; at += 1) {
    const key = await keyAt(database, at % 2 === 0 ? 60 : 600, at % 2 === 0 ? 5 : 20);
    obeyed.push(compliantClient(test, { port, key }, ASK, () => performance.now() > end));
  }
  return refusedRetries(await Promise.all(obeyed));
}

fault(
  'F35',
  'twice the rate limit of a key; bursts at the edge of a window; alternating keys and tokens',
  'accepted ≤ limit + 5 % in three windows; a burst at an edge ≤ the burst limit; alternating ' +
    'keys have separate limits, all tokens of a subject share one; the reported remaining ' +
    'requests and waits never increase; clients that wait as long as reported are answered',
  async (t) => {
    const database = await testDatabase(t);
    const one = await startServiceProcess(t, database, LIMITS);
    const keys = [await keyFor(database, ['prices:*']), await keyFor(database, ['prices:*'])];
    const edge = await keyFor(database, ['prices:*']);
    await onlyDown(t, { port: one.port, key: await keyAt(database, 1, BURST) });
    const [alone, turns, subject, edged, waited] = await Promise.all([
      twice(t, one),
      byTurns(t, one, keys),
      oneSubject(t, one),
      edges(t, { port: one.port, key: edge }),
      waiting(t, database, one),
    ]);
    t.equal(waited.percent, 0, 'every client that waits as reported is answered');
    return {
      requests: alone.answers.length,
      'accepted of the limit': within(alone.share, 105, '%'),
      'in a later window': within(
        alone.window,
        (1.05 * PER_SECOND * WINDOW_MS) / 1_000,
        'requests',
      ),
      'at an edge': within(edged, BURST, 'beyond the rate'),
      'of each of two alternating keys': within(turns, 105, '%'),
      'of a subject with 200 tokens': within(subject, 105, '%'),
      'waited as reported': waited.retries,
      'rejected again': within(waited.percent, 1, '%'),
    };
  },
);
