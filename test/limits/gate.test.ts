import t from 'tap';
import { Gate, strangersOf } from '../../src/limits/gate.ts';
import { QueueGroup, type Release } from '../../src/std/semaphore.ts';

const HOUR_MS = 3_600_000;

const gateOf = (runningMax: number, waitingMax: number): Gate =>
  new Gate({ runningMax, waitingMax, waitMs: HOUR_MS });

const releaseAll = (releases: readonly (Release | null)[]): void => {
  for (const release of releases) release?.();
};

t.test(
  'one principal has a quarter of the places and of the queue, and blocks no other',
  async (t) => {
    const gate = gateOf(8, 8);
    const running = [gate.tryAcquire('a'), gate.tryAcquire('a')];
    t.notOk(running.includes(null));
    t.equal(gate.tryAcquire('a'), null);
    const queued = [gate.acquire('a'), gate.acquire('a')];
    t.equal(await gate.acquire('a'), null, 'its part of the queue is full');
    t.equal(gate.reserve('a'), null);
    t.same([gate.inUse, gate.waiting], [2, 2]);
    const other = gate.tryAcquire('b');
    t.not(other, null, 'its waiters block nobody');
    releaseAll(running);
    releaseAll([...(await Promise.all(queued)), other]);
    t.same([gate.inUse, gate.waiting], [0, 0]);
  },
);

t.test('at least one place and one in the queue, but none of a queue without any', async (t) => {
  const small = gateOf(1, 1);
  const place = small.tryAcquire('a');
  const queued = small.acquire('a');
  t.equal(await small.acquire('b'), null, 'waiters of a principal count in the queue of all');
  place?.();
  (await queued)?.();
  const none = gateOf(1, 0);
  const only = none.tryAcquire('a');
  t.equal(await none.acquire('a'), null);
  t.equal(await none.acquire('b'), null);
  only?.();
  t.not(none.tryAcquire('b'), null);
});

t.test('a place is reserved until the checks are over, for the request that has it', async (t) => {
  const gate = gateOf(1, 1);
  const reserved = [gate.reserve('c'), gate.reserve('a')];
  t.notOk(reserved.includes(null));
  t.equal(gate.reserve('b'), null);
  t.equal(gate.tryAcquire('b'), null, 'a free place may be reserved');
  releaseAll(reserved.slice(0, 1));
  const place = gate.tryAcquire('c');
  t.not(place, null);
  releaseAll(reserved.slice(1));
  const queued = gate.acquire('a');
  place?.();
  (await queued)?.();
  t.equal(gate.inUse, 0);
});

t.test('answers that continue take turns with new requests, without a bound', async (t) => {
  const gate = gateOf(1, 2);
  const order: string[] = [];
  const enter = async (name: string, options?: Parameters<Gate['acquire']>[1]) => {
    const release = await gate.acquire(name, options);
    order.push(name);
    release?.();
  };
  const place = gate.tryAcquire('a');
  const waiting = [
    ...['b', 'c', 'd'].map((name) => enter(name, { isUntimed: true })),
    enter('new'),
    enter('newer'),
  ];
  // They wait in the queue of all before the place is released.
  await new Promise((resolve) => setImmediate(resolve));
  place?.();
  await Promise.all(waiting);
  t.same(order, ['b', 'new', 'c', 'newer', 'd']);
});

t.test('strangers of one network have a quarter, also of the backlog', async (t) => {
  const group = new QueueGroup();
  const gate = new Gate({ runningMax: 4, waitingMax: 4, waitMs: 1 }, group);
  for (let request = 0; request < 40; request += 1) gate.tryAcquire('a')?.();
  group.pause();
  const reserved = Array.from({ length: 200 }, () => gate.reserve(strangersOf('192.0.2.7')));
  const count = reserved.filter((each) => each !== null).length;
  t.ok(count > 0 && count <= 30, `${count} of strangers`);
  t.not(gate.reserve('a'), null, 'others have the rest');
  for (const each of reserved) each?.();
  group.resume();
});

t.test('an aborted waiter releases what it has, and idle principals are forgotten', async (t) => {
  const group = new QueueGroup();
  const queues = new Set<unknown>();
  const add = group.add.bind(group);
  group.add = (queue) => {
    queues.add(queue);
    add(queue);
  };
  const remove = group.remove.bind(group);
  group.remove = (queue) => {
    queues.delete(queue);
    remove(queue);
  };
  const gate = new Gate({ runningMax: 1, waitingMax: 4, waitMs: HOUR_MS }, group);
  const place = gate.tryAcquire('a');
  const ending = new AbortController();
  const aborted = ['a', 'b'].map((name) => gate.acquire(name, { signal: ending.signal }));
  ending.abort(new Error('gone'));
  for (const each of aborted) await t.rejects(each, { message: 'gone' });
  place?.();
  t.same([gate.inUse, gate.waiting, queues.size], [0, 0, 1]);
});

t.test('a backlog of one principal is bounded as that of all', async (t) => {
  const group = new QueueGroup();
  const gate = new Gate({ runningMax: 4, waitingMax: 4, waitMs: 1 }, group);
  for (let request = 0; request < 30; request += 1) gate.tryAcquire('a')?.();
  group.pause();
  const parked = Array.from({ length: 60 }, () => gate.acquire('a'));
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(gate.waiting, 60);
  group.resume();
  for (const each of parked) {
    const place = await each;
    t.not(place, null);
    place?.();
  }
  t.notOk(group.isCatchingUp);
});
