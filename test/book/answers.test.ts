import { once } from 'node:events';
import { Writable } from 'node:stream';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import type { NewestRevision } from '../../src/db/newest-revision.ts';
import { AnswerCache } from '../../src/http/reply/answer-cache.ts';
import { planOf } from '../../src/prices/plan/plan.ts';
import { BodyStream } from '../../src/std/body-stream.ts';

const [MARKET] = MARKETS;
const NEWEST: NewestRevision = {
  epoch: 'e',
  keysVersion: '1',
  revision: '1.a',
  scopes: new Map(),
  order: 1,
  history: 1,
};
const DATA = { epoch: 'e', revision: '1.a', reference: '1.a', committedAt: '2026-03-02T10:00:00Z' };
const ORIGIN = {
  market: { plan: planOf(MARKET, () => [], {}), snapshot: { data: DATA, rates: null } },
  readableMarkets: null,
  newest: NEWEST,
  tag: null,
  headers: { 'x-data-revision': 'ea.1' },
};
const ANYBODY = { by: 'body', readableMarkets: () => [] } as const;
const MB = 2 ** 20;

const find = (answers: AnswerCache, key: string) =>
  answers.find(
    key,
    ANYBODY,
    async () => NEWEST,
    async () => ORIGIN.market.snapshot,
  );

/** Asks a second time, so that the answer is kept. Returns what is sent. */
function keep(answers: AnswerCache, key: string, bytes: Buffer | BodyStream) {
  answers.keep(key, ORIGIN, { bytes: Buffer.from('first'), coding: null });
  return answers.keep(key, ORIGIN, { bytes, coding: 'zstd' }).bytes;
}

/** A stream of slices of a megabyte. */
const streamOf = (slices: number): BodyStream =>
  new BodyStream({
    batches: Array.from({ length: slices }, (_, index) => [Buffer.alloc(MB, index)]),
    bytes: null,
  });

const batchesOf = (sent: Buffer | BodyStream): AsyncGenerator<readonly Buffer[]> =>
  (sent as BodyStream).body.batches as AsyncGenerator<readonly Buffer[]>;

async function allOf(sent: Buffer | BodyStream): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const batch of batchesOf(sent)) all.push(...batch);
  return Buffer.concat(all);
}

t.test('a kept answer has the bytes that were sent, as a copy, all of it counted', async (t) => {
  const answers = new AnswerCache(2 ** 30);
  const parts = [3, 20_000, 5, 70_000, 3_000_000, 1].map((length, index) =>
    Buffer.alloc(length, index + 65),
  );
  const batches = [parts.slice(0, 3), parts.slice(3)];
  const sent = await allOf(keep(answers, 'asked', new BodyStream({ batches, bytes: null })));
  t.ok(sent.equals(Buffer.concat(parts)), 'the bytes are passed on');
  const kept = await find(answers, 'asked');
  t.same([kept?.coding, kept?.length], ['zstd', sent.length]);
  t.ok(Buffer.concat(kept?.slices ?? []).equals(sent));
  const memory = new Set<ArrayBufferLike>(parts.map(({ buffer }) => buffer));
  for (const { buffer, byteLength } of kept?.slices ?? []) {
    t.notOk(memory.has(buffer), 'the copy shares no memory with what was sent');
    t.equal(buffer.byteLength, byteLength);
  }
  t.ok((kept?.slices.length ?? 0) <= 3, 'small slices are joined');
  t.ok(answers.state.bytes > sent.length);
});

t.test('the least recently used answer is evicted, and a newer one replaces it', async (t) => {
  const answers = new AnswerCache(4.5 * MB);
  const bytes = Buffer.alloc(MB);
  for (const key of ['one', 'other', 'third', 'fourth']) keep(answers, key, bytes);
  await find(answers, 'one');
  keep(answers, 'one', bytes);
  keep(answers, 'last', bytes);
  const kept = [];
  for (const key of ['one', 'other', 'third', 'fourth', 'last']) {
    if ((await find(answers, key)) !== null) kept.push(key);
  }
  t.same(kept, ['one', 'third', 'fourth', 'last']);
  t.equal(answers.state.evictions, 1);
  t.ok(answers.state.bytes <= answers.state.limit);
});

t.test('an answer takes at most a quarter of the cache, and at most 32 MB', async (t) => {
  for (const [limit, most] of [
    [8 * MB, 2],
    [2 ** 30, 32],
  ] as const) {
    const answers = new AnswerCache(limit);
    for (const slices of [most - 1, most + 1]) {
      const key = `${slices}`;
      await allOf(keep(answers, key, streamOf(slices)));
      t.equal((await find(answers, key))?.length, slices < most ? slices * MB : undefined);
    }
    t.equal(answers.state.collecting, 0);
  }
});

t.test('slow readers never collect more than 64 MB, and their end gives it back', async (t) => {
  const answers = new AnswerCache(2 ** 30);
  const readers = Array.from({ length: 8 }, (_, at) =>
    batchesOf(keep(answers, `${at}`, streamOf(20))),
  );
  for (let slice = 0; slice < 20; slice += 1) {
    for (const reader of readers) await reader.next();
    t.ok(answers.state.collecting <= 64 * MB, `${answers.state.collecting} bytes`);
  }
  t.ok(answers.state.collecting > 32 * MB, `${answers.state.collecting} bytes`);
  const [gone, ...others] = readers;
  await gone?.return(undefined);
  for (const reader of others) await reader.next();
  t.equal(answers.state.collecting, 0);
  t.equal(await find(answers, '0'), null, 'the answer of a disconnected reader is not kept');
  t.ok(answers.state.bytes > 20 * MB, 'some of the others were kept');
});

t.test('a client that disconnects while it reads gives back what was collected', async (t) => {
  const answers = new AnswerCache(2 ** 30);
  const sent = keep(answers, 'asked', streamOf(20)) as BodyStream;
  // Takes the first write, and disconnects before the second.
  const client = new Writable({ write: (_bytes, _encoding, done) => setImmediate(done) });
  sent.afterWrite = async () => {
    t.ok(answers.state.collecting > 0);
    client.destroy();
  };
  sent.pipe(client);
  await once(sent, 'end');
  t.equal(answers.state.collecting, 0);
});

t.test('the answer to the second of two equal requests is kept, if both are near', async (t) => {
  const answers = new AnswerCache(2 ** 30);
  const ask = (key: string) => answers.keep(key, ORIGIN, { bytes: Buffer.from(key), coding: null });
  const isKept = async (key: string) => (await find(answers, key)) !== null;
  for (const key of ['one', 'other', 'one']) ask(key);
  t.same([await isKept('one'), await isKept('other')], [true, false]);
  for (let n = 0; n < 10_000; n += 1) ask(`${n}`);
  ask('9999');
  ask('8');
  t.same([await isKept('9999'), await isKept('8')], [true, false]);
});
