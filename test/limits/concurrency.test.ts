import t from 'tap';
import { Concurrency } from '../../src/limits/limits.ts';

t.test('each name has its own slots; 0 is no limit; nothing is left behind', async (t) => {
  const concurrency = new Concurrency();
  const a = concurrency.acquire('a', 1);
  t.equal(concurrency.acquire('a', 1), null);
  const b = concurrency.acquire('b', 1);
  const more = [0, 0, 0].map((most) => concurrency.acquire('a', most));
  for (const release of [a, b, ...more]) release?.();
  a?.();
  t.equal(concurrency.size, 0);
  t.ok(concurrency.acquire('a', 1));
});
