import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import t from 'tap';
import { BULK_MARKET, fill } from '../support/database/bulk.ts';
import { testDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';

const database = await testDatabase(t);
await fill(database, { prices: 6, points: 40 });
const service = await serviceOn(t, database, {});
const plain = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
const { book, answers } = service.app;
if (book === null || answers === null) throw new Error('the service keeps nothing in memory');
await service.post(BULK_MARKET.slug, {});
await book.settled();

/** Each answer has its own. */
const OWN = ['date', 'x-request-id', 'ratelimit'];

interface Asking {
  readonly method: 'POST' | 'GET' | 'HEAD';
  readonly accept: string;
  readonly coding: string;
}

const url = `/v3/prices/${BULK_MARKET.slug}`;
/** With series, a page that is not the last, and a warning for a value that matches nothing. */
const BODY = {
  filters: { codes: ['BULK-00001', 'BULK-00002', 'BULK-00003', 'NOBODY'] },
  options: { includeSeries: true, limit: 2 },
};
const CODES = BODY.filters.codes.map((code) => `codes=${code}`).join('&');
const QUERY = `${url}?${CODES}&includeSeries=true&limit=2`;

/** The bytes of an answer without their coding; HEAD has none. */
function textOf(bytes: Buffer, coding: string): string {
  if (bytes.length === 0) return '';
  if (coding === 'gzip') return gunzipSync(bytes).toString();
  return (coding === 'zstd' ? zstdDecompressSync(bytes) : bytes).toString();
}

async function ask({ method, accept, coding }: Asking, headers: object = {}, from = service) {
  const answer = await from.app.inject({
    method,
    headers: { 'x-api-key': from.key, accept, 'accept-encoding': coding, ...headers },
    ...(method === 'POST' ? { url, payload: BODY } : { url: QUERY }),
  });
  const shared = Object.entries(answer.headers).filter(([name]) => !OWN.includes(name));
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(shared),
    body: answer.rawPayload.toString('base64'),
    text: textOf(answer.rawPayload, String(answer.headers['content-encoding'])),
  };
}

for (const method of ['POST', 'GET', 'HEAD'] as const) {
  for (const accept of ['application/json', 'application/x-ndjson']) {
    for (const coding of ['identity', 'gzip', 'zstd']) {
      t.test(`asked again the answer is the same: ${method}, ${accept}, ${coding}`, async (t) => {
        const asking = { method, accept, coding };
        const first = await ask(asking);
        t.equal(first.status, 200);
        const read = await ask(asking, {}, plain);
        t.equal(first.text, read.text, 'the answer equals that of the database');
        if (method !== 'HEAD') t.match(first.text, /BULK-00002/);
        const before = answers.state.repeats;
        const others = [await ask(asking), await ask(asking), await ask(asking)];
        t.same(others, [first, first, first]);
        t.ok(
          answers.state.repeats > before || method === 'HEAD',
          'the answer was not assembled again',
        );
        if (accept.includes('ndjson')) t.match(first.headers, { 'x-warnings-count': '1' });
      });
    }
  }
}

t.test('a 304 needs no answer, and one to a star is an answer that is cached', async (t) => {
  const asking = { method: 'GET', accept: 'application/json', coding: 'identity' } as const;
  const { headers } = await ask(asking);
  const { etag } = headers as { etag: string };
  for (const tag of [etag, '*']) {
    t.match(await ask(asking, { 'if-none-match': tag }), { status: 304, body: '' });
  }
});

t.test('a body that is never read is refused, also if the answer is cached', async (t) => {
  const headers = { 'x-api-key': service.key };
  for (let times = 0; times < 3; times += 1) {
    t.equal((await service.request({ method: 'GET', url: QUERY, headers })).status, 200);
  }
  const payload = { filters: { codes: ['BULK-00003'] } };
  const refused = await service.request({ method: 'GET', url: QUERY, headers, payload });
  t.match(refused, { status: 400, json: { code: 'malformed_request' } });
});

t.test('a refused request is refused again', async (t) => {
  const strict = { ...BODY, options: { ...BODY.options, strict: true } };
  for (let times = 0; times < 4; times += 1) {
    const refused = await service.post(BULK_MARKET.slug, strict);
    t.match(refused, { status: 400, json: { code: 'validation_failed' } });
  }
});
