import Type, { type TSchema } from 'typebox';
import { SPANS } from '../../catalog/analytics.ts';
import { DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { ref } from './components.ts';
import type { OptionName } from './options.ts';

/*
 * The table of formats. Everything else that knows formats derives from it: the negotiation, the
 * headers of an answer, the OpenAPI document and its examples, and the refusals of options that do
 * not apply. `src/prices/write/formats.ts` has the writer of each format.
 */

/** A format of prices. */
interface FormatEntry {
  /** The media type in `Accept`. */
  readonly media: string;
  /** The content type of the response. */
  readonly type: string;
  /** Shown in a browser, or saved as a file with this extension. */
  readonly disposition: 'inline' | 'attachment';
  readonly extension: string;
  /** True if the body is compressed already, so that a content coding would save nothing. */
  readonly isCompressed?: boolean;
  /** True if the body has `$metadata`; otherwise headers have its content. */
  readonly hasMetadata: boolean;
  /** The options that apply to some formats, among them this one; all others apply to all. */
  readonly options: readonly OptionName[];
  /** The schema of the body: one of all markets, or the name of one that each market has. */
  readonly schema: { readonly shared: TSchema } | { readonly ofMarket: MarketSchema };
  /** The component with an example of the first market; null if the format needs none. */
  readonly example: { readonly component: string; readonly shows: ExampleContents } | null;
}

type MarketSchema = 'response' | 'ndjson';

/** The contents of an example: all columns, or the short ones. */
type ExampleContents = 'plain' | 'short';

const PARQUET = 'application/vnd.apache.parquet';
const ARROW = 'application/vnd.apache.arrow.stream';
const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** The CSV of prices. */
const PriceCsv = Type.String({
  $id: 'PriceCsv',
  pattern: '^[^\\r\\n]+\\r\\n',
  description: 'A row of column names, then a row for each price and date',
});

/** Prices as rows of JSON. */
const PriceRows = Type.Unsafe({
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

/** A file with the columns of the CSV, which have types. */
const tableSchema = ($id: string, contentMediaType: string, types: string): TSchema =>
  Type.Unsafe({
    $id,
    type: 'string',
    contentMediaType,
    description: `The columns of the CSV: ${types}`,
  });

const PriceParquet = tableSchema('PriceParquet', PARQUET, 'decimals as DECIMAL, dates as DATE');
const PriceArrow = tableSchema('PriceArrow', ARROW, 'decimals as Decimal128, dates as Date32');

/** Prices as a workbook. */
const PriceXlsx = Type.Unsafe({
  $id: 'PriceXlsx',
  type: 'string',
  contentMediaType: XLSX,
  description: 'The columns of the CSV as numbers, dates and texts, and a sheet `About`',
});

/** The formats of prices, the default first. */
export const FORMATS = {
  json: {
    media: 'application/json',
    type: 'application/json; charset=utf-8',
    disposition: 'inline',
    extension: 'json',
    hasMetadata: true,
    options: ['decimalsAsText'],
    schema: { ofMarket: 'response' },
    // Each market has examples of its own.
    example: null,
  },
  csv: {
    media: 'text/csv',
    type: 'text/csv; charset=utf-8; header=present',
    disposition: 'attachment',
    extension: 'csv',
    hasMetadata: false,
    options: ['columns', 'layout', 'warnings', 'csvDialect'],
    schema: { shared: PriceCsv },
    example: { component: 'Csv', shows: 'plain' },
  },
  ndjson: {
    media: 'application/x-ndjson',
    type: 'application/x-ndjson; charset=utf-8',
    disposition: 'attachment',
    extension: 'ndjson',
    hasMetadata: false,
    options: ['decimalsAsText', 'warnings'],
    schema: { ofMarket: 'ndjson' },
    example: { component: 'Lines', shows: 'plain' },
  },
  rows: {
    media: 'application/json;profile=rows',
    type: 'application/json; profile=rows; charset=utf-8',
    disposition: 'inline',
    extension: 'json',
    hasMetadata: false,
    options: ['decimalsAsText', 'columns', 'layout'],
    schema: { shared: PriceRows },
    example: { component: 'Rows', shows: 'short' },
  },
  parquet: {
    media: PARQUET,
    type: PARQUET,
    disposition: 'attachment',
    extension: 'parquet',
    hasMetadata: false,
    options: ['columns'],
    schema: { shared: PriceParquet },
    example: null,
  },
  arrow: {
    media: ARROW,
    type: ARROW,
    disposition: 'attachment',
    extension: 'arrows',
    hasMetadata: false,
    options: ['columns'],
    schema: { shared: PriceArrow },
    example: null,
  },
  xlsx: {
    media: XLSX,
    type: XLSX,
    disposition: 'attachment',
    extension: 'xlsx',
    isCompressed: true,
    hasMetadata: false,
    options: ['decimalsAsText', 'columns', 'layout'],
    schema: { shared: PriceXlsx },
    example: null,
  },
} as const satisfies Readonly<Record<string, FormatEntry>>;

export type Format = keyof typeof FORMATS;

/** The names of the formats, the default first. */
export const FORMAT_NAMES = Object.keys(FORMATS) as readonly Format[];

/** The entry of a format. */
export const formatEntry = (name: Format): FormatEntry => FORMATS[name];

/** The formats that an option applies to. */
export function formatsOf(option: OptionName): readonly Format[] {
  const some = FORMAT_NAMES.filter((name) => formatEntry(name).options.includes(option));
  return some.length === 0 ? FORMAT_NAMES : some;
}

/** The schemas of formats that all markets share. */
export const FORMAT_COMPONENTS: readonly TSchema[] = FORMAT_NAMES.flatMap((name) => {
  const { schema } = formatEntry(name);
  return 'shared' in schema ? [schema.shared] : [];
});

/** The price response in each of its formats. */
export const pricesContent = (schemas: Readonly<Record<MarketSchema, TSchema>>) => ({
  description: 'The prices',
  content: Object.fromEntries(
    FORMAT_NAMES.map((name) => {
      const { media, schema } = formatEntry(name);
      return [
        media,
        { schema: ref('shared' in schema ? schema.shared : schemas[schema.ofMarket]) },
      ];
    }),
  ),
});

/** The record fields of a market's dimensions, in the order of the record. */
export const dimensionFields = (market: Market): readonly string[] =>
  (Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[])
    .filter((name) => market.filters.includes(name))
    .map((name) => DIMENSIONS[name].field);

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
  ...['code', 'date', 'low', 'mid', 'high', 'currency', 'unitOfMeasure'],
  ...['publishedAt', 'corrections'],
  ...['name', 'shortName', 'product', 'priceCategory', 'priceType', 'frequency'],
  ...dimensionFields(market),
  ...['productAlias', 'chemicalCode', 'isSustainable', 'specification'],
  ...['assessmentLaunchedAt', 'lastAssessedAt', 'latestPublishedAt'],
  ...['periodStart', 'periodEnd', 'observations'],
  ...['fxDate', 'fxBase', 'fxFrom', 'fxTo'],
  ...['conversionStatus', 'conversionReason'],
  ...['fromCurrency', 'fromUnitOfMeasure', 'toCurrency', 'toUnitOfMeasure'],
  ...['unitMultiply', 'unitDivide', 'rateSource', 'rounding'],
  ...['latestDate', 'latestMid', 'previousDate', 'previousMid'],
  ...SPANS.flatMap((span) => [`${span}Absolute`, `${span}Percent`, `${span}BaseDate`]),
  'observationsLeftOut',
  'movingAverage',
  'observes',
  ...['fxMeanRate', 'fxMeanFirstDate', 'fxMeanLastDate', 'fxMeanDays'],
  'nextExpectedAt',
  'vatCountry',
  ...['vatRate', 'conversionVat'],
  ...['referenceCode', 'referenceSide', 'referenceStatistic', 'referenceElement'],
  'referenceValidFrom',
];
