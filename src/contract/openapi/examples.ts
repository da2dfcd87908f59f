import { MARKETS, type Market, type MarketSlug } from '../../catalog/markets.ts';
import { scopeOf } from '../../catalog/scopes.ts';
import { CHANGE_COLUMNS } from '../schemas/changes.ts';
import { FORMAT_NAMES, FORMATS, type Format, formatEntry } from '../schemas/formats.ts';
import { pascal } from '../schemas/market.ts';
import made from './examples.json' with { type: 'json' };

/** An example in the components of the document. */
export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** References to examples in the components, by name. */
type Examples = Readonly<Record<string, { readonly $ref: string }>>;

interface ExampleRequest {
  readonly filters: object;
  readonly options: object;
}

interface ExampleRecord {
  readonly currency: { readonly iso: string } | null;
  readonly unitOfMeasure: { readonly symbol: string };
}

/** A response of a freshly seeded service. A test repeats the request. */
interface MarketExamples {
  readonly request: ExampleRequest;
  readonly answer: { readonly data: readonly ExampleRecord[] };
}

/** Responses of the first market, for forms that are alike in all markets. */
const { converted, values } = made.first;
const byFormat: Readonly<Partial<Record<Format, unknown>>> = made.first.byFormat;

/** The filter values of the first market. */
export const valuesExample: object = values;

/** The request and response of a market; none for a new market until `npm run generate` runs. */
const examplesOf = ({ slug }: Market): MarketExamples | undefined =>
  (made.markets as Readonly<Partial<Record<MarketSlug, MarketExamples>>>)[slug];

const SUMMARIES = {
  plain: 'Prices as they were published',
  converted: 'Converted, with a summary',
  short: 'The short columns',
} as const;

/** The formats with an example of the first market. */
export const FORMAT_EXAMPLES = FORMAT_NAMES.flatMap((format) => {
  const { media, example } = formatEntry(format);
  return example === null ? [] : [{ format, media, ...example }];
});

const componentOf = (market: Market, name: string): string => `${pascal(market.slug)}${name}`;

/** A unit that differs from the unit of the price. */
const otherUnit = (symbol: string): object =>
  symbol === 'kWh' ? { unitOfMeasure: 'MWh' } : symbol === 't' ? { unitOfMeasure: 'lb' } : {};

/** The example request with a conversion into another currency and, for mass and energy, unit. */
export function convertedRequest({ request, answer }: MarketExamples): ExampleRequest {
  const [record] = answer.data;
  const currency = record?.currency?.iso === 'EUR' ? 'USD' : 'EUR';
  const unit = otherUnit(record?.unitOfMeasure.symbol ?? '');
  const options = { ...request.options, includeSummary: true, currency, ...unit };
  return { filters: request.filters, options };
}

/** The examples of a market, by their names among the components. */
export function exampleComponents(market: Market): Record<string, Example> {
  const found = examplesOf(market);
  if (found === undefined) return {};
  const { answer } = found;
  const all: Record<string, Example> = {
    Plain: { summary: SUMMARIES.plain, value: answer },
    ...(market === MARKETS[0] && {
      Converted: { summary: SUMMARIES.converted, value: converted },
      ...Object.fromEntries(
        FORMAT_EXAMPLES.map(({ format, component, shows }) => [
          component,
          { summary: SUMMARIES[shows], value: byFormat[format] },
        ]),
      ),
    }),
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, example]) => [componentOf(market, name), example]),
  );
}

const named = (market: Market, names: Readonly<Record<string, string>>): Examples =>
  Object.fromEntries(
    Object.entries(names).map(([name, component]) => [
      name,
      { $ref: `#/components/examples/${componentOf(market, component)}` },
    ]),
  );

/** The examples of a request body. Only the first market has all of them. */
export function requestExamples(market: Market): Readonly<Record<string, Example>> {
  const asked = examplesOf(market);
  if (asked === undefined) return {};
  return {
    plain: { summary: SUMMARIES.plain, value: asked.request },
    ...(market === MARKETS[0] && {
      converted: { summary: SUMMARIES.converted, value: convertedRequest(asked) },
    }),
  };
}

/** The examples of a price response by media type. Only the first market has all of them. */
export function answerExamples(market: Market): Readonly<Record<string, Examples>> {
  if (examplesOf(market) === undefined) return {};
  const isWhole = market === MARKETS[0];
  return {
    [FORMATS.json.media]: named(market, {
      plain: 'Plain',
      ...(isWhole && { converted: 'Converted' }),
    }),
    ...(isWhole &&
      Object.fromEntries(
        FORMAT_EXAMPLES.map(({ media, component, shows }) => [
          media,
          named(market, { [shows]: component }),
        ]),
      )),
  };
}

const { code, lastAssessedAt, latestPublishedAt, nextExpectedAt, series, ...described } =
  (examplesOf(MARKETS[0])?.answer.data[0] ?? {}) as Readonly<Record<string, unknown>>;

/** A code of the first market. */
export const EXAMPLE_CODE = code;

/** The name of a value of a record field in the first example that has one. */
export function exampleOfField(field: string): string | undefined {
  const records = MARKETS.flatMap((market) => examplesOf(market)?.answer.data ?? []);
  const values = records.map((each) => (each as unknown as Record<string, unknown>)[field]);
  return (values.find(Boolean) as { readonly name: string } | undefined)?.name;
}

const changed = (mid: number, publishedAt: string, corrections: number) => ({
  low: 18700,
  mid,
  high: 18900,
  publishedAt,
  corrections,
});

