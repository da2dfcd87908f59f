import fc from 'fast-check';
import t from 'tap';
import { Buckets, type Rate } from '../../src/limits/bucket.ts';

const TURN_MS = 1_000;

interface Instance {
  readonly buckets: Buckets;
  /** When it exchanges next, and when it read the others last. */
  nextMs: number;
  readMs: number | null;
  /** What the others took, and it has not read. */
  told: number;
}

/** Instances that tell each other once a second what they took, each at its own moment. */
class Instances {
  readonly #all: Instance[];
  readonly #rate: Rate;

  constructor(rate: Rate, offsets: readonly number[]) {
    this.#rate = rate;
    this.#all = offsets.map((nextMs) => {
      return { buckets: new Buckets(10), nextMs, readMs: null, told: 0 };
    });
  }

  ask(at: number, nowMs: number) {
    for (;;) {
      const [due] = this.#all.toSorted((a, b) => a.nextMs - b.nextMs);
      if (due === undefined || due.nextMs > nowMs) break;
      this.#exchange(due);
    }
    return this.#all[at % this.#all.length]?.buckets.take('a', this.#rate, nowMs);
  }

  #exchange(one: Instance): void {
    const taken = one.buckets.drain().get('a') ?? 0;
    for (const other of this.#all) if (other !== one) other.told += taken;
    const { told, readMs, nextMs } = one;
    if (told > 0) one.buckets.takenElsewhere('a', told, this.#rate, readMs ?? nextMs);
    one.told = 0;
    one.readMs = nextMs;
    one.nextMs += TURN_MS;
  }
}

/** When it is known who else is asked: before that nobody can tell what they take. */
const MET_MS = 20_000;

/** Asks 100 times a second, and is silent as told; how often that was, and how often in vain. */
function inVain(instances: Instances, turn: (asked: number) => number): [number, number] {
  let [nowMs, retries, refused, hasWaited] = [10_000, 0, 0, false];
  for (let asked = 0; nowMs < 310_000; asked += 1) {
    const verdict = instances.ask(turn(asked), nowMs);
    if (hasWaited && nowMs > MET_MS) retries += 1;
    if (hasWaited && nowMs > MET_MS && !verdict?.isAllowed) refused += 1;
    hasWaited = verdict?.isAllowed === false;
    nowMs += hasWaited ? (verdict?.resetSeconds ?? 0) * 1_000 : 10;
  }
  return [retries, refused];
}

const rates = fc.constantFrom(
  { perMinute: 60, burst: 5 },
  { perMinute: 600, burst: 60 },
  { perMinute: 6_000, burst: 100 },
);
const offset = fc.integer({ min: 0, max: TURN_MS - 1 });

t.test('whoever waits as told is answered, also by several instances in turn', async (t) => {
  const most = { retries: 0, refused: 0 };
  fc.assert(
    fc.property(rates, fc.array(offset, { minLength: 2, maxLength: 4 }), (rate, offsets) => {
      const [retries, refused] = inVain(new Instances(rate, offsets), (asked) => asked);
      most.retries += retries;
      most.refused += refused;
    }),
    { numRuns: 50, seed: 35 },
  );
  t.ok(most.retries > 1_000, `${most.retries} retries`);
  t.ok(most.refused <= most.retries / 100, `${most.refused} of ${most.retries} in vain`);
});

t.test('who stays with one instance waits no longer than if there was no other', async (t) => {
  const rate = { perMinute: 600, burst: 60 };
  const [retries] = inVain(new Instances(rate, [0, 500]), () => 0);
  const [alone] = inVain(new Instances(rate, [0]), () => 0);
  t.equal(retries, alone);
});
