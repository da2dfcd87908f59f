import fc from 'fast-check';
import type { InjectOptions } from 'fastify';
import t, { type Test } from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { FORMAT_NAMES, FORMATS, type Format } from '../../src/contract/schemas/formats.ts';
import { OPTION_NAMES } from '../../src/contract/schemas/options.ts';
import { seededDatabase } from '../support/database/database.ts';
import { legalBody, type RequestBody, type ValuesByFilter } from '../support/fuzz/bodies.ts';
import { type KnownRevision, withForm } from '../support/fuzz/forms.ts';
import { faultOf } from '../support/http/conformity.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { partsOf } from '../support/office/workbook.ts';
import { readArrow } from '../support/prices/arrow.ts';
import { byAddress, queryText } from '../support/prices/query.ts';
import { SPECIFIED, type SpecifiedMarket } from '../support/prices/specification.ts';

/** Random requests of each market. One seed for all would draw the same formats for each. */
const RUNS = 20;
const SEED = 20_261_122;

let service: Service;
t.before(async () => {
  // Random texts are long once they are escaped.
  service = await serviceOn(t, await seededDatabase(t), { URL_BYTES_MAX: 65_536 });
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

/** An answer with its bytes. */
interface ByteReply extends Pick<Reply, 'status' | 'headers' | 'text'> {
  readonly bytes: Buffer;
}

/** Sends a request. @throws Error if the answer is not as in openapi.yaml */
async function send(options: InjectOptions & { url: string }): Promise<ByteReply> {
  const headers = { 'x-api-key': service.key, ...options.headers };
  const answer = await service.app.inject({ ...options, headers });
  const { statusCode, rawPayload, body } = answer;
  const fault = faultOf(String(options.method), options.url, answer);
  if (fault) throw new Error(`${fault}\n${body.slice(0, 500)}`);
  return {
    status: statusCode,
    headers: answer.headers as Reply['headers'],
    text: body,
    bytes: rawPayload,
  };
}

/** A Parquet file without its footer, and the metadata in the footer. */
function parquetContents(bytes: Buffer): readonly string[] {
  const end = bytes.length - 8;
  const start = end - bytes.readUInt32LE(end);
  const footer = bytes.toString('utf8', start, end);
  const metadata = /\{"market":.*"warningsCount":\d+\}/.exec(footer)?.[0] ?? '';
  return [bytes.toString('base64', 0, start), byAddress(metadata)];
}

/** The contents of an answer, with the pointers of a GET; a refusal has an id of its own. */
async function contentsOf({ status, text, bytes }: ByteReply, format: Format): Promise<unknown> {
  if (status === 200 && format === 'parquet') return parquetContents(bytes);
  if (status === 200 && format === 'arrow') {
    const { metadata, ...table } = readArrow(bytes);
    return { ...table, metadata: byAddress(metadata['metadata'] ?? '') };
  }
  if (status === 200 && format === 'xlsx') {
    const [...parts] = await partsOf(bytes);
    // A warning of the sheet About.
    const pointer = /(\w+ )\/(?:filters|options)\/(\w+)(\/\d+)?[^<]*</g;
    return parts.map(([path, xml]) => [path, xml.replace(pointer, '$1?$2$3<')]);
  }
  return byAddress(text.replace(/"requestId":"[^"]+"/, ''));
}

/**
 * The equal parts of the answers to one request. A header has only the first warnings, so as many
 * are compared as both answers have.
 */
const compared = async (answer: ByteReply, format: Format, warnings: number) => ({
  status: answer.status,
  headers: ['content-type', 'x-data-revision', 'x-next-cursor', 'x-warnings-count'].map(
    (name) => answer.headers[name],
  ),
  warnings: warningsIn(answer.headers).slice(0, warnings),
  contents: await contentsOf(answer, format),
});

const warningsIn = (headers: Reply['headers']): unknown[] =>
  JSON.parse(byAddress(headers['x-warnings'] ?? '[]'));

/** A random request in one format, which `Accept` or the parameter names. */
interface FormRequest {
  readonly body: RequestBody;
  readonly format: Format;
  readonly isNamed: boolean;
}

const requestOf = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
  known: KnownRevision,
): fc.Arbitrary<FormRequest> =>
  fc
    .tuple(legalBody(market, values), fc.constantFrom(...FORMAT_NAMES), fc.boolean())
    .chain(([body, format, isNamed]) =>
      withForm(body, format, known).map((formed) => ({ body: formed, format, isNamed })),
    );

/** Sends a request by GET and by POST, compares the answers, and returns that of the GET. */
async function askBoth(
  t: Pick<Test, 'same' | 'notMatch'>,
  slug: string,
  { body, format, isNamed }: FormRequest,
): Promise<ByteReply> {
  const url = `/v3/prices/${slug}`;
  const headers = { accept: FORMATS[format].media };
  const post = await send({ method: 'POST', url, payload: body, headers });
  const address = `${url}?${queryText(body)}`;
  const read = isNamed
    ? await send({ method: 'GET', url: `${address}&format=${format}` })
    : await send({ method: 'GET', url: address, headers });
  t.notMatch(read.text, /"pointer":"\/|# warning \w+ \//, 'a GET has no body to point at');
  const fit = Math.min(...[read, post].map((each) => warningsIn(each.headers).length));
  const title = `${slug} ${format} ${JSON.stringify(body)}`;
  t.same(await compared(read, format, fit), await compared(post, format, fit), title);
  return read;
}

/** The request for the page at a cursor. The cursor has the revision. */
function pageAt(request: FormRequest, cursor: string): FormRequest {
  const { filters, options } = request.body;
  const { asOf: _instant, revision: _revision, ...rest } = options;
  return { ...request, body: { filters, options: { ...rest, cursor } } };
}

t.test('GET answers what POST answers, byte for byte but for the places of warnings', async (t) => {
  const { revision, asOf } = (await get('nickel', '')).json.$metadata;
  let answered = 0;
  let warningRows = 0;
  const options = new Set<string>();
  const formats = new Map<string, number>();
  for (const [at, market] of SPECIFIED.entries()) {
    const requests = requestOf(market, await valuesOf(market.slug), { revision, asOf });
    const property = fc.asyncProperty(requests, async (first) => {
      const pages = [first];
      for (const page of pages) {
        const { status, headers, text } = await askBoth(t, market.slug, page);
        if (status !== 200) continue;
        answered += 1;
        formats.set(page.format, (formats.get(page.format) ?? 0) + 1);
        for (const name of Object.keys(page.body.options)) options.add(name);
        if (/# warning \w+ \?|^\{"warning":/m.test(text)) warningRows += 1;
        const cursor = headers['x-next-cursor'];
        if (cursor !== undefined && pages.length < 2) pages.push(pageAt(page, cursor));
      }
      return t.passing();
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED + at });
  }
  t.ok(answered > 5 * SPECIFIED.length, `${answered} were answered`);
  t.ok(warningRows > 5, `${warningRows} had warnings as rows`);
  t.same([...formats.keys()].sort(), [...FORMAT_NAMES].sort(), 'every format was answered');
  t.ok(Math.min(...formats.values()) > SPECIFIED.length, JSON.stringify([...formats]));
  t.same([...options].sort(), [...OPTION_NAMES].sort(), 'every option was answered');
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
  for (const [format, { type }] of Object.entries(FORMATS)) {
    for (const accept of ['*/*', 'text/csv, application/json;q=0.1', 'text/html', 'nonsense']) {
      const { status, headers } = await get('copper', `format=${format}`, accept);
      t.equal(status, 200, `${format} ${accept}`);
      t.equal(headers['content-type'], type);
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

/** The longest address in a Link header. */
const LINK_MAX = 4_096;

/** Codes that match nothing, as parameters of about this many bytes. */
function padding(bytes: number): string {
  const codes: string[] = [];
  for (let left = bytes; left > 0; left -= 128) {
    codes.push(`&codes=${'z'.repeat(Math.max(1, Math.min(121, left - 7)))}`);
  }
  return codes.join('');
}

t.test('a page has a cursor, and a link unless the next address is too long', async (t) => {
  const page = (more: string) => get('nickel', `limit=1&codes=CP-NI-0001&codes=CP-NI-0002${more}`);
  const nextOf = ({ headers }: Reply) => /^<(.*)>; rel="next"$/.exec(headers['link'] ?? '')?.[1];
  const spare = LINK_MAX - (nextOf(await page(''))?.length ?? 0);
  for (const [more, isLinked] of [
    [spare, true],
    [spare + 1, false],
    [7_000, false],
  ] as const) {
    const first = await page(padding(more));
    const next = nextOf(first);
    t.same([first.status, next?.length], [200, isLinked ? LINK_MAX : undefined]);
    const cursor = encodeURIComponent(first.headers['x-next-cursor'] ?? '');
    const pages = [await page(`${padding(more)}&cursor=${cursor}`)];
    if (next !== undefined) pages.push(await get('nickel', next.slice(1)));
    for (const { json, headers } of pages) {
      t.same([json.data.length, json.data[0].code], [1, 'CP-NI-0002']);
      t.same([headers['link'], headers['x-next-cursor']], [undefined, undefined], 'the last page');
    }
  }
});
