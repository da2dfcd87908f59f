import t from 'tap';
import { Breaker, type BreakerState } from '../../src/db/link/breaker.ts';
import { Retries } from '../../src/db/retry.ts';
import type { Problem } from '../../src/errors.ts';
import { until } from '../support/sockets.ts';
import { failureOf } from '../support/world.ts';

const NEVER = new AbortController().signal;
const HOUR_MS = 3_600_000;
const REFUSED = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

const breakerWith = (rideOutMs: number) => {
  const states: BreakerState[] = [];
  const breaker = new Breaker({ rideOutMs, onChange: (state) => states.push(state) });
  return { breaker, states };
};

/** What statements are refused with; null while they are not. */
function refusalOf(breaker: Breaker): Problem | null {
  try {
    breaker.check();
    return null;
  } catch (error) {
    return error as Problem;
  }
}

t.test('a database that went away just now refuses nothing', async (t) => {
  const { breaker, states } = breakerWith(60_000);
  t.equal(refusalOf(breaker), null);
  breaker.lose(REFUSED);
  breaker.lose(REFUSED);
  t.same([refusalOf(breaker), breaker.isAway], [null, true]);
  breaker.close();
  t.same([breaker.state, states, breaker.outages], ['closed', ['lost', 'closed'], 0]);
  t.notOk(breaker.lifeline.aborted);
});

t.test('a database that stays away refuses all, and ends what runs', async (t) => {
  const { breaker, states } = breakerWith(1);
  const { lifeline } = breaker;
  breaker.lose(REFUSED);
  const expected = { code: 'database_unavailable', headers: { 'retry-after': /^[1-5]$/ } };
  await until('it is open', () => breaker.state === 'open');
  t.match(refusalOf(breaker), expected);
  t.match(lifeline.reason, expected, 'what runs ends as well');
  breaker.open(REFUSED);
  breaker.close();
  t.equal(refusalOf(breaker), null);
  t.same([states, breaker.outages], [['lost', 'open', 'closed'], 1]);
  t.notOk(breaker.lifeline.aborted);
});

t.test('the time of a silent database counts from its last question', async (t) => {
  const { breaker } = breakerWith(60_000);
  breaker.lose(REFUSED, performance.now() - 60_000);
  await until('it is open', () => breaker.state === 'open');
  t.equal(breaker.outages, 1);
});

t.test('the cause of a refusal is the last error of the database', async (t) => {
  const { breaker } = breakerWith(1);
  const full = Object.assign(new Error('sorry, too many clients already'), { code: '53300' });
  breaker.lose(REFUSED);
  breaker.lose(full);
  await until('it is open', () => breaker.state === 'open');
  t.match(refusalOf(breaker), { cause: full });
  breaker.lose(REFUSED);
  t.match(refusalOf(breaker), { cause: REFUSED });
  breaker.close();
});

t.test('clients that are refused together are not sent back together', async (t) => {
  const { breaker } = breakerWith(0);
  breaker.open(REFUSED);
  const refusal = refusalOf(breaker);
  const told = new Set(Array.from({ length: 200 }, () => refusal?.headers['retry-after']));
  t.same([...told].toSorted(), ['1', '2', '3', '4', '5'], 'also where they share one refusal');
});

const failing = (times: number, error: Error) => {
  const calls = { count: 0 };
  const work = async () => {
    calls.count += 1;
    if (calls.count <= times) throw error;
    return calls.count;
  };
  return { calls, work };
};

t.test('what fails in passing is tried up to four times, what fails for good once', async (t) => {
  const retries = new Retries(HOUR_MS);
  t.equal(await retries.run(failing(3, REFUSED).work, NEVER), 4);
  const always = failing(9, REFUSED);
  t.equal(await failureOf(retries.run(always.work, NEVER)), REFUSED);
  t.equal(always.calls.count, 4);
  t.equal(retries.count, 6);
  const conflict = Object.assign(new Error('conflict with recovery'), { code: '40001' });
  t.equal(await retries.run(failing(1, conflict).work, NEVER), 2);
  for (const code of ['57014', '28P01', '22P02', 'ETIMEDOUT']) {
    const once = failing(9, Object.assign(new Error(code), { code }));
    await failureOf(retries.run(once.work, NEVER));
    t.equal(once.calls.count, 1, code);
  }
});

t.test('what has taken its time is not tried again, unless somebody has patience', async (t) => {
  const retries = new Retries(-1);
  const once = failing(9, REFUSED);
  t.equal(await failureOf(retries.run(once.work, NEVER)), REFUSED);
  t.equal(once.calls.count, 1);
  t.equal(await retries.run(failing(3, REFUSED).work, NEVER, HOUR_MS), 4);
});

t.test('nothing is tried again for a reader who left', async (t) => {
  const leaving = new AbortController();
  const { calls, work } = failing(9, REFUSED);
  const reading = failureOf(new Retries().run(work, leaving.signal));
  leaving.abort(new Error('gone'));
  t.match((await reading).message, /gone|ECONNREFUSED/);
  t.equal(calls.count, 1);
});

t.test('a database in trouble is not asked several times as much', async (t) => {
  const retries = new Retries(HOUR_MS);
  const many = Array.from({ length: 200 }, () => failing(9, REFUSED));
  await Promise.all(many.map(({ work }) => failureOf(retries.run(work, NEVER))));
  const asked = many.reduce((sum, { calls }) => sum + calls.count, 0);
  t.equal(asked, 240);
});
