import Type, { type TObject, type TSchema, type TString } from 'typebox';
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
} from './components.ts';
import { optionMembers, PRINTABLE } from './options.ts';
import { Conversion, Point, Summary } from './points.ts';

/** The limits on what a request may ask for, from the configuration. */
export interface BodyLimits {
  readonly codesMax: number;
  readonly itemsMax: number;
  readonly itemLengthMax: number;
  /** Most records of a page. */
  readonly recordsMax: number;
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

const listOf = (maxItems: number, limits: BodyLimits, description: string, minItems?: number) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: limits.itemLengthMax, pattern: PRINTABLE }), {
      maxItems,
      ...(minItems === undefined ? {} : { minItems }),
      description,
    }),
  );

function filtersSchema(market: Market, limits: BodyLimits): TObject {
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

const optionsSchema = (market: Market, { recordsMax }: BodyLimits): TObject =>
  closed(optionMembers(recordsMax), { $id: `${pascal(market.slug)}Options` });

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
export function schemasOf(market: Market, limits: BodyLimits): MarketSchemas {
  const name = pascal(market.slug);
  const filters = filtersSchema(market, limits);
  const options = optionsSchema(market, limits);
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
