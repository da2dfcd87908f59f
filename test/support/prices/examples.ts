import { MARKETS, type Market } from '../../../src/catalog/markets.ts';
import { convertedRequest, FORMAT_EXAMPLES } from '../../../src/contract/openapi/examples.ts';
import type { Reply, Service } from '../http/service.ts';
import { FIELDS } from './specification.ts';

/** Placeholders for values that differ from database to database. */
const STATE = { revision: 'k3f9a17hq2mx.3', asOf: '2026-07-01T06:30:00.114806Z' };

interface PricedExample {
  readonly code: string;
  readonly lastAssessedAt: string | null;
  readonly currency: { readonly iso: string } | null;
  readonly unitOfMeasure: { readonly symbol: string };
  readonly series: readonly { readonly date: string }[];
  readonly [member: string]: unknown;
}

/** Replaces the revision and time of a body by the placeholders. */
const timeless = <T extends { readonly $metadata: object }>(body: T): T => ({
  ...body,
  $metadata: { ...body.$metadata, ...STATE },
});

const nameIn = (record: PricedExample, field: string): string | undefined =>
  (record[field] as { readonly name: string } | null)?.name;

/** The filters that an example shows, with the values of a record; null where it has none. */
function filtersOf(market: Market, record: PricedExample): Record<string, string[]> | null {
  const [first, second] = market.filters;
  const names = ['products', ...[first, second].filter((each) => each !== undefined)];
  const filters = names.map((name) => {
    return [name, nameIn(record, FIELDS[name] ?? '')] as const;
  });
  if (filters.some(([, value]) => value === undefined)) return null;
  return Object.fromEntries(filters.map(([name, value]) => [name, [value ?? '']]));
}

async function ask(service: Service, slug: string, body: object, accept = 'application/json') {
  const url = `/v3/prices/${slug}`;
  const answer = await service.request({
    method: 'POST',
    url,
    payload: body,
    headers: { accept },
  });
  if (answer.status !== 200) throw new Error(answer.text);
  return answer;
}

/** Filters that find one price, and the day of its last point. */
async function chosen(service: Service, market: Market) {
  const { json } = await ask(service, market.slug, { options: { includeSeries: true } });
  const records: readonly PricedExample[] = json.data;
  for (const record of records) {
    const filters = filtersOf(market, record);
    const dateFrom = record.series.at(-1)?.date;
    if (!filters || !record.currency || dateFrom === undefined) continue;
    const { json: found } = await ask(service, market.slug, { filters });
    if (found.data.length === 1) return { ...filters, dateFrom };
  }
  throw new Error(`${market.slug} has no price for an example`);
}

/** The body of an answer with placeholders. */
const body = ({ json }: Reply) => timeless(json);

/** A request of a market and its answer. */
async function marketExamples(service: Service, market: Market) {
  const request = { filters: await chosen(service, market), options: { includeSeries: true } };
  return { request, answer: body(await ask(service, market.slug, request)) };
}

type ExamplesByMarket = Awaited<ReturnType<typeof marketExamples>>;

/** Values that an example shows of each filter. */
const VALUES = 1;

/** Answers of a market that look alike in all of them. */
async function answersOf(service: Service, market: Market, asked: ExamplesByMarket) {
  const { slug } = market;
  const values = body(await service.request({ method: 'GET', url: `/v3/prices/${slug}/filters` }));
  const some = Object.entries<unknown[]>(values.data).map(([filter, all]) => [
    filter,
    all.slice(0, VALUES),
  ]);
  const { request } = asked;
  const short = { ...request, options: { ...request.options, columns: 'short' } };
  const byFormat: Record<string, unknown> = {};
  for (const { format, media, shows } of FORMAT_EXAMPLES) {
    const { text, json } = await ask(service, slug, shows === 'short' ? short : request, media);
    byFormat[format] = json ?? text;
  }
  return {
    converted: body(await ask(service, slug, convertedRequest(asked))),
    byFormat,
    values: { ...values, data: Object.fromEntries(some) },
  };
}

/** A calculation, and its answer in each format. */
async function calculationExamples(service: Service) {
  const request = {
    formula: 'nickel * content',
    inputs: {
      nickel: { code: 'CP-NI-0001', period: 'S' },
      content: { value: '18', unit: '%' },
    },
    anchor: '2026-06-24',
  };
  const calculate = async (accept: string) => {
    const options = { method: 'POST', url: '/v3/calculations', payload: request };
    const answer = await service.request({ ...options, headers: { accept } });
    if (answer.status !== 200) throw new Error(answer.text);
    return answer;
  };
  const [csv, lines] = [await calculate('text/csv'), await calculate('application/x-ndjson')];
  return {
    request,
    answer: body(await calculate('application/json')),
    csv: csv.text,
    ndjson: lines.text,
  };
}

/** The examples of the OpenAPI document, as a freshly seeded database answers them. */
export async function recordExamples(service: Service) {
  const get = async (url: string) => (await service.request({ method: 'GET', url })).json;
  const markets: Record<string, ExamplesByMarket> = {};
  for (const market of MARKETS) markets[market.slug] = await marketExamples(service, market);
  const [first] = MARKETS;
  const list = await get('/v3/prices');
  const rates = '/v3/reference/rates?base=USD&quote=CNY&from=2026-06-24&to=2026-06-26';
  const currencies = timeless(await get('/v3/reference/currencies'));
  const units = timeless(await get('/v3/reference/units'));
  return {
    markets,
    first: await answersOf(service, first, markets[first.slug] as ExamplesByMarket),
    list: { data: list.data.slice(0, 2) },
    getCurrencies: { ...currencies, data: currencies.data.slice(0, 3) },
    getUnits: { ...units, data: units.data.slice(0, 4) },
    getRates: timeless(await get(rates)),
    searchPrices: timeless(await get('/v3/search?q=nickel%20briq&limit=1')),
    calculate: await calculationExamples(service),
  };
}
