import t from 'tap';
import { type EnterOptions, type LineBounds, Lines, Places } from '../../src/std/places.ts';
import { failureOf } from '../support/database/world.ts';
import { until } from '../support/http/sockets.ts';

const HOUR_MS = 3_600_000;
const GONE = new Error('connect ECONNREFUSED');

/** Places whose dependency only the test interrupts. */
function placesWith(most: number, usual: LineBounds, catchUp: LineBounds) {
  const lines = new Lines({ catchUp });
  const places = new Places(most, usual, lines);
  const entered: string[] = [];
  const enter = async (name: string, options?: EnterOptions) => {
    const leave = await places.enter(options);
    entered.push(leave === null ? `${name} refused` : name);
    return leave;
  };
  return { lines, places, entered, enter };
}

t.test('so many are inside, a few wait in their order, the rest is refused', async (t) => {
  const places = new Places(2, { waitingMax: 2, waitMs: HOUR_MS });
  const [first, second] = [places.take(), await places.enter()];
  const order: string[] = [];
  const waiting = ['a', 'b'].map(async (name) => {
    const leave = await places.enter();
    order.push(name);
    return leave;
  });
  t.ok(places.isFull);
  t.same([places.take(), await places.enter()], [null, null]);
  t.same([places.taken, places.waiting], [2, 2]);
  first?.();
  first?.();
  const a = await waiting[0];
  t.same(order, ['a'], 'leaving twice admits one');
  second?.();
  const b = await waiting[1];
  t.same(order, ['a', 'b']);
  a?.();
  b?.();
  t.same([places.taken, places.waiting], [0, 0]);
});

t.test('a waiter that waited too long, or left, takes no place', async (t) => {
  const places = new Places(1, { waitingMax: 1, waitMs: 5 });
  const leave = places.take();
  t.equal(await places.enter(), null);
  const leaving = new AbortController();
  const left = failureOf(places.enter({ signal: leaving.signal, isPatient: true }));
  leaving.abort(new Error('gone'));
  t.match(await left, { message: 'gone' });
  t.match(await failureOf(places.enter({ signal: leaving.signal })), { message: 'gone' });
  leave?.();
  t.same([places.taken, places.waiting, places.backlog], [0, 0, 0]);
  t.ok(places.take());
});

t.test('the first line goes first; it and those who wait for ever are not counted', async (t) => {
  const bounds = { waitingMax: 1, waitMs: HOUR_MS };
  const { places, entered, enter } = placesWith(1, bounds, bounds);
  const leave = places.take();
  const waiting = [
    enter('patient', { isPatient: true }),
    enter('other'),
    enter('first', { isFirst: true }),
    enter('first too', { isFirst: true }),
  ].map(async (entering) => (await entering)?.());
  await enter('too many');
  leave?.();
  await Promise.all(waiting);
  t.same(entered, ['too many refused', 'first', 'first too', 'patient', 'other']);
});

t.test('an interruption uses up no time limit, and lets more wait, in their order', async (t) => {
  const catchUp = { waitingMax: 3, waitMs: HOUR_MS };
  const { lines, places, entered, enter } = placesWith(1, { waitingMax: 1, waitMs: 20 }, catchUp);
  const leave = places.take();
  const before = enter('before');
  lines.pause();
  const parked = ['a', 'b'].map((name) => enter(name));
  await enter('too many');
  leave?.();
  // Longer than any of them may wait at other times.
  const begun = performance.now();
  await until('their usual time is over', () => performance.now() - begun > 60);
  t.same([places.taken, places.waiting, entered], [0, 3, ['too many refused']]);
  lines.resume();
  for (const each of [before, ...parked]) (await each)?.();
  t.same(entered, ['too many refused', 'before', 'a', 'b']);
  t.same([places.waiting, lines.catchUp], [0, null]);
});

t.test('the wider bounds hold until all lines were empty at once', async (t) => {
  const usual = { waitingMax: 1, waitMs: HOUR_MS };
  const { lines, places, enter } = placesWith(1, usual, { waitingMax: 3, waitMs: HOUR_MS });
  const other = new Places(1, usual, lines);
  const [leave, inside] = [places.take(), other.take()];
  lines.pause();
  const waiting = [enter('a'), enter('b'), enter('c')];
  const behind = other.enter();
  lines.resume();
  await Promise.resolve();
  t.ok(places.isFull);
  leave?.();
  for (const each of waiting) (await each)?.();
  t.not(lines.catchUp, null, 'another line has a waiter');
  inside?.();
  (await behind)?.();
  t.equal(lines.catchUp, null);
});

t.test('a database that is back and too slow for its backlog is overload', async (t) => {
  const catchUp = { waitingMax: 9, waitMs: 20 };
  const { lines, places, entered, enter } = placesWith(1, { waitingMax: 1, waitMs: 1 }, catchUp);
  // A line in which somebody may wait for longer.
  const other = new Places(1, { waitingMax: 1, waitMs: HOUR_MS }, lines);
  const leave = other.take();
  places.take();
  lines.pause();
  const behind = other.enter();
  const waiting = ['a', 'b'].map((name) => enter(name));
  lines.resume();
  await Promise.all(waiting);
  t.same([entered, other.waiting], [['a refused', 'b refused'], 1]);
  t.equal(lines.catchUp, null, 'newcomers are refused as at any time');
  leave?.();
  await behind;
});

t.test('no time limit ends before it is known that the database is still there', async (t) => {
  const lines: Lines = new Lines({ verify: async () => lines.pause() });
  const places = new Places(1, { waitingMax: 1, waitMs: 5 }, lines);
  const leave = places.take();
  const waiting = places.enter();
  await until('its time is over', () => lines.isAway);
  t.equal(places.waiting, 1);
  lines.resume();
  leave?.();
  t.not(await waiting, null);
});

t.test('the backlog is not over before the connections are made', async (t) => {
  const usual = { waitingMax: 1, waitMs: HOUR_MS };
  const { lines } = placesWith(1, usual, usual);
  const warm = Promise.withResolvers<void>();
  lines.pause();
  lines.warmUp(warm.promise);
  lines.resume();
  lines.settle();
  lines.giveUp();
  t.not(lines.catchUp, null);
  warm.resolve();
  await warm.promise;
  t.equal(lines.catchUp, null);
});

t.test('a move to another server lets those wait longer who wait already', async (t) => {
  const usual = { waitingMax: 1, waitMs: 20 };
  const { lines, places, entered, enter } = placesWith(1, usual, { ...usual, waitMs: HOUR_MS });
  const leave = places.take();
  const waiting = enter('a');
  const warm = Promise.withResolvers<void>();
  lines.warmUp(warm.promise);
  const begun = performance.now();
  await until('its usual time is over', () => performance.now() - begun > 60);
  t.same([places.waiting, entered], [1, []]);
  leave?.();
  t.not(await waiting, null);
  warm.resolve();
});

t.test('all who wait are refused once the database was away for too long', async (t) => {
  const usual = { waitingMax: 9, waitMs: HOUR_MS };
  const { lines, places } = placesWith(1, usual, usual);
  const leave = places.take();
  const line = failureOf(places.enter());
  lines.pause();
  const parked = failureOf(places.enter());
  lines.refuse(() => new Error(GONE.message));
  const [one, other] = await Promise.all([line, parked]);
  t.same([one.message, other.message], [GONE.message, GONE.message]);
  t.not(one, other, 'each has a refusal of its own');
  t.equal(places.waiting, 0);
  leave?.();
  t.ok(places.take(), 'what needs no database goes on');
});
