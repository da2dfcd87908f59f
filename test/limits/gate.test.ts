import t from 'tap';
import { Concurrency, Gate, type Leave } from '../../src/limits/gate.ts';

t.test('so many are inside, a few wait in their order, the rest is turned away', async (t) => {
  const gate = new Gate({ runningMax: 2, waitingMax: 2, waitMsMax: 60_000 });
  const first = (await gate.enter()) as Leave;
  const second = (await gate.enter()) as Leave;
  const order: string[] = [];
  const waiting = ['a', 'b'].map(async (name) => {
    const leave = await gate.enter();
    order.push(name);
    return leave;
  });
  t.equal(await gate.enter(), null);
  t.same([gate.running, gate.waiting], [2, 2]);
  first();
  first();
  const a = await waiting[0];
  t.same(order, ['a'], 'leaving twice lets one in');
  second();
  const b = await waiting[1];
  t.same(order, ['a', 'b']);
  a?.();
  b?.();
  t.same([gate.running, gate.waiting], [0, 0]);
});

t.test('who waited too long goes, and takes no place', async (t) => {
  const gate = new Gate({ runningMax: 1, waitingMax: 1, waitMsMax: 5 });
  const leave = await gate.enter();
  t.equal(await gate.enter(), null);
  leave?.();
  t.same([gate.running, gate.waiting], [0, 0]);
  t.ok(await gate.enter());
});

t.test('each name has its own places; 0 is no limit; nothing is left behind', async (t) => {
  const concurrency = new Concurrency();
  const a = concurrency.enter('a', 1);
  t.equal(concurrency.enter('a', 1), null);
  const b = concurrency.enter('b', 1);
  const more = [0, 0, 0].map((most) => concurrency.enter('a', most));
  for (const leave of [a, b, ...more]) leave?.();
  a?.();
  t.equal(concurrency.size, 0);
  t.ok(concurrency.enter('a', 1));
});
