import t from 'tap';
import { keptReadings } from '../../src/db/shared-work.ts';

/** Readings that say which one they are. */
function counter() {
  let count = 0;
  return async () => {
    count += 1;
    return count;
  };
}

t.test('what was read is kept, and shared while it is read', async (t) => {
  const kept = keptReadings<number>(2);
  const read = counter();
  t.same(await Promise.all([kept('a', read), kept('a', read), kept('b', read)]), [1, 1, 2]);
  t.same([await kept('a', read), await kept('b', read)], [1, 2]);
});

t.test('what was used longest ago goes first', async (t) => {
  const kept = keptReadings<number>(2);
  const read = counter();
  for (const key of ['a', 'b', 'a', 'c']) await kept(key, read);
  t.same([await kept('a', read), await kept('c', read), await kept('b', read)], [1, 3, 4]);
});

t.test('a reading that failed is told to all who waited, and done again', async (t) => {
  const kept = keptReadings<number>(2);
  const failing = async (): Promise<number> => {
    throw new Error('away');
  };
  const waiting = [kept('a', failing), kept('a', counter())];
  for (const each of waiting) await t.rejects(each, { message: 'away' });
  t.equal(await kept('a', counter()), 1);
});

t.test('a failure that comes late takes nothing away that was read since', async (t) => {
  const kept = keptReadings<number>(1);
  const late = Promise.withResolvers<number>();
  const waiting = kept('a', () => late.promise);
  const read = counter();
  await kept('b', read);
  t.equal(await kept('a', read), 2);
  late.reject(new Error('away'));
  await t.rejects(waiting, { message: 'away' });
  t.equal(await kept('a', read), 2);
});
