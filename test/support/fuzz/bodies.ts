import fc from 'fast-check';
import { METHODS, PERIODS } from '../../../src/catalog/analytics.ts';
import { COMPUTING } from '../../../src/contract/schemas/options.ts';
import type { SpecifiedMarket } from '../prices/specification.ts';

/** Some currencies and units that the sample data have. */
export const KNOWN_CURRENCIES = ['USD', 'EUR', 'CNY', 'JPY', 'KRW'] as const;
export const KNOWN_UNITS = ['t', 'Pound', 'KG', 'kWh', 'mtu', '%'] as const;

/** A body as it is sent, and what it was made as. */
export interface FuzzedBody {
  readonly what: string;
  readonly bytes: Buffer;
  readonly type?: string;
  /** The expected code and pointer of the one violation. */
  readonly broken?: { readonly code: string; readonly pointer?: string };
}

export type Members = Record<string, unknown>;

export interface RequestBody {
  filters: Members;
  options: Members;
}

/** The values that a market's filters take: ids and names, by filter. */
export type ValuesByFilter = Readonly<Record<string, readonly string[]>>;

const dayOf = (days: number): string => new Date(days * 86_400_000).toISOString().slice(0, 10);
const dayNumber = (day: string): number => Date.parse(day) / 86_400_000;

const day = fc
  .oneof(
    fc.integer({ min: dayNumber('2026-05-01'), max: dayNumber('2026-07-31') }),
    fc.integer({ min: dayNumber('1800-01-01'), max: dayNumber('2199-12-31') }),
  )
  .map(dayOf);

const text = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 128 }),
    fc.constantFrom(
      'I',
      'ı',
      'İ',
      'ß',
      'ﬀ',
      'Ａ',
      '\u200b',
      '\u202e',
      '\ufeff',
      '\uffff',
      '%',
      "'",
    ),
    fc.constantFrom("' or 1=1 --", '$1', '{}', '\\', '%s', '../..', '😀'.repeat(128)),
  )
  .filter((each) => /^[^\p{Cc}\p{Cs}]{1,128}$/u.test(each));

const respelled = (each: string) =>
  fc.constantFrom(each, each.toUpperCase(), each.toLowerCase(), ` ${each} `, each.normalize('NFD'));

const item = (known: readonly string[]): fc.Arbitrary<string> =>
  known.length === 0
    ? text
    : fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...known).chain(respelled) },
        { weight: 1, arbitrary: text },
      );

const flag = fc.option(fc.boolean(), { nil: undefined });
/** Series are most of the work of an answer: now and then will do. */
const rarely = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(undefined, false) }, flag);
const bound = fc.option(day, { nil: undefined, freq: 1 });

const filtersOf = (market: SpecifiedMarket, values: ValuesByFilter): fc.Arbitrary<Members> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .subarray([...market.filters], { maxLength: 4 })
        .chain((names) =>
          fc.record(
            Object.fromEntries(
              names.map((name) => [name, fc.array(item(values[name] ?? []), { maxLength: 5 })]),
            ),
          ),
        ),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(item(values['codes'] ?? []), { minLength: 1, maxLength: 5 })
        .map((codes) => ({ codes })),
    },
  );

const defined = (members: Members): Members =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

/** Decimals go only with options that compute values. */
const withoutNeedlessDecimals = (options: Members): Members => {
  const { decimals, ...rest } = options;
  const computes = COMPUTING.some((name) => name in rest);
  return computes ? options : rest;
};

/** Options that change what is answered about the prices found; each is there now and then. */
const analytics: fc.Arbitrary<Members> = fc
  .record(
    {
      includeSummary: fc.boolean(),
      currency: fc.constantFrom(...KNOWN_CURRENCIES).chain(respelled),
      unitOfMeasure: fc.constantFrom(...KNOWN_UNITS).chain(respelled),
      onUnconvertible: fc.constantFrom('keep', 'omit', 'error'),
      decimals: fc.integer({ min: 0, max: 10 }),
      aggregate: fc.record({
        period: fc.constantFrom(...PERIODS),
        method: fc.constantFrom(...METHODS),
      }),
    },
    { requiredKeys: [] },
  )
  .map(withoutNeedlessDecimals);

/** Instants at which nothing was known yet; rare, as most of what is asked is unknown then. */
const instant = fc
  .tuple(fc.nat(9), fc.constantFrom('1970-01-01T00:00:00Z', '2020-01-01t05:06:07.1234567+14:00'))
  .map(([draw, asOf]): Members => (draw === 0 ? { asOf } : {}));

const optionsOf = fc
  .tuple(rarely, flag, fc.oneof(fc.constant<Members>({}), analytics), instant)
  .map(([includeSeries, strict, ...more]) =>
    defined(Object.assign({ includeSeries, strict }, ...more)),
  );

/** Bodies that keep every rule. Long series are rare: two days bound them, or a year far away. */
export const legalBody = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
): fc.Arbitrary<RequestBody> =>
  fc
    .tuple(filtersOf(market, values), bound, bound, optionsOf)
    .map(([lists, one, other, options]) => {
      const [dateFrom, dateTo] =
        one !== undefined && other !== undefined ? [one, other].toSorted() : [one, other];
      return {
        filters: { ...lists, ...defined({ dateFrom, dateTo }) },
        options,
      };
    });

const escaped = (json: string): string =>
  json.replace(/[a-zA-Z]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The same JSON in other spellings: indented, with white space around, with escaped letters. */
export const spelled = (body: unknown): fc.Arbitrary<string> => {
  const json = JSON.stringify(body);
  const strings = json.replace(/"(?:[^"\\]|\\.)*"/g, (string) =>
    string.includes('\\') ? string : escaped(string),
  );
  return fc.constantFrom(json, json, JSON.stringify(body, null, 2), `\r\n\t ${json} \n`, strings);
};

/** A legal body as it is sent; leaving out an empty part is legal too. */
export const legal = (market: SpecifiedMarket, values: ValuesByFilter): fc.Arbitrary<FuzzedBody> =>
  fc
    .tuple(legalBody(market, values), fc.boolean())
    .map(([body, lean]) =>
      lean
        ? Object.fromEntries(
            Object.entries(body).filter(([, part]) => Object.keys(part).length > 0),
          )
        : body,
    )
    .chain(spelled)
    .map((json) => ({ what: 'legal', bytes: Buffer.from(json) }));

/** JSON of any shape. */
export const anyJson: fc.Arbitrary<FuzzedBody> = fc
  .oneof(
    fc.jsonValue({ maxDepth: 4 }),
    fc.record({ filters: fc.jsonValue(), options: fc.jsonValue() }),
    fc.record({ filters: fc.dictionary(fc.string(), fc.jsonValue()) }),
  )
  .map((value) => ({ what: 'any JSON', bytes: Buffer.from(JSON.stringify(value)) }));

/** Bytes of any kind, and legal bodies in which one byte was changed. */
export const anyBytes = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
): fc.Arbitrary<FuzzedBody> =>
  fc.oneof(
    fc.uint8Array({ maxLength: 64 }).map((bytes) => ({ what: 'bytes', bytes: Buffer.from(bytes) })),
    fc
      .tuple(legalBody(market, values), fc.nat(), fc.integer({ min: 0, max: 255 }))
      .map(([body, where, byte]) => {
        const bytes = Buffer.from(JSON.stringify(body));
        bytes[where % bytes.length] = byte;
        return { what: 'a byte changed', bytes };
      }),
  );
