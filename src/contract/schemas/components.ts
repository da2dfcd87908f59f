import Type, { type TSchema } from 'typebox';
import { OBSERVES } from '../../catalog/analytics.ts';
import { DIMENSIONS } from '../../catalog/dimensions.ts';
import { REFERENCE_SIDES, REFERENCE_STATISTICS } from '../../catalog/payable-reference.ts';
import { WARNINGS } from '../../errors.ts';

/** An object of a request: unknown members are rejected. */
export const closed = <T extends Record<string, TSchema>>(members: T, options: object = {}) =>
  Type.Object(members, { additionalProperties: false, ...options });

/** An object of an answer: later releases may add members. */
export const open = <T extends Record<string, TSchema>>(members: T, options: object = {}) =>
  Type.Object(members, { ...options });

/** A reference to a schema registered under its `$id`. */
export const ref = (schema: TSchema): TSchema =>
  Type.Unsafe({ $ref: `${(schema as { $id?: string }).$id}#` });

/** A value of the schema, or null. */
export const nullable = (schema: TSchema, options: object = {}): TSchema =>
  Type.Unsafe({ anyOf: [schema, { type: 'null' }], ...options });

/** A text or null, in the fewest bytes: each market repeats it. */
export const textOrNull = Type.Unsafe({ type: ['string', 'null'] });

/** One of a fixed set of words. */
export const word = (words: readonly string[], options: object = {}): TSchema =>
  Type.Unsafe({ type: 'string', enum: [...words], ...options });

/** One of a set of words of an answer that later releases may extend. */
export const openWord = (words: readonly string[], options: object = {}): TSchema =>
  Type.Unsafe({ type: 'string', 'x-extensible-enum': [...words], ...options });

/** The component name of a member: capitalized. */
export const componentName = (member: string): string =>
  `${member.charAt(0).toUpperCase()}${member.slice(1)}`;

/** A calendar day as text, within the years of the contract. */
export const Day = (description: string, options: object = {}) =>
  Type.String({ format: 'date', pattern: '^\\d{4}-\\d{2}-\\d{2}$', description, ...options });

/** The form of decimal text. */
export const DECIMAL = '^-?\\d+(\\.\\d+)?$';

/** Decimal text, exact to the last digit. */
export const decimal = (description: string) => Type.String({ pattern: DECIMAL, description });

/** A point in time in UTC. */
export const Instant = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-03-05T16:00:00Z'] });

/** Markdown paragraphs, each given as its lines. */
export const paragraphs = (...texts: readonly (readonly string[])[]): string =>
  texts.map((lines) => lines.join(' ')).join('\n\n');

const Id = Type.String({ format: 'uuid', description: 'Stable id' });
const Name = Type.String({ description: 'Name, as filters take it' });

const Reference = open(
  { id: Id, name: Name },
  { $id: 'Reference', description: 'A value of a dimension' },
);

const Product = open(
  {
    id: Id,
    name: Name,
    alias: Type.String({ description: 'Short name in the trade' }),
    chemicalCode: Type.String({ description: 'Chemical formula' }),
    isSustainable: Type.Boolean({ description: 'True for a low-carbon or recycled variety' }),
  },
  { $id: 'Product' },
);

const Frequency = open(
  { id: Id, name: Name, shortName: textOrNull },
  { $id: 'Frequency', description: 'Assessment frequency of the price' },
);

const UnitOfMeasure = open(
  { id: Id, name: Name, symbol: Type.String() },
  { $id: 'UnitOfMeasure', description: 'The unit of the numbers; Percent for a payable' },
);

const Currency = open(
  {
    id: Id,
    name: Name,
    iso: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217 code' }),
    symbol: Type.String(),
  },
  { $id: 'Currency', description: 'The currency of the numbers' },
);

const SpecificationEntry = open(
  { name: Type.String(), value: Type.String(), order: Type.Integer() },
  { $id: 'SpecificationEntry', description: 'A property without a filter, such as VAT or basis' },
);

export const PriceCode = Type.String({
  $id: 'PriceCode',
  description: 'Code of the price, unique over all markets',
});

export const Specification = Type.Unsafe({
  $id: 'Specification',
  type: 'array',
  items: ref(SpecificationEntry),
});

/** The record field of each dimension, published under its capitalized name. */
export const DIMENSION_FIELDS: Readonly<Record<string, TSchema>> = Object.fromEntries(
  Object.values(DIMENSIONS).map(({ field, description }) => [
    field,
    nullable(ref(Reference), { $id: componentName(field), description }),
  ]),
);

const PriceCurrency = nullable(ref(Currency), {
  $id: 'PriceCurrency',
  description: 'The currency of the numbers; null for a payable',
});

