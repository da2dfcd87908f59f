import t from 'tap';
import {
  type AcquireOptions,
  type QueueBounds,
  QueueGroup,
  Semaphore,
} from '../../src/std/semaphore.ts';
import { failureOf } from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';

const HOUR_MS = 3_600_000;
const GONE = new Error('connect ECONNREFUSED');

/** A semaphore whose dependency only the test interrupts. */
function semaphoreWith(most: number, usual: QueueBounds) {
  const group = new QueueGroup();
  const semaphore = new Semaphore(most, usual, group);
  const entered: string[] = [];
  const enter = async (name: string, options?: AcquireOptions) => {
    const release = await semaphore.acquire(options);
    entered.push(release === null ? `${name} refused` : name);
    return release;
  };
  return { group, semaphore, entered, enter };
}

t.test('so many are inside, a few wait in their order, the rest is refused', async (t) => {
  const semaphore = new Semaphore(2, { waitingMax: 2, waitMs: HOUR_MS });
  const [first, second] = [semaphore.tryAcquire(), await semaphore.acquire()];
  const order: string[] = [];
  const waiting = ['a', 'b'].map(async (name) => {
    const release = await semaphore.acquire();
    order.push(name);
    return release;
  });
  t.ok(semaphore.isFull);
  t.same([semaphore.tryAcquire(), await semaphore.acquire()], [null, null]);
  t.same([semaphore.inUse, semaphore.waiting], [2, 2]);
  first?.();
  first?.();
  const a = await waiting[0];
  t.same(order, ['a'], 'two releases of one slot admit one');
  second?.();
  const b = await waiting[1];
  t.same(order, ['a', 'b']);
  a?.();
  b?.();
  t.same([semaphore.inUse, semaphore.waiting], [0, 0]);
});

t.test('a waiter that timed out or was aborted takes no slot', async (t) => {
  const semaphore = new Semaphore(1, { waitingMax: 1, waitMs: 5 });
  const release = semaphore.tryAcquire();
  t.equal(await semaphore.acquire(), null);
  const abort = new AbortController();
  const aborted = failureOf(semaphore.acquire({ signal: abort.signal, isUntimed: true }));
  abort.abort(new Error('gone'));
  t.match(await aborted, { message: 'gone' });
  t.match(await failureOf(semaphore.acquire({ signal: abort.signal })), { message: 'gone' });
  release?.();
  t.same([semaphore.inUse, semaphore.waiting, semaphore.backlog], [0, 0, 0]);
  t.ok(semaphore.tryAcquire());
});

t.test('the priority queue goes first; its waiters and untimed ones are not counted', async (t) => {
  const bounds = { waitingMax: 1, waitMs: HOUR_MS };
  const { semaphore, entered, enter } = semaphoreWith(1, bounds);
  const release = semaphore.tryAcquire();
  const waiting = [
    enter('patient', { isUntimed: true }),
    enter('other'),
    enter('first', { hasPriority: true }),
    enter('first too', { hasPriority: true }),
  ].map(async (entering) => (await entering)?.());
  await enter('too many');
  release?.();
  await Promise.all(waiting);
  t.same(entered, ['too many refused', 'first', 'first too', 'patient', 'other']);
});

t.test('an interruption uses up no time limit, and lets more wait, in their order', async (t) => {
  const usual = { waitingMax: 1, waitMs: 20 };
  const { group, semaphore, entered, enter } = semaphoreWith(1, usual);
  const release = semaphore.tryAcquire();
  const before = enter('before');
  group.pause();
  const parked = ['a', 'b'].map((name) => enter(name));
  await enter('too many');
  release?.();
  // Longer than any of them may wait at other times.
  const begun = performance.now();
  await until('their usual time is over', () => performance.now() - begun > 60);
  t.same([semaphore.inUse, semaphore.waiting, entered], [0, 3, ['too many refused']]);
  group.resume();
  for (const each of [before, ...parked]) (await each)?.();
  t.same(entered, ['too many refused', 'before', 'a', 'b']);
  t.same([semaphore.waiting, group.isCatchingUp], [0, false]);
});

t.test('twice the requests of an interruption may wait, by the rate before it', async (t) => {
  const { group, semaphore, entered, enter } = semaphoreWith(0, { waitingMax: 0, waitMs: 1 });
  for (let request = 0; request < 50; request += 1) semaphore.tryAcquire()?.();
  group.pause();
  const parked = Array.from({ length: 100 }, (_, at) => enter(String(at)));
  await enter('too many');
  t.same(entered, ['too many refused']);
  group.resume();
  await Promise.all(parked);
  t.same(entered.slice(1), Array.from(parked.keys(), String), 'in their order');
});

