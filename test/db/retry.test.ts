import t from 'tap';
import { Retries } from '../../src/db/retry.ts';
import { failureOf } from '../support/database/minimal-data.ts';

const NEVER = new AbortController().signal;
const HOUR_MS = 3_600_000;
const REFUSED = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

const failing = (times: number, error: Error) => {
  const calls = { count: 0 };
  const work = async () => {
    calls.count += 1;
    if (calls.count <= times) throw error;
    return calls.count;
  };
  return { calls, work };
};

t.test('transient failures are tried up to four times, permanent ones once', async (t) => {
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

t.test('slow failures are not retried, unless the caller allows more time', async (t) => {
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
  const attempts = many.reduce((sum, { calls }) => sum + calls.count, 0);
  t.equal(attempts, 240);
});
