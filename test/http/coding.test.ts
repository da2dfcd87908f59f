import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { serviceWithoutDatabase } from '../support/http/service-without-database.ts';

const VARY = 'accept, accept-encoding, x-api-key, authorization';

const DECODE: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

let service: Service;
let bookless: Service;
t.before(async () => {
  const database = await seededDatabase(t);
  service = await serviceOn(t, database);
  bookless = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
  await service.app.book?.fill(() => database.client.link.newestRevision());
});

/** Sends a request without the openapi.yaml check and decodes the answer. */
async function ask(url: string, accept: string | null, more: object = {}, of = service) {
  const { headers = {}, ...rest } = more as { headers?: object };
  const answer = await of.app.inject({
    method: 'GET',
    url,
    headers: {
      'x-api-key': of.key,
      ...(accept === null ? {} : { 'accept-encoding': accept }),
      ...headers,
    },
    ...rest,
  });
  const coding = answer.headers['content-encoding'];
  const raw = answer.rawPayload;
  const decode = DECODE[String(coding)];
  const text = (decode && raw.length > 0 ? decode(raw) : raw).toString();
  return { status: answer.statusCode, headers: answer.headers, coding, raw, text };
}

const MARKET = '/v3/prices/nickel';
const SERIES = `${MARKET}?includeSeries=true`;

/** Addresses that answer with more than a kilobyte; the first with more than is sent at once. */
const LARGE = [
  SERIES,
  `${SERIES}&dateFrom=2026-06-01`,
  `${SERIES}&format=csv`,
  `${SERIES}&format=ndjson`,
  `${MARKET}/filters`,
  '/v3/prices',
  '/v3/search?q=lithium',
  '/v3/changes?limit=50',
  '/v3/calendar?format=ics',
  '/v3/reference/currencies',
  '/v3/reference/units',
  '/v3/reference/rates?base=EUR&quote=USD',
  '/openapi.json',
  '/openapi.yaml',
  '/llms.txt',
];

t.test('every large answer is the same in each coding, and smaller', async (t) => {
  for (const url of LARGE) {
    const plain = await ask(url, null);
    t.same([plain.status, plain.coding, plain.headers['vary']], [200, undefined, VARY], url);
    const wanted = ['gzip', 'br', 'zstd'].flatMap((coding) => [
      [coding, service] as const,
      [coding, bookless] as const,
    ]);
    for (const [coding, of] of wanted) {
      const coded = await ask(url, coding, {}, of);
      t.equal(coded.coding, coding, url);
      t.ok(coded.text === plain.text, `${url} ${coding}`);
      t.ok(coded.raw.length < plain.raw.length / 2, `${coded.raw.length} of ${plain.raw.length}`);
      t.equal(coded.headers['vary'], VARY);
      const length = coded.headers['content-length'];
      if (length !== undefined) t.equal(Number(length), coded.raw.length);
      const etag = plain.headers['etag'];
      if (etag === undefined) continue;
      t.not(coded.headers['etag'], etag, 'other bytes have another tag');
      const headers = { 'if-none-match': `${etag}, ${coded.headers['etag']}` };
      t.equal((await ask(url, coding, { headers }, of)).status, 304);
    }
  }
});

t.test('a client that accepts codings equally gets zstd, whatever holds the answer', async (t) => {
  for (const query of ['includeSeries=true', 'includeSeries=true&format=csv']) {
    const url = `${MARKET}?${query}`;
    // The third answer to equal requests is a kept one.
    for (const from of [service, service, service, bookless]) {
      t.equal((await ask(url, 'gzip, deflate, br, zstd', {}, from)).coding, 'zstd', query);
      t.equal((await ask(url, 'gzip, br', {}, from)).coding, 'br', query);
      t.equal((await ask(url, 'gzip;q=0.5, br;q=0.4', {}, from)).coding, 'gzip', query);
    }
  }
});

t.test('POST answers in codings too', async (t) => {
  const body = { method: 'POST', url: MARKET, payload: { options: { includeSeries: true } } };
  const plain = await ask(MARKET, null, body);
  for (const coding of ['gzip', 'br', 'zstd']) {
    const coded = await ask(MARKET, `deflate, ${coding}`, body);
    t.same([coded.status, coded.coding], [200, coding]);
    t.ok(coded.text === plain.text);
    t.equal(coded.headers['vary'], VARY);
    t.equal(coded.headers['cache-control'], 'no-store');
  }
});

t.test('less than a kilobyte goes as it is, unless the client refuses that', async (t) => {
  const url = `${MARKET}?codes=none`;
  const plain = await ask(url, 'gzip, br, zstd');
  t.same([plain.status, plain.coding], [200, undefined]);
  t.ok(plain.raw.length < 1_024);
  const { coding, text } = await ask(url, 'gzip, identity;q=0');
  t.same([coding, text], ['gzip', plain.text]);
});

t.test('HEAD has the tag that GET has', async (t) => {
  for (const accept of ['gzip', 'zstd', 'identity']) {
    const head = await ask(SERIES, accept, { method: 'HEAD' });
    const { headers } = await ask(SERIES, accept);
    t.same([head.status, head.raw.length], [200, 0]);
    t.equal(head.headers['etag'], headers['etag']);
  }
});

t.test('a refusal and a 304 are never coded', async (t) => {
  const { status, coding, text } = await ask(`${MARKET}?${'x=1&'.repeat(90)}`, 'gzip');
  t.same([status, coding, JSON.parse(text).code], [400, undefined, 'validation_failed']);
  const etag = (await ask(SERIES, 'gzip')).headers['etag'];
  const known = await ask(SERIES, 'gzip', { headers: { 'if-none-match': etag } });
  t.same([known.status, known.coding, known.text], [304, undefined, '']);
});

t.test(
  'a client that accepts no available coding and no identity gets the list of codings',
  async (t) => {
    const bare = await serviceWithoutDatabase(t);
    for (const accept of ['identity;q=0', '*;q=0', 'deflate, identity;q=0', 'gzip;q=0, *;q=0']) {
      for (const url of LARGE.filter((each) => each.startsWith('/v3'))) {
        const headers = { 'accept-encoding': accept };
        const answer = await bare.request({ method: 'GET', url, headers });
        t.same([answer.status, answer.json?.code], [406, 'not_acceptable'], `${url} ${accept}`);
        t.match(answer.json.detail, /identity, zstd, br, gzip/);
      }
      const headers = { 'accept-encoding': accept };
      const post = { method: 'POST', url: MARKET, headers, payload: { broken: 1 } };
      t.equal((await bare.request(post)).status, 406, 'before the body is parsed');
    }
  },
);
