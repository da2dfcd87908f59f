// A client as an integrator would write it: paths, bodies and answers are typed by openapi.yaml.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

type Schemas = components['schemas'];
type ValueList = readonly Schemas['FilterValue'][];

/** The test gives the address and the key. */
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };
const { SERVICE_URL: baseUrl = '', SERVICE_KEY: key = '' } = process.env;
/** Prices come in other formats too: this client takes JSON alone. */
type Json = 'application/json' | 'application/problem+json';
const client = createClient<paths, Json>({ baseUrl, headers: { 'x-api-key': key } });

interface ClientAnswer<T> {
  readonly data?: T;
  readonly error?: Schemas['Problem'] | Schemas['Health'];
}

/** The body of an answer; a refusal is an error that says what to do. */
async function got<T>(asked: Promise<ClientAnswer<T>>): Promise<T> {
  const { data, error } = await asked;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const options = { includeSeries: true, strict: true };

/** A body that asks for one value of a filter and one year. */
function bodyOf<Name extends string>(name: Name, values: ValueList) {
  const ids = values.slice(0, 1).map((each) => each.id);
  const filters = { [name]: ids } as Record<Name, string[]>;
  return {
    body: { filters: { dateFrom: '2025-07-01', dateTo: '2026-06-30', ...filters }, options },
  };
}

interface PriceAnswer<T> {
  readonly $metadata: Schemas['Metadata'];
  readonly data: readonly T[];
}

/** The compared parts: codes, values of the requested dimension, and points. */
function report<T extends { readonly code: string; readonly series: readonly Schemas['Point'][] }>(
  { $metadata, data }: PriceAnswer<T>,
  dimensionOf: (record: T) => Schemas['Reference'] | null,
) {
  const { market, count, warnings } = $metadata;
  const values = [...new Set(data.map((each) => dimensionOf(each)?.name))];
  const points = data.reduce((sum, each) => sum + each.series.length, 0);
  return { market, count, warnings, values, codes: data.map((each) => each.code), points };
}

/** Asks each market which values a filter takes, then for the prices with the first of them. */
const asks = [
  async () => {
    const { grades } = (await got(client.GET('/v3/prices/lithium/filters'))).data;
    const prices = await got(client.POST('/v3/prices/lithium', bodyOf('grades', grades)));
    return report(prices, (each) => each.grade);
  },
  async () => {
    const { tradeTypes } = (await got(client.GET('/v3/prices/manganese/filters'))).data;
    const prices = await got(client.POST('/v3/prices/manganese', bodyOf('tradeTypes', tradeTypes)));
    return report(prices, (each) => each.tradeType);
  },
  async () => {
    const { cellFormats } = (await got(client.GET('/v3/prices/lithium-ion-battery/filters'))).data;
    const prices = await got(
      client.POST('/v3/prices/lithium-ion-battery', bodyOf('cellFormats', cellFormats)),
    );
    return report(prices, (each) => each.cellFormat);
  },
  async () => {
    const { purities } = (await got(client.GET('/v3/prices/cobalt/filters'))).data;
    const prices = await got(client.POST('/v3/prices/cobalt', bodyOf('purities', purities)));
    return report(prices, (each) => each.purity);
  },
  async () => {
    const { capacities } = (await got(client.GET('/v3/prices/anodes/filters'))).data;
    const prices = await got(client.POST('/v3/prices/anodes', bodyOf('capacities', capacities)));
    return report(prices, (each) => each.capacity);
  },
  async () => {
    const { capacities } = (await got(client.GET('/v3/prices/cathodes/filters'))).data;
    const prices = await got(client.POST('/v3/prices/cathodes', bodyOf('capacities', capacities)));
    return report(prices, (each) => each.capacity);
  },
  async () => {
    const { purities } = (await got(client.GET('/v3/prices/electrolyte/filters'))).data;
    const prices = await got(client.POST('/v3/prices/electrolyte', bodyOf('purities', purities)));
    return report(prices, (each) => each.purity);
  },
  async () => {
    const { meshSizes } = (await got(client.GET('/v3/prices/natural-graphite/filters'))).data;
    const prices = await got(
      client.POST('/v3/prices/natural-graphite', bodyOf('meshSizes', meshSizes)),
    );
    return report(prices, (each) => each.meshSize);
  },
  async () => {
    const { purities } = (await got(client.GET('/v3/prices/rare-earths/filters'))).data;
    const prices = await got(client.POST('/v3/prices/rare-earths', bodyOf('purities', purities)));
    return report(prices, (each) => each.purity);
  },
  async () => {
    const { services } = (await got(client.GET('/v3/prices/synthetic-graphite/filters'))).data;
    const prices = await got(
      client.POST('/v3/prices/synthetic-graphite', bodyOf('services', services)),
    );
    return report(prices, (each) => each.service);
  },
  async () => {
    const { feedstocks } = (await got(client.GET('/v3/prices/recycling/filters'))).data;
    const prices = await got(client.POST('/v3/prices/recycling', bodyOf('feedstocks', feedstocks)));
    return report(prices, (each) => each.feedstock);
  },
  async () => {
    const { services } = (await got(client.GET('/v3/prices/nickel/filters'))).data;
    const prices = await got(client.POST('/v3/prices/nickel', bodyOf('services', services)));
    return report(prices, (each) => each.service);
  },
  async () => {
    const { incoterms } = (await got(client.GET('/v3/prices/aluminium/filters'))).data;
    const prices = await got(client.POST('/v3/prices/aluminium', bodyOf('incoterms', incoterms)));
    return report(prices, (each) => each.incoterm);
  },
  async () => {
    const { regions } = (await got(client.GET('/v3/prices/binders-and-additives/filters'))).data;
    const prices = await got(
      client.POST('/v3/prices/binders-and-additives', bodyOf('regions', regions)),
    );
    return report(prices, (each) => each.region);
  },
  async () => {
    const { incoterms } = (await got(client.GET('/v3/prices/precursor/filters'))).data;
    const prices = await got(client.POST('/v3/prices/precursor', bodyOf('incoterms', incoterms)));
    return report(prices, (each) => each.incoterm);
  },
  async () => {
    const { countries } = (await got(client.GET('/v3/prices/solvent/filters'))).data;
    const prices = await got(client.POST('/v3/prices/solvent', bodyOf('countries', countries)));
    return report(prices, (each) => each.country);
  },
  async () => {
    const { regions } = (await got(client.GET('/v3/prices/copper/filters'))).data;
    const prices = await got(client.POST('/v3/prices/copper', bodyOf('regions', regions)));
    return report(prices, (each) => each.region);
  },
];

/** Never called: it holds that a wrong request does not compile. */
export function wrong() {
  // @ts-expect-error nickel has no grades
  const filters: Schemas['NickelFilters'] = { grades: ['Battery'] };
  client.POST('/v3/prices/nickel', { body: { filters } });
  const codes: Schemas['NickelFilters'] = { codes: ['CP-NI-0001'], dateFrom: '2026-01-01' };
  client.POST('/v3/prices/nickel', { body: { filters: codes } });
  // @ts-expect-error codes go without other filters
  const both: Schemas['NickelFilters'] = { codes: ['CP-NI-0001'], regions: ['Europe'] };
  // @ts-expect-error also in the body of a request
  client.POST('/v3/prices/nickel', { body: { filters: { codes: ['a'], regions: ['Europe'] } } });
  client.POST('/v3/prices/nickel', { body: { filters: both } });
  // @ts-expect-error there is no such market
  client.POST('/v3/prices/gold', { body: {} });
  // @ts-expect-error a filter takes a list
  client.POST('/v3/prices/copper', { body: { filters: { regions: 'Europe' } } });
  client.GET('/v3/prices/copper', { params: { query: { regions: ['Europe'] } } });
  // @ts-expect-error a parameter that repeats takes a list
  client.GET('/v3/prices/copper', { params: { query: { regions: 'Europe' } } });
}

/** Never called: what was published is there, and what was withdrawn is not, without a check. */
export function told(change: Schemas['Change']): number | null {
  switch (change.operation) {
    case 'published':
    case 'corrected':
      return change.after.mid;
    case 'withdrawn':
      return change.after;
    default:
      return change.after.name.length;
  }
}

const { data: markets } = await got(client.GET('/v3/prices'));
const health = await got(client.GET('/health'));
const reports = await Promise.all(asks.map((ask) => ask()));
console.log(JSON.stringify({ markets, health, reports }));
