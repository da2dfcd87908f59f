import Type, { type TObject, type TSchema } from 'typebox';
import { BASE_FILTERS, DIMENSIONS, type FilterName } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import {
  AssessmentLaunchedAt,
  closed,
  componentName,
  Day,
  DIMENSION_FIELDS,
  FiltersMetadata,
  FilterValues,
  LastAssessedAt,
  LatestPublishedAt,
  Metadata,
  NextExpectedAt,
  open,
  PayableReference,
  PriceCode,
  priceReferences,
  ref,
  Specification,
  textOrNull,
  ValuesObserve,
  VatCountry,
  WarningLine,
} from './components.ts';
import { FORMAT_COMPONENTS, ndjsonSchema } from './formats.ts';
import { optionMembers, PRINTABLE } from './options.ts';
import { Conversion, Series, Summary } from './points.ts';

/** The configured limits of a request body. */
export interface BodyLimits {
  readonly codesMax: number;
  readonly itemsMax: number;
  readonly itemLengthMax: number;
  /** Maximum number of records on a page. */
  readonly recordsMax: number;
}

/** The schemas of one market. All but `filters` are published under their `$id`s. */
export interface MarketSchemas {
  /** All filters. Requests are checked against this and the rules of the plan. */
  readonly filters: TObject;
  /** The legal combinations of filters: `codes` without other lists, or lists without `codes`. */
  readonly byCodes: TObject;
  readonly byLists: TObject;
  readonly filterShapes: TSchema;
  /** The same for all markets. */
  readonly options: TObject;
  readonly request: TObject;
  readonly record: TObject;
  readonly response: TObject;
  readonly ndjson: TSchema;
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

/** The schemas that the requests of all markets share, published by their `$id`s. */
interface RequestSchemas {
  /** The members of `filters`: the dates, `codes` and the lists of all markets. */
  readonly filters: Readonly<Record<string, TSchema>>;
  /** An item of each list of `filters`. */
  readonly item: TSchema;
  readonly options: TObject;
}

/** The component of an item of a list of `filters`. */
const FILTER_ITEM = 'FilterItem';

/** The component of a member of `filters`. */
const filterId = (name: string): string => `${componentName(name)}Filter`;

/** Builds the schemas that the requests of all markets share. */
export function requestSchemasOf(limits: BodyLimits): RequestSchemas {
  const text = { minLength: 1, maxLength: limits.itemLengthMax, pattern: PRINTABLE };
  const listOf = (description: string, bounds: object) =>
    Type.Array(Type.String(text), { ...bounds, description });
  const filters: Record<string, TSchema> = {
    dateFrom: Day('First day of the series, inclusive'),
    dateTo: Day('Last day of the series, inclusive'),
    codes: listOf('Codes of prices, ignoring case; combines with dateFrom and dateTo only', {
      maxItems: limits.codesMax,
      minItems: 1,
    }),
  };
  for (const [name, { description }] of Object.entries({ ...BASE_FILTERS, ...DIMENSIONS })) {
    const bounds = { maxItems: limits.itemsMax };
    filters[name] = listOf(`${description}: ids or names, any of them`, bounds);
  }
  for (const [name, schema] of Object.entries(filters)) {
    filters[name] = { ...schema, $id: filterId(name) } as TSchema;
  }
  const options = closed(optionMembers(limits.recordsMax), { $id: 'MassPriceOptions' });
  return { filters, options, item: Type.String({ $id: FILTER_ITEM, ...text }) };
}

const LISTS = 'Lists are OR inside and AND across';

/** A list that must be empty. An empty list counts as absent. */
const EmptyFilter = Type.Unsafe({
  $id: 'EmptyFilter',
  type: 'array',
  items: { type: 'string' },
  maxItems: 0,
  const: [],
  description: 'Cannot be combined with codes',
});

/**
 * Forbids codes: no list has at least one item and at most none. Generators have no type for
 * `not`; of this schema they make a list, and by `const` an empty one.
 */
const NoCodes = Type.Unsafe({
  $id: 'NoCodes',
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
  maxItems: 0,
  const: [],
  description: 'Cannot be combined with other lists',
});

/**
 * The legal combinations of filters, as two shapes: `codes` with the dates, or the other lists
 * with the dates.
 */
function filterShapesOf(market: Market, { filters }: RequestSchemas) {
  const name = pascal(market.slug);
  const shared = (member: string): TSchema => ref(filters[member] as TSchema);
  const dates = {
    dateFrom: Type.Optional(shared('dateFrom')),
    dateTo: Type.Optional(shared('dateTo')),
  };
  const each = (schemaOf: (list: FilterName) => TSchema) =>
    Object.fromEntries(filtersOf(market).map((list) => [list, Type.Optional(schemaOf(list))]));
  const byCodes = closed(
    { ...dates, codes: shared('codes'), ...each(() => ref(EmptyFilter)) },
    {
      $id: `${name}CodeFilters`,
      description: 'Prices by their codes',
    },
  );
  const byLists = closed(
    { ...dates, codes: Type.Optional(ref(NoCodes)), ...each(shared) },
    { $id: `${name}ListFilters`, description: LISTS },
  );
  const filterShapes = Type.Unsafe({
    $id: `${name}Filters`,
    oneOf: [ref(byCodes), ref(byLists)],
  });
  return { byCodes, byLists, filterShapes };
}

function recordSchema(market: Market): TObject {
  const dimensions: Record<string, TSchema> = {};
  for (const name of Object.keys(DIMENSIONS) as (keyof typeof DIMENSIONS)[]) {
    const { field } = DIMENSIONS[name];
    if (market.filters.includes(name)) dimensions[field] = ref(DIMENSION_FIELDS[field] as TSchema);
  }
  return open(
    {
      code: ref(PriceCode),
      name: Type.String(),
      shortName: textOrNull,
      specification: ref(Specification),
      assessmentLaunchedAt: ref(AssessmentLaunchedAt),
      lastAssessedAt: ref(LastAssessedAt),
      latestPublishedAt: ref(LatestPublishedAt),
      nextExpectedAt: ref(NextExpectedAt),
      ...priceReferences(dimensions),
      observes: ref(ValuesObserve),
      vatCountry: ref(VatCountry),
      reference: ref(PayableReference),
      conversion: Type.Optional(ref(Conversion)),
      summary: Type.Optional(ref(Summary)),
      series: ref(Series),
    },
    { $id: `${pascal(market.slug)}PriceRecord`, description: `A price of ${market.name}` },
  );
}

/** The filters of a market, including those that cannot be combined. */
function filtersSchema(market: Market, { filters }: RequestSchemas): TObject {
  const names = ['dateFrom', 'dateTo', 'codes', ...filtersOf(market)];
  const members = names.map((name) => {
    const { $id: _published, ...schema } = filters[name] as TSchema & { readonly $id: string };
    return [name, Type.Optional(schema as TSchema)] as const;
  });
  return closed(Object.fromEntries(members), { description: LISTS });
}

/** Builds the schemas of a market from its catalog entry. */
export function schemasOf(market: Market, shared: RequestSchemas): MarketSchemas {
  const name = pascal(market.slug);
  const filters = filtersSchema(market, shared);
  const { options } = shared;
  const record = recordSchema(market);
  const values: Record<string, TSchema> = {};
  for (const filter of filtersOf(market)) values[filter] = ref(FilterValues);
  const shapes = filterShapesOf(market, shared);
  return {
    filters,
    ...shapes,
    options,
    record,
    request: closed(
      { filters: Type.Optional(ref(shapes.filterShapes)), options: Type.Optional(ref(options)) },
      { $id: `${name}PriceRequest` },
    ),
    response: open(
      { $metadata: ref(Metadata), data: Type.Array(ref(record)) },
      { $id: `${name}PriceResponse` },
    ),
    ndjson: ndjsonSchema(`${name}PriceLines`, record, WarningLine),
    filterValues: open(
      { $metadata: ref(FiltersMetadata), data: open(values) },
      { $id: `${name}FilterValues` },
    ),
  };
}

/** A filter whose list refers to the published schema of its items, if it is a list. */
export const withItemRef = (filter: TSchema): TSchema =>
  'items' in filter ? { ...filter, items: Type.Unsafe({ $ref: `${FILTER_ITEM}#` }) } : filter;

/** The schemas of requests that OpenAPI shows once for all markets. */
export const sharedOf = ({ filters, options, item }: RequestSchemas): TSchema[] => [
  options,
  item,
  EmptyFilter,
  NoCodes,
  ...FORMAT_COMPONENTS,
  ...Object.values(filters).map(withItemRef),
];

/** The schemas of a market that OpenAPI shows. */
export const publishedOf = ({
  filters: _checked,
  options: _shared,
  ...published
}: MarketSchemas): TSchema[] => Object.values(published);
