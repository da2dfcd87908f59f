import { DIMENSIONS } from '../catalog/dimensions.ts';
import { MARKETS, type Market } from '../catalog/markets.ts';
import { scopeOf } from '../catalog/scopes.ts';
import { filtersOf } from './market.ts';

/** Invented values, one for each dimension. */
const VALUES: Record<keyof typeof DIMENSIONS, string> = {
  purities: '99.8% min',
  grades: 'Battery',
  capacities: '280 Ah',
  cellFormats: 'Prismatic',
  meshSizes: '-100 mesh',
  subProducts: 'Nickel',
  feedstocks: 'NMC',
  incoterms: 'CIF',
  countries: 'China',
  regions: 'North-East Asia',
  tradeTypes: 'Import',
  services: 'Refining',
};

/** A made-up UUID that tells examples apart. */
const uuid = (n: number): string => `3f2504e0-4f89-51d3-9a0c-${String(n).padStart(12, '0')}`;

const metadata = (market: Market) => ({
  market: market.slug,
  revision: 'k3f9a1.184223',
  asOf: '2026-03-05T16:10:02.114806Z',
});

/** A request that uses filters of the market and asks for a month of series. */
export const requestExample = (market: Market) => ({
  filters: {
    dateFrom: '2026-03-01',
    dateTo: '2026-03-31',
    ...Object.fromEntries(market.filters.slice(0, 2).map((name) => [name, [VALUES[name]]])),
  },
  options: { includeSeries: true },
});

/** A record with every dimension of the market and one point. */
export function recordExample(market: Market) {
  const names = Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[];
  const dimensions = Object.fromEntries(
    names
      .filter((name) => market.filters.includes(name))
      .map((name, index) => [DIMENSIONS[name].field, { id: uuid(index + 10), name: VALUES[name] }]),
  );
  return {
    code: `CP-${market.prefix}-0001`,
    name: `${market.name}, CIF China`,
    shortName: `${market.prefix} CIF CN`,
    specification: [{ name: 'basis', value: 'dry', order: 1 }],
    assessmentLaunchedAt: '2017-03-06',
    lastAssessedAt: '2026-03-05',
    latestPublishedAt: '2026-03-05T16:00:00Z',
    product: {
      id: uuid(1),
      name: market.name,
      alias: market.prefix,
      chemicalCode: market.prefix,
      isSustainable: false,
    },
    priceCategory: { id: uuid(2), name: 'Spot' },
    frequency: { id: uuid(3), name: 'Daily', shortName: 'D' },
    ...dimensions,
    unitOfMeasure: { id: uuid(4), name: 'tonne', symbol: 't' },
    currency: { id: uuid(5), name: 'US Dollar', iso: 'USD', symbol: '$' },
    priceType: { id: uuid(6), name: 'Price' },
    series: [
      {
        date: '2026-03-05',
        low: 18700,
        mid: 18800.5,
        high: 18900,
        publishedAt: '2026-03-05T16:00:00Z',
        corrections: 0,
      },
    ],
  };
}

/** The answer to the example request. */
export const responseExample = (market: Market) => ({
  $metadata: { ...metadata(market), count: 1, nextCursor: null, warnings: [] },
  data: [recordExample(market)],
});

/** The filter values of a market, one for each filter. */
export const valuesExample = (market: Market) => ({
  $metadata: metadata(market),
  data: Object.fromEntries(
    filtersOf(market).map((name, index) => {
      const own = (VALUES as Record<string, string>)[name];
      const base: Record<string, string> = {
        products: market.name,
        priceCategories: 'Spot',
        priceTypes: 'Price',
      };
      return [name, [{ id: uuid(index + 1), name: own ?? base[name], prices: 12 }]];
    }),
  ),
});

/** The list of markets, cut to one. */
export const listExample = (market: Market) => ({
  data: [
    {
      slug: market.slug,
      name: market.name,
      scope: `prices:${market.slug}`,
      filters: [...filtersOf(market), 'codes'],
      prices: 18,
      firstDate: '2021-01-04',
      lastDate: '2026-06-30',
      authorized: true,
    },
  ],
});

export const healthExample = {
  status: 'ok',
  version: '1.0.0',
  time: '2026-03-05T16:10:02.114Z',
  checks: {
    database: 'ok',
    schema: 'ok',
    rates: 'ok',
    data: { latestPublishedAt: '2026-03-05T16:00:00Z' },
  },
};

/** The same when the database cannot be reached. */
export const unavailableExample = {
  ...healthExample,
  status: 'unavailable',
  checks: {
    database: 'unavailable',
    schema: 'unknown',
    rates: 'unknown',
    data: { latestPublishedAt: null },
  },
};

/** The beginning of the OpenAPI document. */
export const documentExample = {
  openapi: '3.1.0',
  info: { title: 'Commodity Prices Service', version: '1.0.0' },
};

const state = { revision: 'k3f9a1.184223', asOf: '2026-03-05T16:10:02.114806Z' };

/** The answers of the reference addresses, by operation. */
export const referenceExamples: Readonly<Record<string, unknown>> = {
  getMe: {
    kind: 'key',
    id: '7Kq3ZbT0xP',
    scopes: MARKETS.slice(0, 2).map(({ slug }) => scopeOf(slug)),
    markets: MARKETS.slice(0, 2).map(({ slug }) => slug),
    expiresAt: '2027-03-05T16:10:02Z',
    limits: { requestsPerMinute: 600, burst: 60, concurrent: 10 },
  },
  getCurrencies: {
    $metadata: { ...state, source: 'ECB' },
    data: [
      {
        id: uuid(5),
        iso: 'USD',
        name: 'US Dollar',
        symbol: '$',
        firstRateDate: '1999-01-04',
        lastRateDate: '2026-03-05',
      },
    ],
  },
  getUnits: {
    $metadata: state,
    data: [
      {
        id: uuid(7),
        name: 'Pound',
        symbol: 'lb',
        dimension: 'mass',
        factor: '0.45359237',
        rec20: 'LBR',
      },
    ],
  },
  getRates: {
    $metadata: {
      ...state,
      source: 'ECB',
      sourceBase: 'EUR',
      base: 'USD',
      quote: 'CNY',
      rounding: 'half-even, 10 decimals',
    },
    data: [{ date: '2019-11-08', rate: '6.988852637', legs: { base: '1.1034', quote: '7.7115' } }],
  },
};
