import fc from 'fast-check';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { seededDatabase } from '../support/database/database.ts';
import { legalBody, type ValuesByFilter } from '../support/fuzz/bodies.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { byAddress, queryText } from '../support/prices/query.ts';
import { SPECIFIED } from '../support/prices/specification.ts';

/** Random requests of each market. */
const RUNS = 20;
const SEED = 20_261_122;

let service: Service;
t.before(async () => {
  // Random texts are long once they are escaped.
  service = await serviceOn(t, await seededDatabase(t), { URL_BYTES_MAX: '65536' });
});

const get = (slug: string, query: string, accept = '*/*', method = 'GET'): Promise<Reply> =>
  service.request({ method, url: `/v3/prices/${slug}?${query}`, headers: { accept } });

/** The ids and names that a market's filters take, and the codes of its prices. */
async function valuesOf(slug: string): Promise<ValuesByFilter> {
  const { data } = (await service.request({ method: 'GET', url: `/v3/prices/${slug}/filters` }))
    .json;
  const lists = Object.entries<{ id: string; name: string }[]>(data).map(([filter, list]) => [
    filter,
    list.flatMap(({ id, name }) => [id, name]),
  ]);
  const { json } = await get(slug, '');
  return {
    ...Object.fromEntries(lists),
    codes: json.data.map((each: ValuesByFilter) => each['code']),
  };
}

/**
 * The equal parts of the answers to one request; a refusal has an id of its own. A header has only
 * the first warnings, so as many are compared as both answers have.
 */
const compared = ({ status, headers, text }: Reply, warnings: number) => ({
  status,
  type: headers['content-type'],
  about: ['x-data-revision', 'x-warnings-count'].map((name) => headers[name]),
  warnings: warningsIn(headers).slice(0, warnings),
  text: byAddress(text.replace(/"requestId":"[^"]+"/, '')),
});

const warningsIn = (headers: Reply['headers']): unknown[] =>
  JSON.parse(byAddress(headers['x-warnings'] ?? '[]'));

t.test('GET answers what POST answers, byte for byte but for the places of warnings', async (t) => {
  let answered = 0;
  for (const market of SPECIFIED) {
    const values = await valuesOf(market.slug);
    const accept = fc.constantFrom('application/json', 'text/csv', 'application/x-ndjson');
    const property = fc.asyncProperty(legalBody(market, values), accept, async (body, type) => {
      const url = `/v3/prices/${market.slug}`;
      const headers = { accept: type };
      const post = await service.request({ method: 'POST', url, payload: body, headers });
      const read = await get(market.slug, queryText(body), type);
      t.notMatch(read.text, /"pointer":"\//, 'a GET has no body to point at');
      const warningCounts = [read, post].map(({ headers: each }) => warningsIn(each).length);
      const fit = Math.min(...warningCounts);
      t.same(compared(read, fit), compared(post, fit), `${market.slug} ${JSON.stringify(body)}`);
      if (read.status === 200) answered += 1;
      return t.passing();
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  }
  t.ok(answered > 5 * SPECIFIED.length, `${answered} were answered`);
});

t.test('every market is read by GET, and HEAD has the same headers without a body', async (t) => {
  for (const { slug } of MARKETS) {
    const query = 'includeSeries=true&dateFrom=2026-06-01&aggregate=month:average&decimals=1';
    const read = await get(slug, query);
    t.ok(read.status === 200 && read.json.data[0].series.length > 0, slug);
    const head = await get(slug, query, '*/*', 'HEAD');
    t.same([head.status, head.text], [200, '']);
    const comparable = ({ headers }: Reply) => {
      const { 'content-length': length, ...rest } = headers;
      return { ...rest, date: null, 'x-request-id': null };
    };
    t.same(comparable(head), comparable(read), slug);
    t.equal(head.headers['content-length'], undefined);
  }
});

t.test('a parameter is repeated for a list, and a comma is part of a value', async (t) => {
  const both = await get('nickel', 'codes=CP-NI-0002&codes=CP-NI-0001');
  t.same(
    both.json.data.map((each: ValuesByFilter) => each['code']),
    ['CP-NI-0001', 'CP-NI-0002'],
  );
  const { json } = await get('lithium', 'products=Lithium+carbonate,%20battery%20grade');
  t.ok(json.data.length > 0);
  t.same(json.$metadata.warnings, []);
  const split = await get('nickel', 'codes=CP-NI-0001,CP-NI-0002');
  t.match(split.json, { $metadata: { count: 0, warnings: [{ pointer: '?codes/0' }] } });
});

t.test('format says which format it is, whatever Accept says', async (t) => {
  const types = { json: 'application/json', csv: 'text/csv', ndjson: 'application/x-ndjson' };
  for (const [format, type] of Object.entries(types)) {
    for (const accept of ['*/*', 'text/csv, application/json;q=0.1', 'text/html', 'nonsense']) {
      const { status, headers } = await get('copper', `format=${format}`, accept);
      t.equal(status, 200, `${format} ${accept}`);
      t.ok(headers['content-type']?.startsWith(`${type};`));
    }
  }
  t.match((await get('copper', '', 'text/csv')).headers['content-type'], /^text\/csv/);
  t.equal((await get('copper', '', 'text/html')).status, 406);
});

t.test('an address without a query, or with an empty one, asks for everything', async (t) => {
  const url = '/v3/prices/nickel';
  const all = await service.post('nickel', {});
  for (const each of [url, `${url}?`, `${url}?&`]) {
    t.equal((await service.request({ method: 'GET', url: each })).text, all.text, each);
  }
});