/** The references of a price, with its dimensions between them. */
export const priceReferences = (dimensions: Readonly<Record<string, TSchema>>) => ({
  product: ref(Product),
  priceCategory: ref(Reference),
  frequency: ref(Frequency),
  ...dimensions,
  unitOfMeasure: ref(UnitOfMeasure),
  currency: ref(PriceCurrency),
  priceType: ref(Reference),
});

/** The same for the prices of all markets. */
export const anyPriceReferences = priceReferences(
  Object.fromEntries(
    Object.entries(DIMENSION_FIELDS).map(([field, schema]) => [field, Type.Optional(ref(schema))]),
  ),
);

/** The kind of the values of a price. */
export const ValuesObserve = openWord(OBSERVES, {
  $id: 'Observes',
  description:
    'What a value is: that of a `day`, or the mean of the month or year of its date ' +
    '(`month-mean`, `year-mean`)',
});

/** The country whose value added tax the values of a price include. */
export const VatCountry = nullable(
  Type.String({
    description: 'ISO 3166 code of the country whose VAT the values include; null if not known to',
  }),
  { $id: 'VatCountry' },
);

/** The members of a reference of a payable. */
const referenceMembers = {
  code: Type.String(),
  side: openWord(REFERENCE_SIDES),
  statistic: openWord(REFERENCE_STATISTICS),
  element: Type.String({ description: 'Such as `Ni`' }),
  validFrom: Day('First day of this reference'),
};

export const PayableReference = nullable(
  open({ ...referenceMembers, earlier: Type.Array(open(referenceMembers)) }),
  {
    $id: 'PayableReference',
    description:
      'The price that a payable is a percentage of, with its `earlier` references, the newest ' +
      'first; null if unknown, and for prices',
  },
);

export const AssessmentLaunchedAt = nullable(Day('First day of the assessment'), {
  $id: 'AssessmentLaunchedAt',
});

/** Description of the pointer of a violation or warning. */
export const POINTER =
  'The place in the request: a JSON pointer into the body, or, for a GET, `?` and the parameter, ' +
  'with the index of a list value: `/filters/regions/1`, `?regions/1`';

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const Warning = open(
  {
    code: openWord(Object.keys(WARNINGS)),
    pointer: Type.String({ description: POINTER }),
    detail: Type.String(),
    suggestions: Type.Array(Type.String(), { maxItems: 3 }),
    priceCode: Type.Optional(
      Type.String({ description: '`not_yet_existing`: the code as it was published' }),
    ),
    existsSinceRevision: Type.Optional(
      Type.String({ description: '`not_yet_existing`: the first revision that has the price' }),
    ),
    existsSince: Type.Optional(Instant('`not_yet_existing`: commit time of that revision')),
    currency: Type.Optional(
      Type.String({ description: '`rates_missing`: ISO 4217 code of the currency' }),
    ),
    firstDateWithoutRate: Type.Optional(
      nullable(
        Day('`rates_missing`: the first requested point without a rate; null if there is none'),
      ),
    ),
    lastDateWithoutRate: Type.Optional(
      nullable(
        Day('`rates_missing`: the last requested point without a rate; null if there is none'),
      ),
    ),
    lastDateWithRate: Type.Optional(
      nullable(Day('`rates_missing`: its newest rate; null if the source has none')),
    ),
    pointsWithoutRate: Type.Optional(count('`rates_missing`: requested points without a rate')),
    pointsRequested: Type.Optional(
      count('`rates_missing`: all requested points of the prices that need the currency'),
    ),
    stretchesWithoutRate: Type.Optional(
      Type.Array(
        open({
          firstDate: Day('First point'),
          lastDate: Day('Last point'),
          points: count('Points'),
        }),
        {
          maxItems: 5,
          description: '`rates_missing`: the first stretches of days without a rate, by date',
        },
      ),
    ),
    moreStretches: Type.Optional(count('`rates_missing`: number of further stretches')),
  },
  { $id: 'Warning', description: 'A warning; further members depend on `code`' },
);

export const WarningLine = open(
  { warning: ref(Warning) },
  { $id: 'WarningLine', description: 'With `warnings=row`: a line for each warning, at the end' },
);

const metadataMembers = {
  market: Type.String({ description: 'Slug of the market' }),
  revision: Type.String({ description: 'Revision of the data that was read, opaque' }),
  asOf: Instant('Commit time of that revision'),
};

export const Metadata = open(
  {
    ...metadataMembers,
    count: Type.Integer({ minimum: 0, description: 'Number of records in this response' }),
    nextCursor: nullable(Type.String(), {
      description: 'With `limit`, the `cursor` of the next page; null after the last record',
    }),
    warnings: Type.Array(ref(Warning)),
  },
  { $id: 'Metadata' },
);

export const LastAssessedAt = nullable(Day('Day of the latest assessment'), {
  $id: 'LastAssessedAt',
});

