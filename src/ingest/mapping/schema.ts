import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { ENCODINGS } from '../parsing/lines.ts';
import { DELIMITERS } from '../parsing/rows.ts';
import { ATTRIBUTES } from '../records/source-record.ts';
import { type DatePeriod, PERIODS } from './date-pattern.ts';

/** An object without additional members. Descriptions document the members. */
const closed = <P extends TProperties>(properties: P, description: string) =>
  Type.Object(properties, { additionalProperties: false, description });

const maybe = Type.Optional;
const flag = (description: string) => Type.Boolean({ description });
const text = (description: string, maxLength = 200) =>
  Type.String({ minLength: 1, maxLength, description });
const whole = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description });
const word = <const W extends readonly string[]>(words: W, description: string) =>
  Type.Unsafe<W[number]>({ enum: words, description });
const list = <S extends TSchema>(item: S, description: string, minItems = 0) =>
  Type.Array(item, { minItems, maxItems: 1_000, description });

type Intersection<T> = (T extends unknown ? (each: T) => void : never) extends (
  all: infer A,
) => void
  ? A
  : never;

/** One of several objects, identified by its first member. The type has the members of all. */
const oneOf = <S extends readonly TObject[]>(sources: [...S], description: string) =>
  Type.Unsafe<Partial<Intersection<Static<S[number]>>>>(Type.Union(sources, { description }));

/** Names that the file defines, each with a value. */
const dictionary = (value: TSchema, description: string) =>
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: 'object',
    minProperties: 1,
    maxProperties: 16_384,
    additionalProperties: value,
    description,
  });

/** A column: its name in the header (its letters if there is none), or its place from 1. */
export type ColumnRef = string | number;
const column = (description: string) =>
  Type.Unsafe<ColumnRef>({
    type: ['string', 'integer'],
    minLength: 1,
    maxLength: 200,
    minimum: 1,
    maximum: 16_384,
    description: `${description}: the name in the header, or the place from 1`,
  });

const LINES_MAX = 1_048_576;
const line = (description: string) => whole(1, LINES_MAX, description);
const day = text('a day, written YYYY-MM-DD', 10);
const pattern = text('a date pattern such as dd.MM.yyyy');
const period = word(PERIODS, 'the period of a date, if longer than a day');
const code = text('the code of a price', 64);
const translate = dictionary(code, 'the meaning of each text in the file');

const codeSource = oneOf(
  [
    closed({ constant: code }, 'the code of all values'),
    closed(
      {
        column: column('the column with the code'),
        translate: maybe(translate),
        others: maybe(word(['reject', 'skip'], 'the treatment of texts without a translation')),
      },
      'a column',
    ),
  ],
  'the source of the price code',
);

const patterns = Type.Union([pattern, list(pattern, 'several date patterns', 1)], {
  description: 'a date pattern such as dd.MM.yyyy, or a list of patterns',
});

const dateSource = closed(
  { column: column('the column with the date'), pattern: maybe(patterns), period: maybe(period) },
  'the source of the date',
);

const dateColumns = closed(
  {
    first: column('the first column whose header is a date'),
    last: maybe(column('the last column whose header is a date')),
    pattern: maybe(patterns),
    period: maybe(period),
  },
  'the columns of a table with a date in each heading',
);

const time = text('a time of day, such as 16:00', 8);
const offset = text('the offset from UTC, Z or such as +08:00', 6);

const publishedAt = oneOf(
  [
    closed(
      { constant: text('a time with its offset, such as 2026-03-05T16:00:00Z', 40) },
      'one publication time for all values',
    ),
    closed(
      {
        column: column('the column with the publication time'),
        pattern: maybe(pattern),
        time: maybe(time),
        offset: maybe(offset),
      },
      'a column',
    ),
    closed(
      { time, offset, days: maybe(whole(0, 366, 'days after the date of the value')) },
      'a time on the day of the value, or some days later',
    ),
  ],
  'the source of the publication time',
);

const vintage = oneOf(
  [
    closed({ constant: day }, 'a day'),
    closed({ column: column('the column with the day'), pattern: maybe(pattern) }, 'a column'),
    closed(
      { cell: text('a cell above the values, such as A4', 10), pattern: maybe(pattern) },
      'a cell',
    ),
    closed(
      { startsWith: text('the beginning of the text of a cell above the values'), pattern },
      'a cell identified by its text',
    ),
    closed({ newest: Type.Literal(true, { description: 'true' }) }, 'the newest day of the file'),
  ],
  'the source of the vintage, the day of the edition',
);

const stated = (what: string) =>
  Type.Union(
    [
      text(`${what}, as written in the file`, 40),
      closed(
        { column: column(`the column with ${what}`), translate: maybe(translate) },
        `the source of ${what}`,
      ),
    ],
    { description: `${what}, or a column with it` },
  );

const published = closed(
  {
    currency: maybe(stated('the currency, such as USD, or USc for US cents')),
    unit: maybe(stated('the unit of measure, such as lb')),
  },
  'the currency and unit of the values in the file',
);

const values = {
  low: maybe(column('the column with the low value')),
  mid: column('the column with the mid value, or the only value'),
  high: maybe(column('the column with the high value')),
};

const columns = Type.Union(
  [
    dictionary(code, 'the price code of each column'),
    Type.Array(
      closed({ code, ...values, published: maybe(published) }, 'the columns of one price'),
      { minItems: 1, maxItems: 16_384, description: 'the columns of each price' },
    ),
  ],
  { description: 'the columns of the prices: column to code, or a list' },
);

