import t from 'tap';
import { Budget } from '../../src/book/budget.ts';
import { HELD_BYTES, isAskedAgain, Layout, rememberLayout } from '../../src/book/layout.ts';

const PARTS = [3, 20_000, 5, 7, 9_000, 1, 70_000, 2].map((length, index) =>
  Buffer.alloc(length, index + 65),
);
const WHOLE = Buffer.concat(PARTS);

const METADATA = {
  market: 'nickel',
  revision: '1.2',
  asOf: '2026-03-02T10:00:00Z',
  count: 3,
  nextCursor: null,
  warnings: [],
};

/** Of a budget of which the answer would take more than a copy of it may. */
const TIGHT = 31 * WHOLE.length;
const WIDE = 33 * WHOLE.length;

const layoutIn = (of: Map<string, Layout>, text = 'asked', limit = TIGHT): Layout => {
  const layout = new Layout({ of, text, asked: new Set() }, METADATA, PARTS, limit);
  of.set(text, layout);
  return layout;
};

t.test('a layout has the bytes of its parts, the small ones joined', async (t) => {
  const layout = layoutIn(new Map());
  const { slices, length } = layout;
  t.ok(Buffer.concat(slices ?? []).equals(WHOLE));
  t.equal(length, WHOLE.length);
  t.ok((slices?.length ?? 0) < PARTS.length);
});

t.test('a copy has the bytes of its parts, all of them its own and counted', async (t) => {
  const copy = layoutIn(new Map(), 'asked', WIDE);
  t.ok(Buffer.concat(copy.slices ?? []).equals(WHOLE));
  t.equal(copy.slices?.length, 1);
  const memory = new Set<ArrayBufferLike>(PARTS.map(({ buffer }) => buffer));
  t.notOk(copy.slices?.some(({ buffer }) => memory.has(buffer)));
  t.ok(copy.bytes > WHOLE.length);
  const { bytes, slices } = layoutIn(new Map());
  t.ok(slices?.some(({ buffer }) => memory.has(buffer)));
  t.ok(bytes < WHOLE.length, 'what is held of others counts there');
});

t.test('no answer is copied that a reader must not hold as a whole', async (t) => {
  const part = Buffer.alloc(HELD_BYTES + 1);
  const key = { of: new Map(), text: 'asked', asked: new Set<number>() };
  const layout = new Layout(key, METADATA, [part], 2 ** 40);
  t.equal(layout.slices?.[0], part);
});

t.test('a copy goes when it was used longest ago, like anything', async (t) => {
  const of = new Map<string, Layout>();
  const [one, other, last] = ['one', 'other', 'last'].map((text) => layoutIn(of, text, WIDE));
  if (!one || !other || !last) throw new Error('three are made');
  const budget = new Budget(2.5 * one.bytes);
  t.ok(budget.add(one) && budget.add(other));
  budget.use(one);
  t.ok(budget.add(last));
  t.strictSame([...of.keys()], ['one', 'last']);
});

t.test('a reader has the same bytes, wherever the layout is forgotten meanwhile', async (t) => {
  const { slices } = layoutIn(new Map());
  for (let stop = 0; stop <= (slices?.length ?? 0); stop += 1) {
    const layout = layoutIn(new Map());
    const read: Buffer[] = [];
    if (stop === 0) layout.forget();
    for (const slice of layout.slicesOr(() => PARTS)) {
      read.push(slice);
      if (read.length === stop) layout.forget();
    }
    t.ok(Buffer.concat(read).equals(WHOLE), `forgotten after ${stop} slices`);
  }
});

t.test('layouts that hold parts of others go before them', async (t) => {
  const of = new Map<string, Layout>();
  const [one, other, last] = [layoutIn(of, 'one'), layoutIn(of, 'other'), layoutIn(of, 'last')];
  const budget = new Budget(2.5 * one.bytes);
  t.ok(budget.add(one) && budget.add(other));
  t.equal(of.size, 3);
  t.ok(budget.add(last));
  t.strictSame([one.slices, other.slices], [null, null]);
  t.strictSame([...of.keys()], ['last']);
  t.strictSame([budget.state.things, budget.state.bytes], [1, last.bytes]);
});

t.test('of one form a thousand are remembered, and the first goes for another', async (t) => {
  const of = new Map<string, Layout>();
  const budget = new Budget(2 ** 30);
  for (let at = 0; at < 1_003; at += 1) {
    const key = { of, text: `asked ${at}`, asked: new Set<number>() };
    const layout = new Layout(key, METADATA, [Buffer.from('x')], 2 ** 30);
    budget.add(layout);
    rememberLayout(key, layout, budget);
  }
  t.strictSame([of.size, budget.state.things], [1_000, 1_000]);
  t.notOk(of.has('asked 2'));
  t.ok(of.has('asked 3'));
});

t.test('only what is asked again is remembered, and of what is asked once not much', async (t) => {
  const asked = new Set<number>();
  const isAgain = (text: string) => isAskedAgain({ of: new Map(), asked, text });
  t.strictSame([isAgain('one'), isAgain('other'), isAgain('one')], [false, false, true]);
  for (let n = 0; n < 10_000; n += 1) isAgain(`${n}`);
  t.equal(asked.size, 1_000);
  t.equal(isAgain('9999'), true);
  t.equal(isAgain('8'), false, 'that was too long ago');
});
