import Type, { type TObject, type TSchema, type TString } from 'typebox';
import { METHODS, PERIODS } from '../catalog/analytics.ts';
import { BASE_FILTERS, DIMENSIONS, type FilterName } from '../catalog/dimensions.ts';
import type { Market } from '../catalog/markets.ts';
import { csvSchema, ndjsonSchema } from './answers.ts';
import {
  Currency,
  closed,
  Day,
  FiltersMetadata,
  FilterValue,
  Frequency,
  Instant,
  Metadata,
  nullable,
  Product,
  Reference,
  ref,
  SpecificationEntry,
  UnitOfMeasure,
  word,
} from './components.ts';
import { Conversion, Point, Summary } from './points.ts';

/** The limits on filter lists, from the configuration. */
export interface ListLimits {
  readonly codesMax: number;
  readonly itemsMax: number;
  readonly itemLengthMax: number;
}

/** Every schema of one market, registered by the `$id`s that OpenAPI shows. */
export interface MarketSchemas {
  readonly filters: TObject;
  readonly options: TObject;
  readonly request: TObject;
  readonly record: TObject;
  readonly response: TObject;
  readonly csv: TString;
  readonly ndjson: TString;
  readonly filterValues: TObject;
}

/** `lithium-ion-battery` → `LithiumIonBattery`. */
export const pascal = (slug: string): string =>
  slug.replace(/(^|-)([a-z])/g, (_match, _dash, letter: string) => letter.toUpperCase());

/** The filters of a market in the order of the contract: base filters, then its own. */
export const filtersOf = (market: Market): readonly FilterName[] => [
  ...(Object.keys(BASE_FILTERS) as FilterName[]),
  ...market.filters,
];

/** Texts without control characters and lone surrogates, which PostgreSQL cannot hold. */
const PRINTABLE = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

const listOf = (maxItems: number, limits: ListLimits, description: string, minItems?: number) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: limits.itemLengthMax, pattern: PRINTABLE }), {
      maxItems,
      ...(minItems === undefined ? {} : { minItems }),
      description,
    }),
  );

const text = (description: string, maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: PRINTABLE, description });

function filtersSchema(market: Market, limits: ListLimits): TObject {
  const lists: Record<string, TSchema> = {};
  for (const name of filtersOf(market)) {
    const { description } = { ...BASE_FILTERS, ...DIMENSIONS }[name];
    lists[name] = listOf(limits.itemsMax, limits, `${description}: ids or names, any of them`);
  }
  return closed(
    {
      dateFrom: Type.Optional(Day('First day of the series, inclusive')),
      dateTo: Type.Optional(Day('Last day of the series, inclusive')),
      codes: listOf(
        limits.codesMax,
        limits,
        'Codes of prices, exact but for case; only dateFrom and dateTo go with it',
        1,
      ),
      ...lists,
    },
    {
      $id: `${pascal(market.slug)}Filters`,
      description: 'Lists are OR inside and AND across; dates bound the series only',
    },
  );
}

const flag = (description: string) =>
  Type.Optional(Type.Boolean({ description: `${description}; false by default` }));

/** A moment of RFC 3339 and nothing beyond it, such as the name of a zone. */
const MOMENT = '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$';

// No `default` stands here: generated clients would make every option with one compulsory.
const OPTIONS = {
  includeSeries: flag('Whether records carry their series'),
  includeSummary: flag('Whether records carry a summary'),
  currency: Type.Optional(
    text('ISO 4217 code, whatever the case: converts prices, never payables', 64),
  ),
  unitOfMeasure: Type.Optional(
    text('Id, name or symbol of a unit: converts prices, never payables', 128),
  ),
  onUnconvertible: Type.Optional(
    word(['keep', 'omit', 'error'], {
      description: 'What happens to a price that cannot be converted; keep by default',
    }),
  ),
  decimals: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10,
      description:
        'Decimals of computed values; otherwise 6 significant digits, at least 2 decimals',
    }),
  ),
  aggregate: Type.Optional(
    closed(
      { period: word(PERIODS), method: word(METHODS) },
      { description: 'One point for each period, from the unrounded assessments in it' },
    ),
  ),
  asOf: Type.Optional(
    Type.String({
      format: 'date-time',
      pattern: MOMENT,
      maxLength: 64,
      description: 'Everything as it was known at this moment (RFC 3339), not in the future',
    }),
  ),
  revision: Type.Optional(
    Type.String({
      pattern: '^[0-9a-z]{4,12}\\.(0|[1-9]\\d{0,17})$',
      description: 'The same by an earlier $metadata.revision; not together with asOf',
    }),
  ),
  strict: flag('Whether values that match nothing are refused'),
};

const optionsSchema = (market: Market): TObject =>
  closed(OPTIONS, { $id: `${pascal(market.slug)}Options` });

function recordSchema(market: Market): TObject {
  const dimensions: Record<string, TSchema> = {};
  for (const name of Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[]) {
    const { field, description } = DIMENSIONS[name];
    if (market.filters.includes(name)) {
      dimensions[field] = nullable(ref(Reference), { description });
    }
  }
  return closed(
    {
      code: Type.String({ description: 'Code of the price, unique over all markets' }),
      name: Type.String(),
      shortName: nullable(Type.String()),
      specification: Type.Array(ref(SpecificationEntry)),
      assessmentLaunchedAt: nullable(Day('First day of the assessment')),
      lastAssessedAt: nullable(Day('Day of the latest assessment')),
      latestPublishedAt: nullable(Instant('Publication of the latest assessment')),
      product: ref(Product),
      priceCategory: ref(Reference),
      frequency: ref(Frequency),
      ...dimensions,
      unitOfMeasure: ref(UnitOfMeasure),
      currency: nullable(ref(Currency), { description: 'null for a payable' }),
      priceType: ref(Reference),
      conversion: Type.Optional(ref(Conversion)),
      summary: Type.Optional(ref(Summary)),
      series: Type.Array(ref(Point), { description: 'Empty unless includeSeries is true' }),
    },
    { $id: `${pascal(market.slug)}PriceRecord`, description: `A price of ${market.name}` },
  );
}

/** Builds the schemas of a market from its catalog entry. */
export function schemasOf(market: Market, limits: ListLimits): MarketSchemas {
  const name = pascal(market.slug);
  const filters = filtersSchema(market, limits);
  const options = optionsSchema(market);
  const record = recordSchema(market);
  const values: Record<string, TSchema> = {};
  for (const filter of filtersOf(market)) values[filter] = Type.Array(ref(FilterValue));
  return {
    filters,
    options,
    record,
    request: closed(
      { filters: Type.Optional(ref(filters)), options: Type.Optional(ref(options)) },
      { $id: `${name}PriceRequest` },
    ),
    response: closed(
      { $metadata: ref(Metadata), data: Type.Array(ref(record)) },
      { $id: `${name}PriceResponse` },
    ),
    csv: csvSchema(market, `${name}PriceCsv`),
    ndjson: ndjsonSchema(`${name}PriceRecord`, `${name}PriceLines`),
    filterValues: closed(
      { $metadata: ref(FiltersMetadata), data: closed(values) },
      { $id: `${name}FilterValues` },
    ),
  };
}
