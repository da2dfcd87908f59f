import fc from 'fast-check';
import t from 'tap';
import { Buckets, type Rate } from '../../src/limits/bucket.ts';

/** Tokens that drip into a bucket, in exact fractions of a minute: the plain definition. */
class Dripping {
  #owed = 0n;
  #atMs = 0;
  readonly #rate: Rate;

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  take(nowMs: number): boolean {
    const dripped = BigInt(nowMs - this.#atMs) * BigInt(this.#rate.perMinute);
    this.#owed = this.#owed > dripped ? this.#owed - dripped : 0n;
    this.#atMs = nowMs;
    if (this.#owed + 60_000n > BigInt(this.#rate.burst) * 60_000n) return false;
    this.#owed += 60_000n;
    return true;
  }
}

const rates = fc.record({
  perMinute: fc.constantFrom(1, 6, 30, 60, 600, 6_000),
  burst: fc.integer({ min: 1, max: 100 }),
});
const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 })), {
  maxLength: 300,
});

t.test('a bucket allows exactly what drips into it', async (t) => {
  fc.assert(
    fc.property(rates, gaps, (rate, waits) => {
      const buckets = new Buckets(10);
      const plain = new Dripping(rate);
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        if (buckets.take('a', rate, nowMs).isAllowed !== plain.take(nowMs)) return false;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass();
});

t.test('a client that waits for the reported time succeeds', async (t) => {
  fc.assert(
    fc.property(rates, gaps, (rate, waits) => {
      const buckets = new Buckets(10);
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        const { isAllowed, resetSeconds } = buckets.take('a', rate, nowMs);
        if (isAllowed) continue;
        if (resetSeconds < 1) return false;
        nowMs += resetSeconds * 1000;
        if (!buckets.take('a', rate, nowMs).isAllowed) return false;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass();
});

t.test('the remaining count is the number of requests allowed at once', async (t) => {
  fc.assert(
    fc.property(rates, gaps, (rate, waits) => {
      const buckets = new Buckets(10);
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        buckets.take('a', rate, nowMs);
      }
      const { remaining } = buckets.peek('a', rate, nowMs);
      let allowed = 0;
      while (buckets.take('a', rate, nowMs).isAllowed) allowed += 1;
      return allowed === remaining;
    }),
    { numRuns: 300 },
  );
  t.pass();
});

t.test('beyond the maximum, the name used longest ago is forgotten', async (t) => {
  const rate = { perMinute: 60, burst: 10 };
  const buckets = new Buckets(3);
  for (const name of ['a', 'b', 'c']) buckets.take(name, rate, 0);
  buckets.take('a', rate, 0);
  buckets.take('d', rate, 0);
  t.equal(buckets.size, 3);
  const remaining = ['a', 'b', 'c', 'd'].map((name) => buckets.peek(name, rate, 0).remaining);
  t.same(remaining, [8, 10, 9, 9]);
});

t.test('a request that was allowed at its start is charged even to an empty bucket', async (t) => {
  const buckets = new Buckets(10);
  const rate = { perMinute: 30, burst: 30 };
  for (let each = 0; each < 94; each += 1) buckets.charge('a', rate, 0);
  t.same(buckets.peek('a', rate, 0), { isAllowed: false, remaining: 0, resetSeconds: 130 });
  t.equal(buckets.peek('a', rate, 129_999).isAllowed, false, '64 more are owed, of 2 s each');
  t.equal(buckets.peek('a', rate, 130_000).isAllowed, true);
  t.equal(buckets.peek('a', rate, 130_000).remaining, 1);
});
