import { MARKETS, type Market } from '../../src/catalog/markets.ts';
import type { Reply, Service } from './service.ts';
import { FIELDS } from './specification.ts';

/** What stands in examples for what differs from database to database. */
const STATE = { revision: 'k3f9a17hq2mx.3', asOf: '2026-07-01T06:30:00.114806Z' };

interface PriceRecord {
  readonly code: string;
  readonly lastAssessedAt: string | null;
  readonly currency: { readonly iso: string } | null;
  readonly unitOfMeasure: { readonly symbol: string };
  readonly series: readonly { readonly date: string }[];
  readonly [member: string]: unknown;
}

/** A body with the state of examples in the place of the real one. */
const timeless = <T extends { readonly $metadata: object }>(body: T): T => ({
  ...body,
  $metadata: { ...body.$metadata, ...STATE },
});

const nameIn = (record: PriceRecord, field: string): string | undefined =>
  (record[field] as { readonly name: string } | null)?.name;

/** The filters that an example shows, with the values of a record; null where it has none. */
function filtersOf(market: Market, record: PriceRecord): Record<string, string[]> | null {
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

/** Filters that find one price, and the day of its last point but one. */
async function chosen(service: Service, market: Market) {
  const { json } = await ask(service, market.slug, { options: { includeSeries: true } });
  const records: readonly PriceRecord[] = json.data;
  for (const record of records) {
    const filters = filtersOf(market, record);
    const dateFrom = record.series.at(-2)?.date;
    if (!filters || !record.currency || dateFrom === undefined) continue;
    const { json: found } = await ask(service, market.slug, { filters });
    if (found.data.length === 1) return { record, filters: { ...filters, dateFrom } };
  }
  throw new Error(`${market.slug} has no price for an example`);
}

/** A unit beside the price's own. */
const otherUnit = (symbol: string): object =>
  symbol === 'kWh' ? { unitOfMeasure: 'MWh' } : symbol === 't' ? { unitOfMeasure: 'lb' } : {};

async function marketExamples(service: Service, market: Market) {
  const { record, filters } = await chosen(service, market);
  const plain = { filters, options: { includeSeries: true } };
  const converted = {
    filters,
    options: {
      includeSeries: true,
      includeSummary: true,
      currency: record.currency?.iso === 'EUR' ? 'USD' : 'EUR',
      ...otherUnit(record.unitOfMeasure.symbol),
    },
  };
  const json = ({ json: body }: Reply) => timeless(body);
  const values = await service.request({
    method: 'GET',
    url: `/v3/prices/${market.slug}/filters`,
  });
  return {
    plain: { request: plain, answer: json(await ask(service, market.slug, plain)) },
    converted: { request: converted, answer: json(await ask(service, market.slug, converted)) },
    csv: (await ask(service, market.slug, plain, 'text/csv')).text,
    values: json(values),
  };
}

/** The examples of the OpenAPI document, as a freshly seeded database answers them. */
export async function madeExamples(service: Service) {
  const get = async (url: string) => (await service.request({ method: 'GET', url })).json;
  const markets: Record<string, object> = {};
  for (const market of MARKETS) markets[market.slug] = await marketExamples(service, market);
  const rates = '/v3/reference/rates?base=USD&quote=CNY&from=2026-06-24&to=2026-06-26';
  return {
    markets,
    list: await get('/v3/prices'),
    getCurrencies: timeless(await get('/v3/reference/currencies')),
    getUnits: timeless(await get('/v3/reference/units')),
    getRates: timeless(await get(rates)),
  };
}
