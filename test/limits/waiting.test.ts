import fc from 'fast-check';
import t from 'tap';
import { Buckets, PeerShare, type Rate } from '../../src/limits/bucket.ts';

const TURN_MS = 1_000;

interface SimulatedInstance {
  readonly buckets: Buckets;
  /** When it exchanges next, and when it read the others last. */
  nextMs: number;
  readMs: number | null;
  /** The units that the other instances consumed and this one has not read. */
  told: number[];
}

/** Instances that exchange their counts once a second, each with its own phase. */
class Instances {
  readonly #all: SimulatedInstance[];
  readonly #rate: Rate;

  constructor(rate: Rate, offsets: readonly number[]) {
    this.#rate = rate;
    this.#all = offsets.map((nextMs) => {
      return { buckets: new Buckets(10), nextMs, readMs: null, told: [] };
    });
    for (const { buckets } of this.#all) buckets.setPeers(offsets.length - 1);
  }

  ask(at: number, nowMs: number) {
    for (;;) {
      const [due] = this.#all.toSorted((a, b) => a.nextMs - b.nextMs);
      if (due === undefined || due.nextMs > nowMs) break;
      this.#exchange(due);
    }
    return this.#all[at % this.#all.length]?.buckets.take('a', this.#rate, nowMs);
  }

  /** One of them is gone, without a last word. */
  lose(at: number): void {
    this.#all.splice(at, 1);
  }

  #exchange(one: SimulatedInstance): void {
    const taken = one.buckets.drain().get('a') ?? 0;
    for (const other of this.#all) if (other !== one) other.told.push(taken);
    const { told, readMs, nextMs } = one;
    const since = readMs ?? nextMs;
    for (const count of told)
      if (count > 0) one.buckets.addPeerCount('a', count, this.#rate, since);
    one.told = [];
    one.readMs = nextMs;
    one.nextMs += TURN_MS;
  }
}

/** Asks 100 times a second, and is silent as told; how often that was, and how often in vain. */
function inVain(instances: Instances, turn: (asked: number) => number): [number, number] {
  let [nowMs, retries, refused, hasWaited] = [10_000, 0, 0, false];
  for (let requests = 0; nowMs < 310_000; requests += 1) {
    const verdict = instances.ask(turn(requests), nowMs);
    if (hasWaited) retries += 1;
    if (hasWaited && !verdict?.isAllowed) refused += 1;
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

t.test(
  'a client that waits for the reported time is answered, also by several instances in turn',
  async (t) => {
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
  },
);

t.test('a client of one instance waits no longer than with a single instance', async (t) => {
  const rate = { perMinute: 600, burst: 60 };
  const retries = [[0, 500], [0]].map((offsets) => {
    const instances = new Instances(rate, offsets);
    // The other instances have had the time to report zero use.
    for (const nowMs of [1_000, 5_000]) instances.ask(0, nowMs);
    return inVain(instances, () => 0)[0];
  });
  t.ok((retries[0] ?? 0) > 10);
  t.equal(retries[0], retries[1]);
});

/** The longest wait that one tells at twice the rate, once the other, asked until then, is gone. */
function afterLoss(rate: Rate, offsets: readonly [number, number], lostMs: number): number {
  const instances = new Instances(rate, offsets);
  const apartMs = 30_000 / rate.perMinute;
  let longest = 0;
  let isLost = false;
  for (let nowMs = 10_000; nowMs < lostMs + 120_000; nowMs += apartMs) {
    if (!isLost && nowMs >= lostMs) {
      instances.lose(1);
      isLost = true;
    }
    const verdict = instances.ask(isLost ? 0 : 1, nowMs);
    if (isLost && verdict?.isAllowed === false) longest = Math.max(longest, verdict.resetSeconds);
  }
  return longest;
}

t.test('a client of an instance that has stopped is not rejected for long', async (t) => {
  const all = fc.constantFrom(
    { perMinute: 30, burst: 30 },
    { perMinute: 60, burst: 6 },
    { perMinute: 600, burst: 60 },
    { perMinute: 6_000, burst: 100 },
  );
  const lost = fc.integer({ min: 300_000, max: 300_000 + TURN_MS });
  let refused = 0;
  fc.assert(
    fc.property(all, offset, offset, lost, (rate, first, second, lostMs) => {
      const longest = afterLoss(rate, [first, second], lostMs);
      if (longest > 0) refused += 1;
      return longest <= 10;
    }),
    { numRuns: 100, seed: 35 },
  );
  t.equal(refused, 100);
});

t.test('reported counts of other instances decay, also with few requests', async (t) => {
  const share = new PeerShare();
  share.addPeerRequests(400);
  share.endPeriod(1);
  t.ok(share.peerRequests(10) > 100);
  for (let turn = 0; turn < 60; turn += 1) share.endPeriod(0);
  t.equal(share.peerRequests(10), 0);
});
