import { FORMATS, type Format } from '../src/contract/schemas/formats.ts';
import { DAYS, FIRST_DAY, LAST_DAY, MARKET, MARKET_CODES, SMALL_REGION } from './dataset.ts';
import type { HttpRequest } from './http-client.ts';

/** A workload, independent of the contender. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  /** The selected codes. */
  readonly codes: readonly string[];
  /** Days of the series; null for records without series. */
  readonly range: { readonly from: string; readonly to: string } | null;
  /** Date ranges that successive requests cycle through; without them all are equal. */
  readonly ranges?: readonly { readonly from: string; readonly to: string }[];
  /** The filters and options of the service's request. */
  readonly filters: Readonly<Record<string, unknown>>;
  readonly options: Readonly<Record<string, unknown>>;
  /** True for a GET with all parameters in the query string. */
  readonly byGet?: boolean;
  /** True if only the answer that is kept is measured, beside one server that only sends it. */
  readonly isKept?: boolean;
  /** True for data of a past instant, which the price book does not hold. */
  readonly isPast?: boolean;
  /** The bodies of calculations that successive requests cycle through, instead of the market. */
  readonly calculations?: readonly Readonly<Record<string, unknown>>[];
  /** Further request headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

const YEAR = { from: '2023-07-01', to: '2024-06-30' };
const MONTH = { from: '2024-03-01', to: '2024-04-01' };
const ALL = { from: FIRST_DAY, to: LAST_DAY };
const TWELVE = MARKET_CODES.filter((_, index) => index % 20 === 7 && index < 240);
const FIVE = MARKET_CODES.filter((_, index) => index % 50 === 11);
const SERIES = { includeSeries: true };
const dates = ({ from, to }: typeof YEAR) => ({ dateFrom: from, dateTo: to });

const W1 = {
  codes: TWELVE,
  range: null,
  filters: { regions: [SMALL_REGION] },
  options: {},
};

const W2 = {
  codes: FIVE,
  range: MONTH,
  filters: { codes: FIVE, ...dates(MONTH) },
  options: SERIES,
};

const W3 = {
  codes: MARKET_CODES,
  range: YEAR,
  filters: dates(YEAR),
  options: SERIES,
};

/** All ranges of this many business days. */
const stretches = (days: number) =>
  DAYS.slice(days - 1).map((to, index) => ({ from: DAYS[index] as string, to }));
const MONTHS = stretches(22);
const YEARS = stretches(261);

/** W3 in another format; the option columns applies to rows. */
const inFormat = (format: Format): Workload => ({
  name: `W3${format}`,
  title: `W3 as ${format}`,
  ...W3,
  options: format === 'rows' ? { ...SERIES, columns: 'short' } : SERIES,
  headers: { accept: FORMATS[format].media },
  isKept: true,
});

const inCoding = (coding: string): Workload => ({
  name: `W3${coding}`,
  title: `W3, ${coding}`,
  ...W3,
  headers: { 'accept-encoding': coding },
  isKept: true,
});

/** Calculations: no filters, options or points of a market. */
const calculated = (
  name: string,
  title: string,
  codes: readonly string[],
  calculations: NonNullable<Workload['calculations']>,
): Workload => ({ name, title, codes, range: null, filters: {}, options: {}, calculations });

const averageOf = (code: string) => ({ code, period: 'M-1' });
const YEARS_OF_DATA = [...new Set(DAYS.map((day) => day.slice(0, 4)))];
const MONTHS_OF_DATA = [...new Set(DAYS.map((day) => day.slice(0, 7)))];

const monthOf = (code: string | undefined, period: string) => ({ average: code, period });

const anchorsOf = (codes: readonly string[], year: string) => ({
  formula: 'a + b + c + d + e',
  inputs: Object.fromEntries(codes.map((code, at) => ['abcde'.charAt(at), averageOf(code)])),
  anchor: { from: `${year}-01`, to: `${year}-12`, every: 'month' },
});

/** Five codes from each place on, so that no request is repeated in a run. */
const FIVES = MARKET_CODES.map((_, at) =>
  [0, 1, 2, 3, 4].map((step) => MARKET_CODES[(at + 50 * step) % MARKET_CODES.length] as string),
);

