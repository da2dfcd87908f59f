import t from 'tap';
import { LARGE_WAITING_MAX, ReadLimit } from '../../src/prices/market/select.ts';

const NEVER = new AbortController().signal;

t.test('large readings run one at a time, 16 wait, and one more is refused', async (t) => {
  const readings = new ReadLimit(1, LARGE_WAITING_MAX);
  const order: number[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const read = (n: number) => async () => {
    order.push(n);
    if (n === 0) await held;
    if (n === 3) throw new Error('the read failed');
    return n;
  };
  const leaver = new AbortController();
  const running = Array.from({ length: 17 }, (_, n) =>
    readings.run(read(n), n === 5 ? leaver.signal : NEVER),
  );
  const ended = Promise.allSettled(running);
  await t.rejects(readings.run(read(17), NEVER), { code: 'overloaded' });
  leaver.abort(new Error('the client left'));
  await t.rejects(running[5] as Promise<number>, { message: 'the client left' });
  const last = readings.run(read(18), NEVER);
  t.same(order, [0]);
  release();
  const outcomes = await ended;
  t.equal(await last, 18);
  t.same(order, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18]);
  t.equal(outcomes.filter(({ status }) => status === 'rejected').length, 2);
});
