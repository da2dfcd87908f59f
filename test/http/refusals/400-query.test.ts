import t from 'tap';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

interface Violation {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

const read = (query: string, headers = {}) =>
  service.request({ method: 'GET', url: `/v3/prices/nickel?${query}`, headers });

const brokenBy = async (query: string): Promise<string[]> => {
  const { status, json } = await read(query);
  if (status !== 400) throw new Error(`${query}: ${status}`);
  return json.errors.map(({ pointer, code }: Violation) => `${pointer} ${code}`).sort();
};

/** Invalid queries and the pointers of their violations. */
const BROKEN: Readonly<Record<string, readonly string[]>> = {
  'regoins=Europe': ['?regoins unknown_field'],
  regoins: ['?regoins unknown_field'],
  '=Europe': ['? unknown_field'],
  'filters=x&options=y': ['?filters unknown_field', '?options unknown_field'],
  'REGIONS=Europe': ['?REGIONS unknown_field'],
  'a%2Fb=1': ['?a~1b unknown_field'],
  'filters[regions]=Europe': ['?filters[regions] unknown_field'],
  '__proto__=1&constructor=2': ['?__proto__ unknown_field', '?constructor unknown_field'],
  'meshSizes=-100 mesh': ['?meshSizes unsupported_filter'],
  'regions=': ['?regions/0 invalid_format'],
  'regions=Europe&regions': ['?regions/1 invalid_format'],
  'codes=': ['?codes/0 invalid_format'],
  'codes=a&regions=Europe': ['?regions codes_exclusive'],
  'products=99.8%': ['?products invalid_format'],
  'products=%ff': ['?products invalid_format'],
  'products=%00': ['?products/0 invalid_characters'],
  '%zz=1': ['?%zz invalid_format'],
  'dateFrom=2026-02-30': ['?dateFrom invalid_format'],
  'dateFrom=2026-01-01&dateFrom=2026-01-02': ['?dateFrom too_many_items'],
  'dateFrom=2026-01-02&dateTo=2026-01-01': ['?dateFrom date_order'],
  'dateFrom=1799-12-31': ['?dateFrom out_of_range'],
  includeSeries: ['?includeSeries wrong_type'],
  'includeSeries=1': ['?includeSeries wrong_type'],
  'includeSeries=True': ['?includeSeries wrong_type'],
  'strict=true&strict=true': ['?strict too_many_items'],
  'decimals=two': ['?decimals wrong_type'],
  'decimals=1.5': ['?decimals wrong_type'],
  'decimals=11': ['?decimals out_of_range'],
  'decimals=2': ['?decimals unknown_field'],
  'decimals=2&aggregate=month': ['?aggregate wrong_type'],
  'decimals=2&currency=USD&currency=EUR': ['?currency too_many_items'],
  'aggregate=month': ['?aggregate wrong_type'],
  'aggregate=month:average:x': ['?aggregate wrong_type'],
  'aggregate=day:mean': ['?aggregate out_of_range', '?aggregate out_of_range'],
  'currency=': ['?currency invalid_format'],
  'onUnconvertible=drop': ['?onUnconvertible out_of_range'],
  'asOf=yesterday': ['?asOf invalid_format'],
  'asOf=2026-01-01T00:00:00Z&revision=k3f9a1.3': ['?asOf unknown_field'],
  'format=xml': ['?format out_of_range'],
  'format=': ['?format out_of_range'],
  'format=csv&format=json': ['?format too_many_items'],
  'regoins=Europe&includeSeries=yes&dateTo=soon&meshSizes=x': [
    '?dateTo invalid_format',
    '?meshSizes unsupported_filter',
    '?includeSeries wrong_type',
    '?regoins unknown_field',
  ],
};

t.test('a query that breaks rules is refused with every place, without any SQL', async (t) => {
  for (const [query, places] of Object.entries(BROKEN)) {
    t.same(await brokenBy(query), [...places].sort(), query);
  }
});

t.test('an unknown parameter is reported with the nearest known one', async (t) => {
  const { json } = await read('regoins=Europe&fromat=csv');
  const details = json.errors.map((each: Violation) => each.detail);
  t.match(details, [/did you mean regions\?/, /did you mean format\?/]);
  const { json: other } = await read('x-api-key=cps_live_secret');
  t.notMatch(JSON.stringify(other), 'cps_live_secret');
});

t.test('a format that admits nothing is a 406 only where no parameter says another', async (t) => {
  const headers = { accept: 'text/html' };
  t.equal((await read('regoins=1', headers)).status, 406);
  t.equal((await read('regoins=1&format=csv', headers)).status, 400);
  t.equal((await read('format=csv', headers)).status, 503, 'and gets as far as the database');
});

t.test('a body of a GET is refused, because its filters would be ignored', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const { status, text } = await service.request({
      method,
      url: '/v3/prices/nickel',
      headers: { 'content-type': 'application/json' },
      payload: '{"filters":{"regions":["Europe"]}}',
    });
    t.equal(status, 400);
    if (method === 'GET') t.match(JSON.parse(text), { code: 'malformed_request', detail: /POST/ });
  }
});

t.test('a query on a POST is refused beside what is wrong with its body', async (t) => {
  const { status, json } = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel?regions=Europe&x=1',
    payload: { filters: { products: 'nickel' } },
  });
  t.equal(status, 400);
  t.same(
    json.errors.map(({ pointer, code }: Violation) => `${pointer} ${code}`),
    ['?regions unknown_field', '?x unknown_field', '/filters/products wrong_type'],
  );
  const url = '/v3/prices/nickel?';
  t.equal((await service.request({ method: 'POST', url, payload: {} })).status, 503);
});

t.test('a query may be as long as an address, and names POST when it is longer', async (t) => {
  const filled = (bytes: number): string => {
    const url = '/v3/prices/nickel?';
    return url + 'codes=A&'.repeat(2_000).slice(0, bytes - url.length);
  };
  const ask = (bytes: number) => service.request({ method: 'GET', url: filled(bytes) });
  const { json } = await ask(8_192);
  t.match(json, { code: 'validation_failed', detail: /rules? (is|are) broken/ });
  t.match((await ask(8_193)).json, { code: 'uri_too_long', detail: /POST/ });
});

t.test('an address that takes no parameters passes over none', async (t) => {
  const addresses = [
    '/v3/prices',
    '/v3/prices/nickel/filters',
    '/v3/me',
    '/v3/reference/currencies',
    '/v3/reference/units',
  ];
  for (const address of addresses) {
    const { status, json } = await service.request({
      method: 'GET',
      url: `${address}?market=x&a%2Fb`,
    });
    t.equal(status, 400, address);
    const errors = json.errors.map(({ pointer, code }: Violation) => `${pointer} ${code}`);
    t.same(errors, ['?market unknown_field', '?a~1b unknown_field']);
    t.match(json.errors[0].detail, /takes no parameters; remove market/);
  }
});
