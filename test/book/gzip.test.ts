import { crc32, gunzipSync } from 'node:zlib';
import t from 'tap';
import type { PriceBook } from '../../src/book/book.ts';
import { joinedCrc, shiftOf } from '../../src/book/gzip.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { answerAt } from '../../src/prices/answer/answer.ts';
import { planOf } from '../../src/prices/plan/plan.ts';
import type { Body } from '../../src/std/body.ts';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { valuesOf } from '../support/fuzz/any-request.ts';
import { serviceOn } from '../support/http/service.ts';
import { ANY_MEMORY } from '../support/prices/any-memory.ts';
import { anyBookRequest, type BookRequest, fill, filterValuesOf } from './support.ts';

t.test('the CRC of bytes is that of their parts, joined', async (t) => {
  const random = randomOf(1);
  for (let round = 0; round < 500; round += 1) {
    const bytes = Buffer.from(Array.from({ length: 1 + random() * 300 }, () => random() * 256));
    const at = Math.floor(random() * (bytes.length + 1));
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
    const joined = joinedCrc(crc32(before), crc32(after), shiftOf(after.length)) >>> 0;
    if (joined !== crc32(bytes)) t.equal(joined, crc32(bytes), `${at} of ${bytes.length}`);
  }
  const long = Buffer.alloc(3_000_000, 'prices');
  const joined = joinedCrc(crc32('x'), crc32(long), shiftOf(long.length)) >>> 0;
  t.equal(joined, crc32(long, crc32('x')));
});

async function bytesOf(body: Body): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const batch of body.batches) all.push(...batch);
  const bytes = Buffer.concat(all);
  if (body.bytes !== null && body.bytes !== bytes.length) throw new Error('another length');
  return bytes;
}

/** An answer of the book as it is and as gzip; null where it is refused or made otherwise. */
async function bothOf(
  book: PriceBook,
  { client }: TestDatabase,
  { slug, filters, options, accept }: BookRequest,
) {
  const named = { 'application/x-ndjson': 'ndjson', 'text/csv': 'csv' } as const;
  const format = named[accept as keyof typeof named] ?? 'json';
  const market = MARKETS.find((each) => each.slug === slug);
  if (!market) throw new Error(`no market ${slug}`);
  const input = { by: 'body', readableMarkets: () => [], format } as const;
  const plan = planOf(market, () => [], { filters, options }, input);
  const openBook = await book.open(plan, await client.link.newestRevision());
  if (!openBook) throw new Error('not in the book');
  const { readers, newest } = openBook;
  const snapshot = await readers.snapshot(plan, newest);
  const answer = await answerAt(readers, plan, snapshot, ANY_MEMORY).catch(() => null);
  const plain = answer && openBook.body(answer, snapshot, null);
  const gzip = answer && openBook.body(answer, snapshot, 'gzip');
  return plain && gzip && { plain: await bytesOf(plain), gzip: await bytesOf(gzip) };
}

for (const bytes of ['536870912', '3500000']) {
  t.test(`gzip is the answer, whatever was cached of it: ${bytes} bytes`, async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await serviceOn(t, database, { PRICE_BOOK_BYTES: bytes });
    const { book } = service.app;
    if (!book) throw new Error('there is no book');
    await fill({ book, database });
    const random = randomOf(3);
    const any = anyBookRequest(random);
    const [values, by] = [await valuesOf(database), await filterValuesOf({ cached: service })];
    let seen = 0;
    let saved = 0;
    for (let round = 0; round < 400; round += 1) {
      const request = any(values, by);
      const both = await bothOf(book, database, request).catch((error: Error) => {
        if (error.message === 'not in the book') return null;
        throw error;
      });
      if (!both) continue;
      seen += 1;
      saved += both.plain.length - both.gzip.length;
      if (gunzipSync(both.gzip).equals(both.plain)) continue;
      t.equal(gunzipSync(both.gzip).toString(), both.plain.toString(), JSON.stringify(request));
    }
    t.ok(seen > 20, `${seen} answers`);
    t.ok(saved > 0, `${saved} bytes were saved`);
  });
}