const CALCULATIONS: readonly Workload[] = [
  calculated('month', 'the average of a month of 1 code, with its receipt', FIVE.slice(0, 1), [
    monthOf(FIVE[0], '2024-03'),
  ]),
  calculated(
    'monthother',
    'month, another code or month in each request',
    MARKET_CODES,
    MONTHS_OF_DATA.flatMap((month) => MARKET_CODES.map((code) => monthOf(code, month))),
  ),
  calculated('anchors', 'a formula of 5 averages for each month of a year', FIVE, [
    anchorsOf(FIVE, '2024'),
  ]),
  calculated(
    'anchorsother',
    'anchors, other codes or another year in each request',
    MARKET_CODES,
    YEARS_OF_DATA.slice(1).flatMap((year) => FIVES.map((codes) => anchorsOf(codes, year))),
  ),
];

/** The repeated answer of a year in each format and content coding. */
export const REPEATED = [
  ...['W3', 'W3csv', 'W3gzip', 'W3csvgzip'],
  ...['W3ndjson', 'W3rows', 'W3parquet', 'W3arrow', 'W3zstd', 'W3br'],
] as const;

/** W1 to W5 of the design, other encodings of the same data, and latest values. */
export const WORKLOADS: readonly Workload[] = [
  { name: 'W1', title: '12 records, no series', ...W1 },
  { name: 'W1days', title: 'W1, other days in each request', ...W1, ranges: MONTHS },
  { name: 'W1past', title: 'W1 at a past revision', ...W1, isPast: true },
  { name: 'W2', title: '5 codes × 22 days', ...W2 },
  { name: 'W2days', title: 'W2, other days in each request', ...W2, ranges: MONTHS },
  { name: 'W3', title: '250 prices × 1 year', ...W3 },
  { name: 'W3past', title: 'W3 at a past revision', ...W3, isPast: true },
  { name: 'W3gzip', title: 'W3, gzip', ...W3, headers: { 'accept-encoding': 'gzip' } },
  { name: 'W3days', title: 'W3, other days in each request', ...W3, ranges: YEARS },
  { name: 'W3get', title: 'W3 by GET', ...W3, byGet: true },
  { name: 'W3csv', title: 'W3 as CSV', ...W3, headers: { accept: 'text/csv' } },
  {
    name: 'W3csvgzip',
    title: 'W3 as CSV, gzip',
    ...W3,
    headers: { accept: 'text/csv', 'accept-encoding': 'gzip' },
  },
  ...(['ndjson', 'rows', 'parquet', 'arrow'] as const).map(inFormat),
  ...['zstd', 'br'].map(inCoding),
  {
    name: 'W4',
    title: '250 prices × 10 years',
    codes: MARKET_CODES,
    range: ALL,
    filters: {},
    options: SERIES,
  },
  {
    name: 'W4gzip',
    title: 'W4, gzip',
    codes: MARKET_CODES,
    range: ALL,
    filters: {},
    options: SERIES,
    headers: { 'accept-encoding': 'gzip' },
  },
  {
    name: 'W5',
    title: 'W3 converted, USD → EUR and t → lb',
    ...W3,
    options: { ...SERIES, currency: 'EUR', unitOfMeasure: 'lb' },
  },
  {
    name: 'latest',
    title: 'the latest value of each of 250 prices, other days in each request',
    codes: MARKET_CODES,
    range: { from: LAST_DAY, to: LAST_DAY },
    ranges: YEARS,
    filters: {},
    options: { ...SERIES, lastObservations: 1 },
  },
  ...CALCULATIONS,
];

/** Points of an answer. */
export const pointsOf = ({ codes, range }: Workload): number =>
  range === null
    ? 0
    : codes.length * DAYS.filter((day) => day >= range.from && day <= range.to).length;

/**
 * The number of requests of each workload that were sent already, over all bursts: the service
 * keeps a copy of an answer that is requested twice.
 */
const sent = new Map<Workload, number>();

/** The next of the values that successive requests of a workload cycle through. */
function nextOf<Value>(workload: Workload, values: readonly Value[]): Value {
  const at = sent.get(workload) ?? 0;
  sent.set(workload, at + 1);
  return values[at % values.length] as Value;
}

const JSON_HEADERS = { 'content-type': 'application/json' };

/**
 * The request of a workload to the service.
 * @param past the instant of workloads of the past
 */
