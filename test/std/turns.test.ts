import { setImmediate as immediate } from 'node:timers/promises';
import t from 'tap';
import { mapped, Slice, turn } from '../../src/std/turns.ts';

t.test('each turn of the event loop resumes one waiting work, in order', async (t) => {
  const log: string[] = [];
  for (const name of ['a', 'b', 'c']) void turn().then(() => log.push(name));
  for (let count = 0; count < 3; count += 1) {
    await immediate();
    log.push('others');
  }
  t.same(log, ['a', 'others', 'b', 'others', 'c', 'others']);
});

t.test('work runs until its slice is over, and then yields to other work', async (t) => {
  const slice = new Slice();
  let others = 0;
  setImmediate(() => {
    others += 1;
  });
  await slice.yieldIfOver();
  t.equal(others, 0);
  // On a busy machine the system may hold up the process for longer than a slice after a yield.
  let isFresh = false;
  for (let round = 0; round < 100 && !isFresh; round += 1) {
    const begun = performance.now();
    while (performance.now() - begun < 5);
    t.ok(slice.isOver);
    await slice.yieldIfOver();
    t.equal(others, 1);
    isFresh = !slice.isOver;
  }
  t.ok(isFresh);
});

t.test('work that begins in one turn shares its time', async (t) => {
  // Each read of the clock takes a quarter of a millisecond.
  let nowMs = performance.now();
  t.intercept(performance, 'now', {
    value: () => {
      nowMs += 0.25;
      return nowMs;
    },
  });
  await immediate();
  const lengthOf = (): number => {
    const begun = nowMs;
    for (const slice = new Slice(); !slice.isOver; );
    return nowMs - begun;
  };
  const first = lengthOf();
  const others = Array.from({ length: 9 }, lengthOf);
  t.ok(first >= 4, `${first} ms for the first`);
  t.ok(Math.max(...others) < 2, `${others.join(', ')} ms for the others`);
  t.ok(Math.min(...others) >= 1, 'a short request needs no second turn');
  await immediate();
  t.ok(lengthOf() >= 4, 'the time starts again with the next turn');
});

t.test('a long list is mapped in order, and others run meanwhile', async (t) => {
  let others = 0;
  const ticking = setInterval(() => {
    others += 1;
  }, 1);
  const items = Array.from({ length: 1_000 }, (_, index) => index);
  const results = await mapped(items, (item) => {
    const begun = performance.now();
    while (performance.now() - begun < 0.05);
    return 2 * item;
  });
  clearInterval(ticking);
  t.same(
    results,
    items.map((item) => 2 * item),
  );
  t.ok(others > 2, `${others} times`);
});
