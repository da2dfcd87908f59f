import Type, { type TObject, type TSchema } from 'typebox';
import { MARKETS } from '../../catalog/markets.ts';
import {
  AssessmentLaunchedAt,
  anyPriceReferences,
  closed,
  componentName,
  Day,
  Instant,
  nullable,
  open,
  PayableReference,
  PriceCode,
  ref,
  Specification,
  textOrNull,
  ValuesObserve,
  VatCountry,
  Warning,
  word,
} from './components.ts';
import { FORMATS, ndjsonSchema } from './formats.ts';
import { pascal } from './market.ts';
import { INSTANT, PRINTABLE } from './options.ts';

const slugs = MARKETS.map(({ slug }) => slug);

/** The limits of a request for changes, from the configuration. */
export interface ChangeLimits {
  /** Default number of changes on a page. */
  readonly limit: number;
  readonly limitMax: number;
  readonly waitMaxSeconds: number;
  /** Maximum number of codes, and of characters of a code. */
  readonly codesMax: number;
  readonly itemLengthMax: number;
}

/** The kinds of changes, in the order of a price's life. */
export const OPERATIONS = [
  'price-added',
  'price-changed',
  'published',
  'corrected',
  'withdrawn',
] as const;

export type ChangeOperation = (typeof OPERATIONS)[number];

/** The query of `GET /v3/changes`. */
export const changeQuery = ({
  limit,
  limitMax,
  waitMaxSeconds,
  codesMax,
  itemLengthMax,
}: ChangeLimits) =>
  closed({
    after: Type.Optional(
      Type.String({
        pattern: '^(latest|(revision:)?[0-9a-z]{4,18}\\.(0|[1-9]\\d{0,17}))$',
        description:
          'The `nextSeq` of the previous page, or a `seq`; `latest`: the position of now; ' +
          '`revision:<revision>`: the changes committed after it. Default: the beginning',
      }),
    ),
    since: Type.Optional(
      Type.String({
        format: 'date-time',
        pattern: INSTANT,
        maxLength: 64,
        description:
          'Starts at the first change recorded at or after this instant (RFC 3339), not in the ' +
          'future; in place of `after`',
      }),
    ),
    market: Type.Optional(
      Type.Array(word(slugs), {
        minItems: 1,
        maxItems: MARKETS.length,
        description:
          'Changes of this market only; repeat it for several. Default: all markets that the ' +
          'credential can read',
      }),
    ),
    codes: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: itemLengthMax, pattern: PRINTABLE }), {
        minItems: 1,
        maxItems: codesMax,
        description: 'Changes of the prices with these codes only, ignoring case; repeat it',
      }),
    ),
    operations: Type.Optional(
      Type.Array(word(OPERATIONS), {
        minItems: 1,
        maxItems: OPERATIONS.length,
        description: 'Changes of this kind only; repeat it for several. Default: all',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limitMax,
        description: `Maximum number of changes on the page; default ${limit}`,
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: waitMaxSeconds,
        description: 'Seconds to wait for a change if there is none yet; default 0',
      }),
    ),
  });

const PointState = open(
  {
    low: nullable(Type.Number(), { description: 'Low end, or null' }),
    mid: Type.Number({ description: 'Mid; not always the average of low and high' }),
    high: nullable(Type.Number(), { description: 'High end, or null' }),
    publishedAt: Instant('When this value was published'),
    corrections: Type.Integer({ minimum: 0, description: 'Number of corrections by then' }),
  },
  { $id: 'PointState', description: 'The value of a point, in the currency and unit of its price' },
);

const PriceState = open(
  {
    name: Type.String(),
    shortName: textOrNull,
    specification: ref(Specification),
    assessmentLaunchedAt: ref(AssessmentLaunchedAt),
    ...anyPriceReferences,
    observes: ref(ValuesObserve),
    vatCountry: ref(VatCountry),
    reference: ref(PayableReference),
  },
  {
    $id: 'PriceState',
    description: 'The record of a price without its points, with the dimensions of its market',
  },
);

const NOTHING = Type.Unsafe({ type: 'null' });
const point = ref(PointState);
const price = ref(PriceState);

