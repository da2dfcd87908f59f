import { once } from 'node:events';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { fastify } from 'fastify';
import t from 'tap';
import { BodyStream } from '../../src/std/body-stream.ts';

/** A sink like a fast client; it records each write. */
class Taker extends Writable {
  readonly writes: Buffer[] = [];
  readonly #taken: (bytes: Buffer) => void;

  constructor(taken: (bytes: Buffer) => void = () => {}) {
    super({ highWaterMark: 16_384 });
    this.#taken = taken;
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(Buffer.from(bytes));
    this.#taken(bytes);
    done();
  }
}

async function written(batches: readonly (readonly Buffer[])[], isKnown: boolean, taker: Taker) {
  const all = Buffer.concat(batches.flat());
  new BodyStream({ batches, bytes: isKnown ? all.length : null }).pipe(taker);
  await once(taker, 'finish');
  return { all, writes: taker.writes };
}

t.test('a body arrives as it is, in writes of 512 KiB at most', async (t) => {
  const slice = fc
    .tuple(fc.nat(255), fc.oneof(fc.nat(2_000), fc.nat(1_200_000)))
    .map(([fill, length]) => Buffer.alloc(length, fill));
  const batch = fc.array(slice, { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { maxLength: 4 }), fc.boolean(), async (batches, isKnown) => {
      const { all, writes } = await written(batches, isKnown, new Taker());
      if (!Buffer.concat(writes).equals(all)) throw new Error('other bytes');
      if (writes.some(({ length }) => length > 524_288)) throw new Error('a longer write');
    }),
    { numRuns: 50 },
  );
  t.pass();
});

t.test('a body of known length ends with its last byte, whatever it waits for then', async (t) => {
  const taker = new Taker();
  const body = new BodyStream({ batches: [[Buffer.alloc(40_000)]], bytes: 40_000 });
  body.afterWrite = () => new Promise(() => {});
  body.pipe(taker);
  await once(taker, 'finish');
  t.equal(Buffer.concat(taker.writes).length, 40_000);
});

t.test('others run between the writes of a body that is taken at once', async (t) => {
  const begun = performance.now();
  let since = 0;
  let most = 0;
  // Simulates a slow socket; synchronous writes of Node stay synchronous.
  const taker = new Taker(() => {
    since += 1;
    most = Math.max(most, since);
    const end = performance.now() + 2;
    while (performance.now() < end);
  });
  let isOver = false;
  const others = (): void => {
    since = 0;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  const { writes } = await written([[Buffer.alloc(8_388_608)]], true, taker);
  isOver = true;
  t.equal(writes.length, 16);
  t.ok(most <= 2, `${most} writes in one turn, ${Math.round(performance.now() - begun)} ms in all`);
});

t.test('Fastify sends a body by its own pipe', async (t) => {
  let isPiped = false;
  class Observed extends BodyStream {
    override pipe<T extends NodeJS.WritableStream>(destination: T): T {
      isPiped = true;
      return super.pipe(destination);
    }
  }
  const app = fastify();
  t.teardown(() => app.close());
  app.get('/', (_request, reply) =>
    reply.send(new Observed({ batches: [[Buffer.from('a'), Buffer.from('b')]], bytes: 2 })),
  );
  t.equal((await app.inject('/')).body, 'ab');
  t.ok(isPiped);
});
