import Type, { type TSchema } from 'typebox';
import { SPANS } from '../../catalog/analytics.ts';
import { DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { ref } from './components.ts';

/**
 * The formats of prices: the media type of `Accept`, the content type of the response, and its
 * disposition in a browser, shown or saved as a file with this extension.
 */
export const FORMATS = {
  json: {
    media: 'application/json',
    type: 'application/json; charset=utf-8',
    extension: 'json',
    disposition: 'inline',
  },
  csv: {
    media: 'text/csv',
    type: 'text/csv; charset=utf-8; header=present',
    extension: 'csv',
    disposition: 'attachment',
  },
  ndjson: {
    media: 'application/x-ndjson',
    type: 'application/x-ndjson; charset=utf-8',
    extension: 'ndjson',
    disposition: 'attachment',
  },
  rows: {
    media: 'application/json;profile=rows',
    type: 'application/json; profile=rows; charset=utf-8',
    extension: 'json',
    disposition: 'inline',
  },
  parquet: {
    media: 'application/vnd.apache.parquet',
    type: 'application/vnd.apache.parquet',
    extension: 'parquet',
    disposition: 'attachment',
  },
  arrow: {
    media: 'application/vnd.apache.arrow.stream',
    type: 'application/vnd.apache.arrow.stream',
    extension: 'arrows',
    disposition: 'attachment',
  },
} as const;

export type Format = keyof typeof FORMATS;

/** The formats, the default first. */
export const FORMAT_NAMES = Object.keys(FORMATS) as readonly Format[];

/** The formats of options that apply to some formats only. */
export const FORMATS_OF = {
  columns: ['csv', 'rows', 'parquet', 'arrow'],
  layout: ['csv', 'rows'],
  warnings: ['csv', 'ndjson'],
  decimalsAsText: ['json', 'ndjson', 'rows'],
} as const satisfies Readonly<Record<string, readonly Format[]>>;

/** The CSV of prices. */
export const PriceCsv = Type.String({
  $id: 'PriceCsv',
  pattern: '^[^\\r\\n]+\\r\\n',
  description: 'A row of column names, then a row for each price and date',
});

/** Prices as rows of JSON. */
export const PriceRows = Type.Unsafe({
  $id: 'PriceRows',
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
  },
  description: 'An object for each row, with a member for each column',
});

/**
 * NDJSON with one record on each line; `last` is the schema of further lines at the end. The
 * content schema has the lines as a list.
 */
export const ndjsonSchema = ($id: string, record: TSchema, last?: TSchema): TSchema =>
  Type.Unsafe({
    $id,
    type: 'string',
    contentSchema: {
      type: 'array',
      items: last ? { anyOf: [ref(record), ref(last)] } : ref(record),
    },
    description: 'One record on each line, as in `data` of the JSON',
  });

/** Prices as a Parquet file. */
export const PriceParquet = Type.Unsafe({
  $id: 'PriceParquet',
  type: 'string',
  contentMediaType: FORMATS.parquet.media,
  description: 'The columns of the CSV: decimals as DECIMAL, dates as DATE',
});

/** Prices as an Arrow IPC stream. */
export const PriceArrow = Type.Unsafe({
  $id: 'PriceArrow',
  type: 'string',
  contentMediaType: FORMATS.arrow.media,
  description: 'The columns of the CSV: decimals as Decimal128, dates as Date32',
});

/** The price response in each of its formats. */
export const pricesContent = (schemas: {
  readonly response: TSchema;
  readonly ndjson: TSchema;
}) => ({
  description: 'The prices',
  content: {
    [FORMATS.json.media]: { schema: ref(schemas.response) },
    [FORMATS.csv.media]: { schema: ref(PriceCsv) },
    [FORMATS.ndjson.media]: { schema: ref(schemas.ndjson) },
    [FORMATS.rows.media]: { schema: ref(PriceRows) },
    [FORMATS.parquet.media]: { schema: ref(PriceParquet) },
    [FORMATS.arrow.media]: { schema: ref(PriceArrow) },
  },
});

/** The record fields of a market's dimensions, in the order of the record. */
export const dimensionFields = (market: Market): readonly string[] =>
  (Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[])
    .filter((name) => market.filters.includes(name))
    .map((name) => DIMENSIONS[name].field);

/** The groups of columns, in the order of a row. */
export const CSV_GROUPS = {
  values: ['date', 'low', 'mid', 'high'],
  currencyAndUnit: ['currency', 'unitOfMeasure'],
  publication: ['publishedAt', 'corrections'],
  names: ['name', 'shortName', 'product', 'priceCategory', 'priceType', 'frequency'],
  about: [
    'productAlias',
    'chemicalCode',
    'isSustainable',
    'specification',
    'assessmentLaunchedAt',
    'lastAssessedAt',
    'latestPublishedAt',
  ],
  period: ['periodStart', 'periodEnd', 'observations'],
  rates: ['fxDate', 'fxBase', 'fxFrom', 'fxTo'],
  conversion: [
    'conversionStatus',
    'conversionReason',
    'fromCurrency',
    'fromUnitOfMeasure',
    'toCurrency',
    'toUnitOfMeasure',
    'unitMultiply',
    'unitDivide',
    'rateSource',
    'rounding',
  ],
  summary: [
    'latestDate',
    'latestMid',
    'previousDate',
    'previousMid',
    ...SPANS.flatMap((span) => [`${span}Absolute`, `${span}Percent`, `${span}BaseDate`]),
  ],
  leftOut: ['observationsLeftOut'],
} as const;

/** The columns of `columns=short`, which are for human readers. */
export const SHORT_COLUMNS: readonly string[] = [
  'code',
  'name',
  'date',
  'low',
  'mid',
  'high',
  'currency',
  'unitOfMeasure',
  'corrections',
];

/**
 * The columns of a market's CSV. Every response has all of them. Their order never changes; new
 * columns are appended.
 */
export const csvColumns = (market: Market): readonly string[] => [
  'code',
  ...CSV_GROUPS.values,
  ...CSV_GROUPS.currencyAndUnit,
  ...CSV_GROUPS.publication,
  ...CSV_GROUPS.names,
  ...dimensionFields(market),
  ...CSV_GROUPS.about,
  ...CSV_GROUPS.period,
  ...CSV_GROUPS.rates,
  ...CSV_GROUPS.conversion,
  ...CSV_GROUPS.summary,
  ...CSV_GROUPS.leftOut,
];
