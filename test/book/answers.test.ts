import t from 'tap';
import { HELD_BYTES, joinedSlices, SentAnswers } from '../../src/book/answers.ts';
import { Budget } from '../../src/book/budget.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import type { NewestRevision } from '../../src/db/newest-revision.ts';
import { planOf } from '../../src/prices/plan/plan.ts';

const PARTS = [3, 20_000, 5, 7, 9_000, 1, 70_000, 2].map((length, index) =>
  Buffer.alloc(length, index + 65),
);
const WHOLE = Buffer.concat(PARTS);

const [MARKET] = MARKETS;
const PLAN = planOf(MARKET, () => [], {});
const NEWEST: NewestRevision = {
  epoch: 'e',
  keysVersion: '1',
  revision: '1.a',
  scopes: new Map(),
  order: 1,
  history: 1,
};
const DATA = { epoch: 'e', revision: '1.a', reference: '1.a', committedAt: '2026-03-02T10:00:00Z' };
const SENT = {
  plan: PLAN,
  snapshot: { data: DATA, rates: null },
  tag: null,
  headers: { 'x-data-revision': 'ea.1' },
  wanted: { coding: null, acceptsIdentity: true },
  coding: null,
};

const add = (answers: SentAnswers, request: string) => answers.add(request, SENT, NEWEST, PARTS);

t.test('slices that are joined have the same bytes, the big ones as they were', async (t) => {
  const joined = joinedSlices(PARTS);
  t.ok(Buffer.concat(joined).equals(WHOLE));
  t.ok(joined.length < PARTS.length);
  t.ok(PARTS.filter(({ length }) => length > 8_192).every((part) => joined.includes(part)));
});

t.test('a cached answer is a copy, all of it counted', async (t) => {
  const budget = new Budget(2 ** 30);
  const answers = new SentAnswers(budget);
  add(answers, 'asked');
  const { slices = [], length } = answers.get('asked') ?? {};
  t.ok(Buffer.concat(slices).equals(WHOLE));
  t.equal(length, WHOLE.length);
  const memory = new Set<ArrayBufferLike>(PARTS.map(({ buffer }) => buffer));
  t.notOk(
    slices.some(({ buffer }) => memory.has(buffer)),
    'the copy shares no memory with the parts',
  );
  t.ok(slices.every(({ buffer, byteLength }) => buffer.byteLength === byteLength));
  t.ok(budget.state.bytes > WHOLE.length);
});

t.test(
  'the least recently used answer goes first, and one that is newer takes its place',
  async (t) => {
    const alone = new Budget(2 ** 30);
    add(new SentAnswers(alone), 'alone');
    const budget = new Budget(2.5 * alone.state.bytes);
    const answers = new SentAnswers(budget);
    for (const request of ['one', 'other', 'one']) add(answers, request);
    t.equal(budget.state.entries, 2);
    add(answers, 'last');
    const cached = ['one', 'other', 'last'].filter((request) => answers.get(request));
    t.same(cached, ['one', 'last']);
    t.same([budget.state.entries, budget.state.evictions], [2, 1]);
  },
);

t.test(
  'one answer takes a small part of the budget, and no more than a reader may hold',
  async (t) => {
    t.equal(new SentAnswers(new Budget(3_200)).bytesMax, 100);
    t.equal(new SentAnswers(new Budget(2 ** 40)).bytesMax, HELD_BYTES);
  },
);

t.test('only what is asked again is cached, and of what is asked once not much', async (t) => {
  const answers = new SentAnswers(new Budget(2 ** 30));
  const isAgain = (request: string) => answers.isRepeated(request);
  t.strictSame([isAgain('one'), isAgain('other'), isAgain('one')], [false, false, true]);
  for (let n = 0; n < 10_000; n += 1) isAgain(`${n}`);
  t.equal(isAgain('9999'), true);
  t.equal(isAgain('8'), false, 'that was too long ago');
});
