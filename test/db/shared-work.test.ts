import t from 'tap';
import { cachedByRevision } from '../../src/db/shared-work.ts';

/** A load by a key, and the keys of its calls. */
function counted(most: number) {
  const loads: string[] = [];
  const read = cachedByRevision<[key: string, load?: () => Promise<string>], string>(
    most,
    (key) => key,
    async (key, load) => {
      loads.push(key);
      return load ? load() : `${key} ${loads.length}`;
    },
  );
  return { loads, read };
}

t.test('a result is cached, and a running load is shared', async (t) => {
  const { read } = counted(2);
  t.same(await Promise.all([read('a'), read('a'), read('b')]), ['a 1', 'a 1', 'b 2']);
  t.same([await read('a'), await read('b')], ['a 1', 'b 2']);
});

t.test('the least recently used entry is evicted first', async (t) => {
  const { read, loads } = counted(2);
  for (const key of ['a', 'b', 'a', 'c']) await read(key);
  t.same(loads, ['a', 'b', 'c']);
  for (const key of ['a', 'c', 'b']) await read(key);
  t.same(loads, ['a', 'b', 'c', 'b']);
});

t.test('a failed read rejects all its callers, and is run again', async (t) => {
  const { read } = counted(2);
  const failing = async (): Promise<string> => {
    throw new Error('away');
  };
  const waiting = [read('a', failing), read('a')];
  for (const each of waiting) await t.rejects(each, { message: 'away' });
  t.equal(await read('a'), 'a 2');
});

t.test('a failure that comes late takes nothing away that was read since', async (t) => {
  const { read } = counted(1);
  const late = Promise.withResolvers<string>();
  const waiting = read('a', () => late.promise);
  await read('b');
  t.equal(await read('a'), 'a 3');
  late.reject(new Error('away'));
  await t.rejects(waiting, { message: 'away' });
  t.equal(await read('a'), 'a 3');
});
