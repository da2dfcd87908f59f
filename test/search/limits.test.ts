import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { asking, codesIn } from './support.ts';

const database = await seededDatabase(t);
const service = await serviceOn(t, database);
const ask = asking(service);
const get = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  service.request({ method, url, headers });

t.test('texts that cannot be searched are a 400 that says why', async (t) => {
  for (const [query, place] of [
    ['', '?q too_few_items'],
    ['q=', '?q invalid_format'],
    ['q=a&q=b', '?q too_many_items'],
    [`q=${'x'.repeat(129)}`, '?q too_long'],
    [`q=${'%25'.repeat(2_000)}`, '?q too_long'],
    ['q=a%00b', '?q invalid_characters'],
    ['q=%1b%5b2J', '?q invalid_characters'],
    ['q=a%0d%0aset-cookie:x', '?q invalid_characters'],
    ['q=%ED%A0%80', '?q invalid_format'],
    ['q=%FF', '?q invalid_format'],
    ['q=%', '?q invalid_format'],
    ['q=nickel&limit=0', '?limit out_of_range'],
    ['q=nickel&limit=501', '?limit out_of_range'],
    ['q=nickel&limit=1e1', '?limit wrong_type'],
    ['q=nickel&limit=1&limit=2', '?limit too_many_items'],
    ['q=nickel&market=nickel', '?market unknown_field'],
    ['query=nickel', '?q too_few_items'],
  ] as const) {
    const { status, json } = await get(`/v3/search?${query}`);
    t.same([status, json.code], [400, 'validation_failed'], query.slice(0, 40));
    const places = json.errors.map((each: { pointer: string; code: string }) =>
      [each.pointer, each.code].join(' '),
    );
    t.ok(places.includes(place), `${query.slice(0, 40)}: ${places}`);
  }
  const long = await get(`/v3/search?q=${'x'.repeat(10_240)}`);
  t.same([long.status, long.json.code], [414, 'uri_too_long']);
});

t.test('wildcards and quotes have no meaning, and alone they find nothing', async (t) => {
  for (const text of ['%', '*', '_', '.*', '?', '%%%', "'", '"--;']) {
    const { status, json } = await ask(text);
    t.equal(status, 200, text);
    t.same(json.data, [], text);
  }
  const plain = codesIn(await ask('nickel'));
  for (const text of ['nickel*', '%nickel%', '(nickel)', 'nickel\\', '~nickel', '\u202enickel']) {
    t.same(codesIn(await ask(text)), plain, text);
  }
  for (const text of [
    '" OR 1=1',
    "'; drop table price;--",
    '<script>alert(1)</script>',
    '\u{1F600}',
    'ﬀ',
    '\u0301',
    'İ',
    'a'.repeat(128),
  ]) {
    t.equal((await ask(text)).status, 200, text);
  }
});

t.test('an answer has a strong ETag, a 304, HEAD, its revision, and no other format', async (t) => {
  const url = '/v3/search?q=nickel';
  const { headers, json, text } = await get(url);
  t.match(headers['etag'], /^"[^"]+"$/);
  t.equal(headers['cache-control'], 'private, no-cache');
  t.equal(headers['vary'], 'accept, accept-encoding, x-api-key, authorization');
  t.equal(headers['x-data-revision'], json.$metadata.revision);
  const tag = headers['etag'] ?? '';
  const known = await get(url, { 'if-none-match': tag });
  t.same([known.status, known.text], [304, '']);
  t.equal((await get(url)).text, text);
  t.not((await get(`${url}&limit=1`)).headers['etag'], tag);
  const head = await get(url, {}, 'HEAD');
  t.same([head.status, head.text, head.headers['etag']], [200, '', tag]);
  t.equal(head.headers['content-length'], headers['content-length']);
  t.equal((await get(url, { accept: 'text/csv' })).status, 406);
  t.equal((await service.app.inject({ url })).statusCode, 401);
  t.same((await get('/v3/prices')).json.data.length, MARKETS.length, 'beside the list of markets');
});

t.test('a search counts against the rate limit of its credential', async (t) => {
  const limited = await serviceOn(t, database, { RATE_PER_MINUTE: '60', RATE_BURST: '2' });
  const statuses = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await asking(limited)('ni')).status);
  t.same(statuses, [200, 200, 429]);
});