t.test(
  'a request that has reserved a place finds one, and no other request takes it',
  async (t) => {
    const { semaphore, entered, enter } = semaphoreWith(1, { waitingMax: 1, waitMs: HOUR_MS });
    const [running, waiting] = [semaphore.reserve(), semaphore.reserve()];
    t.equal(semaphore.reserve(), null);
    await enter('too many');
    running?.();
    running?.();
    const release = await enter('running');
    waiting?.();
    const queued = enter('queued');
    await enter('one more');
    release?.();
    (await queued)?.();
    t.same(entered, ['too many refused', 'running', 'one more refused', 'queued']);
    t.ok(semaphore.isIdle);
  },
);

t.test('the wider bounds hold until all queues were empty at once', async (t) => {
  const usual = { waitingMax: 1, waitMs: HOUR_MS };
  const { group, semaphore, enter } = semaphoreWith(1, usual);
  const other = new Semaphore(1, usual, group);
  const [release, inside] = [semaphore.tryAcquire(), other.tryAcquire()];
  group.pause();
  const waiting = [enter('a'), enter('b'), enter('c')];
  const behind = other.acquire();
  group.resume();
  await Promise.resolve();
  t.ok(semaphore.isFull);
  release?.();
  for (const each of waiting) (await each)?.();
  t.ok(group.isCatchingUp, 'another queue has a waiter');
  inside?.();
  (await behind)?.();
  t.notOk(group.isCatchingUp);
});

t.test('a database that is back and too slow for its backlog is overload', async (t) => {
  const usual = { waitingMax: 1, waitMs: 1 };
  const { group, semaphore, entered, enter } = semaphoreWith(1, usual);
  // A queue whose waiters may wait longer.
  const other = new Semaphore(1, { waitingMax: 1, waitMs: HOUR_MS }, group);
  const release = other.tryAcquire();
  semaphore.tryAcquire();
  group.pause();
  const behind = other.acquire();
  const waiting = ['a', 'b'].map((name) => enter(name));
  group.resume();
  await Promise.all(waiting);
  t.same([entered, other.waiting], [['a refused', 'b refused'], 1]);
  t.notOk(group.isCatchingUp, 'newcomers are refused as at any time');
  release?.();
  await behind;
});

t.test('no time limit ends before it is known that the database is still there', async (t) => {
  const group: QueueGroup = new QueueGroup(async () => group.pause());
  const semaphore = new Semaphore(1, { waitingMax: 1, waitMs: 5 }, group);
  const release = semaphore.tryAcquire();
  const waiting = semaphore.acquire();
  await until('its time is over', () => group.isAway);
  t.equal(semaphore.waiting, 1);
  group.resume();
  release?.();
  t.not(await waiting, null);
});

t.test('nobody is refused before it is known that the database is still there', async (t) => {
  const group: QueueGroup = new QueueGroup(async () => group.pause());
  const semaphore = new Semaphore(1, { waitingMax: 0, waitMs: HOUR_MS }, group);
  const release = semaphore.tryAcquire();
  const waiting = semaphore.acquire();
  await until('it waits', () => semaphore.waiting === 1);
  group.resume();
  release?.();
  t.not(await waiting, null);
});

t.test('the backlog is not over before the connections are made', async (t) => {
  const usual = { waitingMax: 1, waitMs: HOUR_MS };
  const { group } = semaphoreWith(1, usual);
  const warm = Promise.withResolvers<void>();
  group.pause();
  group.recover(warm.promise);
  group.resume();
  group.settle();
  group.reportTimeout();
  t.ok(group.isCatchingUp);
  warm.resolve();
  await warm.promise;
  t.notOk(group.isCatchingUp);
});

t.test('all waiters are rejected once the database was away for too long', async (t) => {
  const usual = { waitingMax: 9, waitMs: HOUR_MS };
  const { group, semaphore } = semaphoreWith(1, usual);
  const release = semaphore.tryAcquire();
  const queued = failureOf(semaphore.acquire());
  group.pause();
  const parked = failureOf(semaphore.acquire());
  group.reject(() => new Error(GONE.message));
  const [one, other] = await Promise.all([queued, parked]);
  t.same([one.message, other.message], [GONE.message, GONE.message]);
  t.not(one, other, 'each has a refusal of its own');
  t.equal(semaphore.waiting, 0);
  release?.();
  t.ok(semaphore.tryAcquire(), 'work without the database continues');
});