export function serviceRequest(workload: Workload, key: string, past?: string): HttpRequest {
  const { filters, headers, ranges } = workload;
  const options = workload.isPast ? { ...workload.options, asOf: past } : workload.options;
  if (workload.byGet) return askByGet(workload, key);
  const { calculations } = workload;
  const ask: HttpRequest = {
    method: 'POST',
    path: calculations ? '/v3/calculations' : `/v3/prices/${MARKET}`,
    headers: { ...JSON_HEADERS, 'x-api-key': key, ...headers },
    body: JSON.stringify(calculations?.[0] ?? { filters, options }),
  };
  if (calculations) {
    return { ...ask, next: () => JSON.stringify(nextOf(workload, calculations)) };
  }
  if (!ranges) return ask;
  const next = (): string => {
    const days = dates(nextOf(workload, ranges));
    return JSON.stringify({ filters: { ...filters, ...days }, options });
  };
  return { ...ask, next };
}

/** The same as a GET with all filters and options in the query string. */
export function askByGet({ filters, options }: Workload, key: string, etag?: string): HttpRequest {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filters, ...options })) {
    for (const each of [value].flat()) query.append(name, String(each));
  }
  const condition = etag === undefined ? {} : { 'if-none-match': etag };
  const headers = { 'x-api-key': key, ...condition };
  return { method: 'GET', path: `/v3/prices/${MARKET}?${query}`, headers, body: '' };
}

/** The request to the naive service: the same body, at the root. */
export const askNaive = ({ filters, options }: Workload): HttpRequest => ({
  method: 'POST',
  path: '/',
  headers: JSON_HEADERS,
  body: JSON.stringify({ filters, options }),
});

const graphql = (query: string, variables: unknown): HttpRequest => ({
  method: 'POST',
  path: '/graphql',
  headers: JSON_HEADERS,
  body: JSON.stringify({ query, variables }),
});

const POINT = 'date low mid high publishedAt corrections';
const DIMENSIONS = [
  'PriceCategory',
  'Frequency',
  'Purity',
  'Incoterm',
  'Country',
  'Region',
  'Service',
];

/** PostGraphile: records with their dimensions, and series if the workload has them. */
export function askPostgraphile({ codes, range }: Workload): HttpRequest {
  const dimensions = DIMENSIONS.map((name) => `dimensionValueBy${name}Id { uuid name }`).join(' ');
  const points = range ? `points(fromDate: $from, toDate: $to) { nodes { ${POINT} } }` : '';
  const types = range ? '($codes: [String], $from: Date, $to: Date)' : '($codes: [String])';
  const query = `query q${types} { benchPrices(codes: $codes) { nodes {
    code name shortName specification assessmentLaunchedAt ${dimensions}
    productByProductIdAndMarketId { uuid name } currencyByCurrencyId { iso name symbol }
    unitOfMeasureByUnitIdAndUnitDimension { name symbol } ${points} } } }`;
  return graphql(query.replaceAll(/\s+/g, ' '), { codes, ...range });
}

/** Platformatic DB: nested records, or flat points, since it has no path from a price to them. */
export function askPlatformatic({ codes, range }: Workload, ids: readonly number[]): HttpRequest {
  if (range) {
    const date = `{ gte: "${range.from}", lte: "${range.to}" }`;
    const where = `{ priceId: { in: ${JSON.stringify(ids)} }, date: ${date} }`;
    const order = '[{ field: priceId, direction: ASC }, { field: date, direction: ASC }]';
    return graphql(
      `{ series(limit: 10000000, where: ${where}, orderBy: ${order}) { priceId ${POINT} } }`,
      {},
    );
  }
  const nested = [
    'priceCategory',
    'frequency',
    'purity',
    'incoterm',
    'country',
    'region',
    'service',
  ];
  const where = `{ code: { in: ${JSON.stringify(codes)} } }`;
  return graphql(
    `{ price(where: ${where}, orderBy: [{ field: code, direction: ASC }]) {
      code name shortName specification assessmentLaunchedAt product { uuid name }
      currency { iso name symbol } unit { name symbol }
      ${nested.map((name) => `${name} { uuid name }`).join(' ')} } }`.replaceAll(/\s+/g, ' '),
    {},
  );
}
