import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';

const MARKET = '/v3/prices/nickel';
const WIDE = 'includeSeries=true&layout=wide';
/** A conversion whose results have more decimals than a column of Parquet and Arrow. */
const TOO_SMALL = 'codes=CP-NI-0001&includeSeries=true&unitOfMeasure=Troy+ounce';

/** The service with the price book, and without. */
let services: readonly Service[];
let small: Service;
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['1900-01-01', null, '0.0000000001', null]),
  );
  services = [
    await serviceOn(t, database),
    await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' }),
  ];
  small = await serviceOn(t, database, { WIDE_CELLS_MAX: 100 });
});

/** Sends a request without the openapi.yaml check, which cannot read codings. */
async function ask({ app, key }: Service, method: 'GET' | 'HEAD', query: string, more: object) {
  const { statusCode, headers, rawPayload } = await app.inject({
    method,
    url: `${MARKET}?${query}`,
    headers: { 'x-api-key': key, ...more },
  });
  return { status: statusCode, headers, bytes: rawPayload.length };
}

/** Queries of answers of each format and layout: large ones, and ones that are not compressed. */
const QUERIES = [
  'includeSeries=true',
  'codes=none',
  'codes=CP-NI-0001',
  'includeSeries=true&format=csv&codes=CP-NI-0001&dateFrom=2026-06-01',
  'includeSeries=true&format=ndjson',
  'includeSeries=true&format=rows',
  `${WIDE}&format=csv`,
  `${WIDE}&format=rows&codes=CP-NI-0001&dateFrom=2026-06-25`,
  'includeSeries=true&format=parquet',
  'includeSeries=true&format=arrow&columns=short',
  'codes=CP-NI-0001&format=parquet&columns=code',
  'includeSeries=true&format=xlsx',
  'codes=CP-NI-0001&format=xlsx&columns=code',
  `${WIDE}&format=xlsx&codes=CP-NI-0001&dateFrom=2026-06-25`,
];

t.test('the length that HEAD has is that of GET, in each format and coding', async (t) => {
  let known = 0;
  for (const service of services) {
    for (const query of QUERIES) {
      for (const coding of ['identity', 'gzip', 'zstd', 'gzip, identity;q=0']) {
        const more = { 'accept-encoding': coding };
        const what = `${query} ${coding}`;
        for (let round = 0; round < 4; round += 1) {
          const head = await ask(service, 'HEAD', query, more);
          const get = await ask(service, 'GET', query, more);
          t.same([head.status, get.status, head.bytes], [200, 200, 0], what);
          t.equal(head.headers['etag'], get.headers['etag'], what);
          t.equal(head.headers['content-type'], get.headers['content-type'], what);
          const length = head.headers['content-length'];
          if (length === undefined) continue;
          known += 1;
          t.equal(Number(length), get.bytes, what);
          t.equal(head.headers['content-encoding'], get.headers['content-encoding'], what);
        }
      }
    }
  }
  t.ok(known > QUERIES.length, `${known} lengths are known`);
});

t.test('HEAD of a cached answer has its length, whatever coding is accepted', async (t) => {
  const [service] = services as readonly [Service];
  const cached = [
    ['codes=none', 'identity'],
    ['codes=none', 'gzip'],
    ['codes=none', 'zstd, gzip;q=0.5'],
    ['includeSeries=true', 'identity'],
    ['includeSeries=true', 'gzip'],
  ] as const;
  for (const [query, coding] of cached) {
    const more = { 'accept-encoding': coding };
    for (let round = 0; round < 2; round += 1) await ask(service, 'GET', query, more);
    const get = await ask(service, 'GET', query, more);
    const head = await ask(service, 'HEAD', query, more);
    t.equal(head.headers['content-length'], String(get.bytes), `${query} ${coding}`);
  }
});

t.test('HEAD, and If-None-Match: *, refuse what GET refuses', async (t) => {
  const refused = [
    [small, `${WIDE}&format=csv`],
    [small, `${WIDE}&format=rows`],
    [small, `${WIDE}&format=xlsx`],
    ...services.flatMap((each) => [
      [each, `${TOO_SMALL}&format=parquet`] as const,
      [each, `${TOO_SMALL}&format=arrow`] as const,
    ]),
  ] as const;
  for (const [service, query] of refused) {
    const get = await ask(service, 'GET', query, {});
    t.equal(get.status, 400, query);
    const head = await ask(service, 'HEAD', query, {});
    t.same([head.status, head.headers['etag'], head.bytes], [400, undefined, 0], query);
    t.equal((await ask(service, 'GET', query, { 'if-none-match': '*' })).status, 400, query);
    const held = query.replace(/format=(rows|parquet|arrow)/, 'format=csv');
    if (service !== small) t.equal((await ask(service, 'HEAD', held, {})).status, 200, held);
  }
  const few = `${WIDE}&format=csv&codes=CP-NI-0001&dateFrom=2026-06-25`;
  t.equal((await ask(small, 'HEAD', few, {})).status, 200);
});
