import { setTimeout as after } from 'node:timers/promises';
import t from 'tap';
import { type ZipEntry, zipSlices } from '../../src/std/zip.ts';

t.test('a reader that stops while the next entry is made ends the entries', async (t) => {
  const log: string[] = [];
  const asked = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  async function* entries(): AsyncGenerator<ZipEntry> {
    try {
      yield { path: 'first', slices: [Buffer.alloc(1_000)] };
      asked.resolve();
      await made.promise;
      yield { path: 'second', slices: [Buffer.alloc(1_000)] };
      log.push('more was asked for');
    } finally {
      log.push('ended');
    }
  }
  const slices = zipSlices(entries());
  await slices.next();
  await asked.promise;
  const stopped = slices.return(undefined).then(() => 'stopped');
  made.resolve();
  t.equal(await Promise.race([stopped, after(5_000, 'waits', { ref: false })]), 'stopped');
  t.same(log, ['ended']);
});