export const LatestPublishedAt = nullable(Instant('Publication of the latest assessment'), {
  $id: 'LatestPublishedAt',
});

export const NextExpectedAt = nullable(
  Instant('When the first value after the latest assessment is due, by the calendar of the price'),
  { $id: 'NextExpectedAt' },
);

const FilterValue = open(
  {
    id: Id,
    name: Name,
    prices: Type.Integer({ minimum: 1, description: 'Number of prices with this value' }),
  },
  { $id: 'FilterValue' },
);

export const FilterValues = Type.Unsafe({
  $id: 'FilterValues',
  type: 'array',
  items: ref(FilterValue),
  examples: [[{ id: '6102543b-f310-576a-b330-02410f5b1a3e', name: 'Global', prices: 14 }]],
});

export const FiltersMetadata = open(metadataMembers, { $id: 'FiltersMetadata' });

const marketNames = {
  slug: Type.String({ description: 'Last segment of the address' }),
  name: Type.String(),
  scope: Type.String({ description: 'Required scope' }),
};

const OpenMarket = open(
  {
    ...marketNames,
    filters: Type.Array(Type.String(), { description: 'Filters of the market' }),
    prices: Type.Integer({ minimum: 0 }),
    firstDate: nullable(Day('Day of the earliest point')),
    lastDate: nullable(Day('Day of the latest point')),
    latestPublishedAt: nullable(Instant('Newest publication of the latest points')),
    authorized: Type.Literal(true),
  },
  { $id: 'OpenMarket', description: 'A market that the credential can read' },
);

const ClosedMarket = open(
  { ...marketNames, authorized: Type.Literal(false) },
  {
    $id: 'ClosedMarket',
    description: 'A market that the credential cannot read: its names and the required scope',
  },
);

const MarketSummary = Type.Unsafe({
  $id: 'MarketSummary',
  description: 'A market; `authorized` distinguishes the two shapes',
  oneOf: [ref(OpenMarket), ref(ClosedMarket)],
});

export const MarketList = open({ data: Type.Array(ref(MarketSummary)) }, { $id: 'MarketList' });

export const Health = open(
  {
    status: word(['ok', 'degraded', 'unavailable']),
    reasons: Type.Array(Type.String(), {
      description: 'Why the status is not `ok`, and what the operator has to do; empty if it is',
    }),
    version: Type.String({ description: 'Version of the service' }),
    time: Instant('Clock of the service'),
    checks: open({
      database: word(['ok', 'unavailable']),
      schema: word(['ok', 'schema_outdated', 'unknown']),
      rates: word(['ok', 'stale', 'unknown_source', 'unknown'], {
        description:
          '`stale`: the newest rate is too old for a price of today; `unknown_source`: the ' +
          'configured source of exchange rates does not exist',
      }),
      behindSince: nullable(Instant('Start of the lag')),
      data: open({ latestPublishedAt: nullable(Instant('Newest publication')) }),
      service: Type.Optional(
        word(['shutting_down'], {
          description: 'Only in `/ready`: the service is stopping and still answers requests',
        }),
      ),
    }),
  },
  { $id: 'Health' },
);

export const Live = open({ status: Type.Literal('ok') }, { $id: 'Live' });

const limit = (description: string) => nullable(Type.Integer({ minimum: 1 }), { description });

/** The answer of `GET /v3/me`. */
export const Me = open(
  {
    kind: word(['key', 'token'], { description: 'An API key or a bearer token' }),
    id: Type.String({ description: 'The public id of the key, or the subject of the token' }),
    scopes: Type.Array(Type.String(), { description: 'The scopes that this service knows' }),
    markets: Type.Array(Type.String(), { description: 'The markets that they grant access to' }),
    expiresAt: nullable(Instant('Expiry of the credential; null for none')),
    limits: open(
      {
        requestsPerMinute: limit('Null for no limit'),
        burst: limit('Requests without a pause, within the rate; null for no limit'),
        concurrent: limit('Concurrent requests; null for no limit'),
      },
      { description: 'The limits of the credential' },
    ),
  },
  { $id: 'Me' },
);

export const COMPONENTS: readonly TSchema[] = [
  Reference,
  Product,
  Frequency,
  UnitOfMeasure,
  Currency,
  PriceCode,
  SpecificationEntry,
  Specification,
  ...Object.values(DIMENSION_FIELDS),
  PriceCurrency,
  ValuesObserve,
  VatCountry,
  PayableReference,
  AssessmentLaunchedAt,
  LastAssessedAt,
  LatestPublishedAt,
  NextExpectedAt,
  Warning,
  WarningLine,
  Metadata,
  FilterValue,
  FilterValues,
  FiltersMetadata,
  OpenMarket,
  ClosedMarket,
  MarketSummary,
  MarketList,
  Health,
  Live,
];
