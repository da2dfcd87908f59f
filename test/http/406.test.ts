import t from 'tap';
import { serviceWithoutDatabase } from '../support/refusing.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

const ADDRESSES = [
  ['POST', '/v3/prices/nickel'],
  ['GET', '/v3/prices/nickel/filters'],
  ['GET', '/v3/prices'],
] as const;

const ask = ([method, url]: (typeof ADDRESSES)[number], accept: string) =>
  service.request({
    method,
    url,
    headers: { accept },
    ...(method === 'POST' ? { payload: {} } : {}),
  });

t.test('a client that takes no JSON is told what is offered', async (t) => {
  for (const address of ADDRESSES) {
    for (const accept of [
      'text/csv',
      'application/x-ndjson',
      'text/html, application/xml;q=0.9',
      'application/problem+json',
      'application/jsonp',
      'application/json;q=0',
      'application/json;q=0, */*;q=1',
      'application/json; q=0.000, application/*',
      'application/*;q=0, */*',
      '*/*;q=0',
      'json',
      '/',
    ]) {
      const { status, json, headers } = await ask(address, accept);
      t.same([status, json.code], [406, 'not_acceptable'], `${address[1]} ${accept}`);
      t.match(json.detail, 'application/json');
      t.equal(headers['cache-control'], 'no-store');
    }
  }
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
