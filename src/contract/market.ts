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

/** The schemas of one market; those but `filters` are published by the `$id`s that they have. */
export interface MarketSchemas {
  /** All filters: what a request is checked against, together with the rules of the plan. */
  readonly filters: TObject;
  /** The filters as they may stand together: `codes` without other lists, or without `codes`. */
  readonly byCodes: TObject;
  readonly byLists: TObject;
  readonly filterShapes: TSchema;
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
    { description: LISTS },
  );
}

const LISTS = 'Lists are OR inside and AND across; dates bound the series only';

/** A list that nothing may stand in: an empty one counts as absent. */
const EMPTY = Type.Optional(
  Type.Unsafe({ type: 'array', maxItems: 0, const: [], description: 'Not together with codes' }),
);

/**
 * Codes that may not be there at all. Generators that pass over `not` make an empty list of it, so
 * that the types of a client refuse codes.
 */
const NEVER = Type.Optional(
  Type.Unsafe({ not: {}, const: [], description: 'Not together with other lists' }),
);

/**
 * The filters as they may stand together, as two shapes: `codes` with the dates alone, or the lists
 * without `codes`.
 */
function filterShapesOf(market: Market, { properties }: TObject) {
  const name = pascal(market.slug);
  const { dateFrom, dateTo, codes, ...lists } = properties as Record<string, TSchema>;
  const dates = { dateFrom: dateFrom as TSchema, dateTo: dateTo as TSchema };
  const none = Object.fromEntries(Object.keys(lists).map((list) => [list, EMPTY]));
  const byCodes = closed(
    // A copy has no mark that the member may be left out.
    { ...dates, codes: Type.Unsafe({ ...codes }), ...none },
    {
      $id: `${name}CodeFilters`,
      description: 'Prices by their codes; dates bound the series only',
    },
  );
  const byLists = closed(
    { ...dates, codes: NEVER, ...lists },
    { $id: `${name}ListFilters`, description: LISTS },
  );
  const filterShapes = Type.Unsafe({
    $id: `${name}Filters`,
    description: '`codes` goes with dateFrom and dateTo only; every other list with every other',
    oneOf: [ref(byCodes), ref(byLists)],
  });
  return { byCodes, byLists, filterShapes };
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
  const shapes = filterShapesOf(market, filters);
  return {
    filters,
    ...shapes,
    options,
    record,
    request: closed(
      { filters: Type.Optional(ref(shapes.filterShapes)), options: Type.Optional(ref(options)) },
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

/** The schemas of a market that OpenAPI shows. */
export const publishedOf = ({ filters: _checked, ...published }: MarketSchemas): TSchema[] =>
  Object.values(published);