const WithdrawnValue = Type.Unsafe({
  $id: 'WithdrawnValue',
  description: 'The withdrawn point, or the withdrawn price',
  anyOf: [point, price],
});

/** The schema of one kind of change, with the value before and after it. */
const changeOf = (
  operation: (typeof OPERATIONS)[number],
  description: string,
  { date, before, after }: Readonly<Record<'date' | 'before' | 'after', TSchema>>,
) =>
  open(
    {
      seq: Type.String({ description: 'Its position in the feed, opaque: a value of `after`' }),
      recordedAt: Instant('Time of its commit'),
      operation: Type.Literal(operation),
      market: Type.String({ description: 'Slug of the market' }),
      code: ref(PriceCode),
      date,
      revision: Type.String({ description: 'The revision of its commit, opaque' }),
      before,
      after,
    },
    { $id: `${pascal(operation)}Change`, description },
  );

const ofPrice = { date: NOTHING };
const ofPoint = { date: Day('Day of the point') };

const CHANGES: Readonly<Record<(typeof OPERATIONS)[number], TObject>> = {
  'price-added': changeOf('price-added', 'A new price', {
    ...ofPrice,
    before: NOTHING,
    after: price,
  }),
  'price-changed': changeOf('price-changed', 'A price with changed attributes', {
    ...ofPrice,
    before: price,
    after: price,
  }),
  published: changeOf('published', 'A new point', {
    ...ofPoint,
    before: NOTHING,
    after: point,
  }),
  corrected: changeOf('corrected', 'A point with a corrected value', {
    ...ofPoint,
    before: point,
    after: point,
  }),
  withdrawn: changeOf('withdrawn', 'A withdrawn point or price', {
    date: nullable(ofPoint.date, { description: 'null for the price itself' }),
    before: ref(WithdrawnValue),
    after: NOTHING,
  }),
};

const Change = Type.Unsafe({
  $id: 'Change',
  description: 'One change of a point or of the attributes of a price, by its `operation`',
  oneOf: Object.values(CHANGES).map(ref),
  discriminator: {
    propertyName: 'operation',
    mapping: Object.fromEntries(
      Object.keys(CHANGES).map((operation) => [
        operation,
        `#/components/schemas/${pascal(operation)}Change`,
      ]),
    ),
  },
});

const ChangePage = open(
  {
    $metadata: open({
      nextSeq: Type.String({ description: 'The `after` of the next page, opaque' }),
      hasMore: Type.Boolean({
        description: 'True if changes may follow already: continue with `nextSeq`',
      }),
      warnings: Type.Array(ref(Warning), { description: '`unmatched_value` for unknown codes' }),
    }),
    data: Type.Array(ref(Change), { description: 'In commit order' }),
  },
  { $id: 'ChangePage' },
);

const ChangeLines = ndjsonSchema('ChangeLines', Change);

/** The members of a point, in the order of the columns of its two sides. */
const POINT_MEMBERS = ['low', 'mid', 'high', 'publishedAt', 'corrections'] as const;

/** The columns of the CSV of changes. Their order never changes; new ones are appended. */
export const CHANGE_COLUMNS: readonly string[] = [
  ...['seq', 'recordedAt', 'operation', 'market', 'code', 'date', 'revision'],
  ...['before', 'after'].flatMap((side) => POINT_MEMBERS.map((name) => side + componentName(name))),
  ...['beforePrice', 'afterPrice'],
];

const ChangeCsv = Type.String({
  $id: 'ChangeCsv',
  pattern: '^seq,',
  description:
    'A row of column names, then a row for each change: its members, low to corrections of the ' +
    'point before and after it, and the price before and after it as JSON',
});

/** A response of the change feed in each of its formats. */
export const changesContent = {
  description: 'The next changes',
  content: {
    [FORMATS.json.media]: { schema: ref(ChangePage) },
    [FORMATS.csv.media]: { schema: ref(ChangeCsv) },
    [FORMATS.ndjson.media]: { schema: ref(ChangeLines) },
  },
};

export const CHANGE_COMPONENTS: readonly TSchema[] = [
  PointState,
  PriceState,
  WithdrawnValue,
  ...Object.values(CHANGES),
  Change,
  ChangePage,
  ChangeLines,
  ChangeCsv,
];
