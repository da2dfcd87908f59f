import t from 'tap';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

const ADDRESSES = [
  ['POST', '/v3/prices/nickel'],
  ['GET', '/v3/prices/nickel/filters'],
  ['GET', '/v3/prices'],
  ['GET', '/v3/search?q=nickel'],
] as const;

const ask = ([method, url]: (typeof ADDRESSES)[number], accept: string) =>
  service.request({
    method,
    url,
    headers: { accept },
    ...(method === 'POST' ? { payload: {} } : {}),
  });

/** Accept headers that admit none of the formats of prices. */
const NOTHING_OFFERED = [
  'text/html, application/xml;q=0.9',
  'application/problem+json',
  'application/jsonp',
  'application/json;q=0',
  'application/*;q=0, */*;q=0',
  'text/csv;q=0.0, application/x-ndjson;q=0',
  '*/*;q=0',
  'json',
  '/',
];

/** Accept headers that admit a format other than JSON. */
const OTHERS = [
  'text/csv',
  'application/x-ndjson',
  'application/json;q=0, */*;q=1',
  'application/json; q=0.000, application/*',
  'application/*;q=0, */*',
];

t.test('a client that accepts no available media type gets the list of them', async (t) => {
  for (const address of ADDRESSES) {
    const isPrices = address[0] === 'POST';
    for (const accept of [...NOTHING_OFFERED, ...(isPrices ? [] : OTHERS)]) {
      const { status, json, headers } = await ask(address, accept);
      t.same([status, json.code], [406, 'not_acceptable'], `${address[1]} ${accept}`);
      const offered = isPrices
        ? /^Accept application\/json(, [a-z/.;=-]+)+ or application\/vnd\.openxmlformats-[a-z.]+$/
        : '/json';
      t.match(json.detail, offered);
      t.equal(headers['cache-control'], 'no-store');
    }
  }
});

t.test('prices come in other formats too', async (t) => {
  for (const accept of OTHERS) t.equal((await ask(ADDRESSES[0], accept)).status, 503, accept);
});

t.test('a client that takes JSON in any usual wording gets as far as the database', async (t) => {
  for (const address of ADDRESSES) {
    for (const accept of [
      '',
      '*/*',
      'application/*',
      'application/json',
      'APPLICATION/JSON',
      'application/json; charset=utf-8',
      'text/csv, application/json;q=0.1',
      'text/html;q=0.9 , */* ; q=0.1',
      '*/*;q=0, application/json',
    ]) {
      const { status } = await ask(address, accept);
      t.equal(status, 503, `${address[1]} ${accept}`);
    }
  }
});