const rates = closed(
  {
    source: Type.String({
      pattern: '^[A-Z0-9]{1,32}$',
      description: 'the publisher of the rates, in capital letters such as ECB',
    }),
    name: text('the name of the publisher'),
    base: text('the base currency of the rates, such as EUR', 3),
    first: line('the place of the first column with a currency as heading'),
  },
  'a table of exchange rates with a currency in each heading',
);

const textFile = closed(
  {
    delimiter: maybe(
      word(
        [...(Object.keys(DELIMITERS) as (keyof typeof DELIMITERS)[]), 'spaces'],
        'the delimiter of fields',
      ),
    ),
    encoding: maybe(word(ENCODINGS, 'the encoding of the file')),
  },
  'the notation of delimited text',
);

const workbook = closed(
  {
    sheet: maybe(
      Type.Unsafe<string | number>({
        type: ['string', 'integer'],
        minLength: 1,
        maxLength: 31,
        minimum: 1,
        maximum: 1_000,
        description: 'the name of the sheet, or its place from 1',
      }),
    ),
    onlyNumbers: maybe(flag('true if formulas and texts are invalid as values')),
  },
  'the place of the table in a workbook',
);

const header = Type.Union(
  [
    whole(0, LINES_MAX, 'the line with the column names, 0 for none'),
    closed(
      {
        holds: text('a column name'),
        footnoteMark: maybe(text('the footnote mark after names, which is ignored', 4)),
      },
      'the first line with this name',
    ),
  ],
  { description: 'the line with the column names, 0 for none, or one of its names' },
);

const rows = closed(
  {
    header: maybe(header),
    first: maybe(line('the first line with values')),
    stop: maybe(
      closed(
        {
          column: column('the column that marks the end'),
          startsWith: text('the beginning of its text'),
        },
        'the end of the table',
      ),
    ),
  },
  'the lines of the table',
);

const expect = list(
  closed(
    { column: column('a column'), row: line('a line above the values'), is: text('a text') },
    'the required text of a cell',
  ),
  'required texts above the values',
);

const numbers = closed(
  {
    decimal: maybe(word(['point', 'comma'], 'the decimal separator')),
    thousands: maybe(
      word(['none', 'comma', 'point', 'space', 'apostrophe'], 'the thousands separator'),
    ),
    missing: maybe(
      list(
        Type.String({ maxLength: 200, description: 'a text' }),
        'the texts that mark a missing value',
      ),
    ),
  },
  'the notation of numbers',
);

const attribute = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  maxLength: 1_000,
  description: 'a text, or null for none',
});
const specification = Type.Array(
  closed(
    {
      name: text('a name'),
      value: text('a text', 1_000),
      order: maybe(whole(0, 1_000, 'a place')),
    },
    'an entry',
  ),
  { maxItems: 100, description: 'a list of names and values' },
);

const reference = closed(
  {
    code,
    side: maybe(word(['mid', 'low', 'high'], 'the side of that price')),
    statistic: maybe(word(['session', 'month-average'], 'the value of that price')),
    element: text('an element such as Ni', 16),
    validFrom: day,
  },
  'the price that a payable is a percentage of',
);

/** A price description, with the members of an NDJSON price record. */
const price = Type.Unsafe<{ code: string } & Readonly<Record<string, unknown>>>(
  closed(
    {
      code,
      ...Object.fromEntries(ATTRIBUTES.map((name) => [name, maybe(attribute)])),
      specification: maybe(specification),
      reference: maybe(
        Type.Union([reference, list(reference, 'all references of a payable', 1)], {
          description: 'a reference, or a list of all of them',
        }),
      ),
    },
    'the description of a price',
  ),
);
const product = closed(
  {
    market: text('the slug of a market'),
    name: text('a name'),
    alias: text('a short name'),
    chemicalCode: text('a chemical formula'),
    isSustainable: flag('true or false'),
  },
  'a product',
);
const dimensionValue = closed({ dimension: text('a dimension'), name: text('a name') }, 'a value');

/** The schema of mapping files; `docs/mapping.md` documents each member. */
export const MAPPING = closed(
  {
    description: maybe(text('the purpose of the mapping', 2_000)),
    text: maybe(textFile),
    workbook: maybe(workbook),
    rows: maybe(rows),
    units: maybe(
      dictionary(text('a unit'), 'required texts below the column names, such as units'),
    ),
    expect: maybe(expect),
    code: maybe(codeSource),
    date: maybe(dateSource),
    ...values,
    mid: maybe(values.mid),
    columns: maybe(columns),
    dateColumns: maybe(dateColumns),
    rates: maybe(rates),
    publishedAt: maybe(publishedAt),
    vintage: maybe(vintage),
    published: maybe(published),
    numbers: maybe(numbers),
    prices: maybe(list(price, 'prices to create if they are missing')),
    products: maybe(list(product, 'products to create if they are missing')),
    values: maybe(list(dimensionValue, 'dimension values to create if they are missing')),
  },
  'a mapping',
);

export type Mapping = Static<typeof MAPPING>;
export type Published = Static<typeof published>;
export type PublicationSource = Static<typeof publishedAt>;
export type VintageSource = Static<typeof vintage>;
export type QuotationPartSource = Static<ReturnType<typeof stated>>;

/** The notation of dates, and the period that they stand for. */
export interface DateNotation {
  readonly pattern?: string | readonly string[] | undefined;
  readonly period?: DatePeriod | undefined;
}

/** The text of `docs/mapping.schema.json`, the JSON schema for editors. */
export function mappingSchemaText(): string {
  const schema = { $schema: 'http://json-schema.org/draft-07/schema#', ...MAPPING };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
