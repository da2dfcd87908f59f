import t from 'tap';
import { HeldBytes } from '../../src/std/held-bytes.ts';

t.test('one holder gets a quarter of the budget, and leaves the rest to others', async (t) => {
  const held = new HeldBytes(400);
  t.ok(held.hold('a', 60));
  const giveBack = held.hold('a', 40);
  t.equal(held.hold('a', 1), null, 'beyond its share');
  for (const name of ['b', 'c', 'd']) t.ok(held.hold(name, 100), name);
  t.equal(held.hold('e', 1), null, 'beyond the budget');
  giveBack?.();
  t.ok(held.hold('e', 40));
  t.equal(held.hold('e', 1), null);
  t.equal(held.bytes, 400);
});

t.test('an object counts once for each holder, until its last reader gives it back', async (t) => {
  const held = new HeldBytes(400);
  const answer = {};
  const [first, second] = [held.hold('a', 100, answer), held.hold('a', 100, answer)];
  t.equal(held.bytes, 100);
  first?.();
  t.equal(held.hold('a', 1), null);
  second?.();
  t.equal(held.bytes, 0);
  t.ok(held.hold('a', 100));
});
