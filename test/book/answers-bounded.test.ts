import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';

type Test = Parameters<typeof serviceOn>[0];

/** A service with one market in its book, and a client of it. */
async function filled(test: Test, database: TestDatabase, bytes = 2 ** 29) {
  const service = await serviceOn(test, database, { PRICE_BOOK_BYTES: String(bytes) });
  const { book, answers } = service.app;
  if (book === null || answers === null) throw new Error('the service keeps nothing in memory');
  await service.post(BULK_MARKET.slug, {});
  await book.settled();
  return { service, answers };
}

/** Bytes of an answer of the bulk market. */
async function ask({ app, key }: Service, body: object, coding = 'identity'): Promise<number> {
  const { statusCode, rawPayload } = await app.inject({
    method: 'POST',
    url: `/v3/prices/${BULK_MARKET.slug}`,
    headers: { 'x-api-key': key, 'accept-encoding': coding },
    payload: body,
  });
  if (statusCode !== 200) throw new Error(rawPayload.toString());
  return rawPayload.length;
}

for (const coding of ['identity', 'gzip', 'zstd', 'br']) {
  t.test(`unshared bytes of an answer count, however many: ${coding}`, async (t) => {
    const database = await testDatabase(t);
    await fill(database, { prices: 2, points: 30 });
    const { service, answers } = await filled(t, database);
    // Each of them is a warning, which is of this answer alone.
    const codes = Array.from({ length: 400 }, (_, index) => `NOBODY-${index}`);
    const from = (day: number) => ({ filters: { codes, dateFrom: `2026-06-${day}` } });
    const cachedBytes = async (day: number) => {
      await ask(service, from(day), coding);
      return ask(service, from(day), coding);
    };
    await cachedBytes(10);
    const before = answers.state.bytes;
    let bytes = 0;
    for (let day = 11; day < 30; day += 1) bytes += await cachedBytes(day);
    t.ok(bytes > 20_000, `${bytes} bytes`);
    const counted = answers.state.bytes - before;
    t.ok(counted >= bytes, `${counted} of ${bytes} bytes count`);
    t.equal(answers.state.repeats, 0);
    await ask(service, from(20), coding);
    t.equal(answers.state.repeats, 1);
  });
}

t.test('an answer that would take more than a quarter of the cache is not kept', async (t) => {
  const database = await testDatabase(t);
  await fill(database, { prices: 4, points: 900 });
  const body = { options: { includeSeries: true } };
  const { service, answers } = await filled(t, database, 4_000_000);
  const length = await ask(service, body);
  t.ok(length > answers.state.limit / 4, `${length} bytes`);
  const { bytes } = answers.state;
  for (let times = 0; times < 3; times += 1) t.equal(await ask(service, body), length);
  t.same([answers.state.repeats, answers.state.bytes], [0, bytes]);
});

t.test('the service starts with any amount of memory, and answers', async (t) => {
  const database = await testDatabase(t);
  await fill(database, { prices: 2, points: 30 });
  for (const bytes of [1, 7, 4_097]) {
    const { service, answers } = await filled(t, database, bytes);
    for (let times = 0; times < 3; times += 1) await ask(service, {});
    t.same([answers.state.bytes, answers.state.repeats], [0, 0]);
  }
});

/** Most bytes that the price book encodes before it sends them. */
const HELD_BYTES = 16_777_216;

t.test('a long answer has the warnings of its own request, also once it is cached', async (t) => {
  const database = await testDatabase(t);
  await fill(database, { prices: 60, points: 3_500 });
  const { service } = await filled(t, database);
  const ask = async (method: 'GET' | 'HEAD', more: object) => {
    const { headers, rawPayload } = await service.app.inject({
      method,
      url: `/v3/prices/${BULK_MARKET.slug}?includeSeries=true`,
      headers: { 'x-api-key': service.key, ...more },
    });
    return { headers, body: rawPayload };
  };
  const get = (more: object = {}) => ask('GET', more);
  const first = await get();
  t.ok(first.body.length > HELD_BYTES, `${first.body.length} bytes`);
  await get();
  const cached = await get();
  t.equal(cached.headers['content-length'], String(first.body.length), 'it is cached');
  const head = await ask('HEAD', {});
  t.equal(head.headers['content-length'], String(first.body.length), 'HEAD has its length');
  // The second of two equal requests would be kept.
  await get({ 'x-min-revision': 'zzzzzz.1' });
  const warned = await get({ 'x-min-revision': 'zzzzzz.1' });
  t.equal(warned.headers['x-min-revision-unknown'], 'zzzzzz.1');
  t.match(warned.body.toString('latin1', 0, 2_000), /min_revision_unknown/);
  const again = await get();
  t.ok(again.body.equals(first.body), 'the warning is in no other answer');
});