const ofPrice = {
  recordedAt: '2026-07-01T16:10:02.114806Z',
  market: MARKETS[0].slug,
  code,
  revision: 'k3f9a1w2c7xe.184223',
};

/** A page of the change feed: a new price and a correction. */
const CHANGES = {
  $metadata: { nextSeq: 'k3f9a1w2c7xe.5120', hasMore: false, warnings: [] },
  data: [
    {
      ...{ seq: 'k3f9a1w2c7xe.5119', operation: 'price-added', ...ofPrice },
      ...{ date: null, before: null, after: described },
    },
    {
      ...{ seq: 'k3f9a1w2c7xe.5120', operation: 'corrected', ...ofPrice, date: '2026-06-30' },
      before: changed(18800, '2026-06-30T16:00:00Z', 0),
      after: changed(18800.5, '2026-07-01T16:00:00Z', 1),
    },
  ],
};

/** The examples of a change feed response, by media type. */
export const changeExamples: Readonly<Record<string, unknown>> = {
  [FORMATS.json.media]: CHANGES,
  [FORMATS.csv.media]:
    `${CHANGE_COLUMNS.join(',')}\r\n` +
    `k3f9a1w2c7xe.5120,${ofPrice.recordedAt},corrected,${ofPrice.market},${code},2026-06-30,` +
    `${ofPrice.revision},18700,18800,18900,2026-06-30T16:00:00Z,0,` +
    '18700,18800.5,18900,2026-07-01T16:00:00Z,1,,\r\n',
  [FORMATS.ndjson.media]: CHANGES.data.map((each) => `${JSON.stringify(each)}\n`).join(''),
};

/** The calculation of the document; none until `npm run generate` has run for the first time. */
const calculated = (made as { readonly calculate?: Readonly<Record<string, unknown>> }).calculate;

/** The example of the request of a calculation. */
export const calculationRequest: Readonly<Record<string, Example>> = {
  formula: { summary: 'A formula', value: calculated?.['request'] },
};

/** The examples of the answer to it, by media type. */
export const calculationExamples: Readonly<Record<string, unknown>> = {
  [FORMATS.json.media]: calculated?.['answer'],
  [FORMATS.csv.media]: calculated?.['csv'],
  [FORMATS.ndjson.media]: calculated?.['ndjson'],
};

/** The examples of the operations that belong to no market, by operation id. */
export const generalExamples: Readonly<Record<string, unknown>> = {
  getMe: {
    kind: 'key',
    id: '7Kq3ZbT0xP',
    scopes: MARKETS.slice(0, 2).map(({ slug }) => scopeOf(slug)),
    markets: MARKETS.slice(0, 2).map(({ slug }) => slug),
    expiresAt: '2027-03-05T16:10:02Z',
    limits: { requestsPerMinute: 600, burst: 60, concurrent: 10 },
  },
  getMarkets: made.list,
  getCurrencies: made.getCurrencies,
  getUnits: made.getUnits,
  getRates: made.getRates,
  searchPrices: made.searchPrices,
};

/** The due days of a price, by media type. */
export const calendarExamples: Readonly<Record<string, unknown>> = {
  'application/json': {
    $metadata: {
      revision: 'k3f9a17hq2mx.4',
      asOf: '2026-07-01T06:30:00.114806Z',
      from: '2026-12-21',
      to: '2026-12-31',
      count: 1,
      warnings: [],
    },
    data: [
      {
        market: MARKETS[0].slug,
        code: EXAMPLE_CODE,
        name: 'Lithium carbonate, weekly',
        calendar: 'london-weekly',
        reason: null,
        nextExpectedAt: '2026-12-24T16:00:00Z',
        lastAssessedAt: '2026-12-18',
        latestPublishedAt: '2026-12-18T16:00:00Z',
        lateFrom: '2026-12-24T17:00:00Z',
        lateBy: 'calendar',
        sample: false,
        days: [
          {
            date: '2026-12-24',
            dueAt: '2026-12-24T16:00:00Z',
            status: 'due',
            holiday: 'Christmas Day',
            movedFrom: '2026-12-25',
          },
        ],
      },
    ],
  },
  'text/csv':
    'market,code,name,calendar,date,dueAt,status,holiday,movedFrom,nextExpectedAt,reason,' +
    'lastAssessedAt,latestPublishedAt,lateFrom,lateBy,sample\r\n' +
    `${MARKETS[0].slug},${EXAMPLE_CODE},"Lithium carbonate, weekly",london-weekly,2026-12-24,` +
    '2026-12-24T16:00:00Z,' +
    'due,Christmas Day,2026-12-25,2026-12-24T16:00:00Z,,2026-12-18,2026-12-18T16:00:00Z,' +
    '2026-12-24T17:00:00Z,calendar,false\r\n',
  'text/calendar': 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\n…\r\nEND:VCALENDAR',
};

export const healthExample = {
  status: 'ok',
  reasons: [],
  version: '1.0.0',
  time: '2026-07-01T06:31:02.114Z',
  checks: {
    database: 'ok',
    schema: 'ok',
    rates: 'ok',
    behindSince: null,
    data: { latestPublishedAt: '2026-06-30T16:30:00Z' },
  },
};

/** The health response while the database is unreachable. */
export const unavailableExample = {
  ...healthExample,
  status: 'unavailable',
  reasons: ['The database cannot be used; the log of the service says why'],
  checks: {
    database: 'unavailable',
    schema: 'unknown',
    rates: 'unknown',
    behindSince: null,
    data: { latestPublishedAt: null },
  },
};

/** The beginning of the OpenAPI document. */
export const documentExample = {
  openapi: '3.1.0',
  info: { title: 'Commodity Prices Service', version: '1.0.0' },
};
