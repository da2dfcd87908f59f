import Type, { type Static } from 'typebox';
import { PERIODS } from './date-pattern.ts';
import {
  closed,
  column,
  dictionary,
  dimensionValue,
  flag,
  list,
  maybe,
  price,
  product,
  text,
  texts,
  whole,
  word,
} from './schema-parts.ts';

const LINES_MAX = 1_048_576;
const line = (description: string) => whole(1, LINES_MAX, description);

const cell = text('a cell above the table, such as A4', 10);
const pattern = text('how the dates are written, such as dd.MM.yyyy');
const period = word(PERIODS, 'what a date stands for, if for more than its day');
const code = text('the code of a price', 64);
const fillDown = flag('true when an empty cell repeats the one above it');
const translate = dictionary(code, 'what a text of the file stands for');

const codeSource = closed(
  {
    column: maybe(column('the column with the code')),
    constant: maybe(code),
    translate: maybe(translate),
    others: maybe(word(['reject', 'skip'], 'what becomes of texts that translate lacks')),
    fillDown: maybe(fillDown),
  },
  'where the code of the price stands',
);

const dateSource = closed(
  {
    column: maybe(column('the column with the date')),
    constant: maybe(text('a day, written YYYY-MM-DD', 10)),
    cell: maybe(cell),
    pattern: maybe(pattern),
    period: maybe(period),
    fillDown: maybe(fillDown),
  },
  'where the date stands',
);

const dateColumns = closed(
  {
    first: column('the first column whose header is a date'),
    last: maybe(column('the last column whose header is a date')),
    pattern: maybe(pattern),
    period: maybe(period),
  },
  'the columns of a table that has a date in each heading',
);

const publishedAt = closed(
  {
    column: maybe(column('the column with the publication time')),
    constant: maybe(text('a moment with its offset, such as 2026-03-05T16:00:00Z', 40)),
    pattern: maybe(pattern),
    time: maybe(text('a time of day, such as 16:00', 8)),
    days: maybe(whole(0, 366, 'days after the date of the value')),
    offset: maybe(text('the offset from UTC, Z or such as +08:00', 6)),
  },
  'when a value was published',
);

const vintage = closed(
  {
    constant: maybe(text('a day, written YYYY-MM-DD', 10)),
    column: maybe(column('the column with the day of the edition')),
    cell: maybe(cell),
    pattern: maybe(pattern),
  },
  'the day of the edition',
);

const stated = (what: string) =>
  Type.Union(
    [
      text(`${what}, as the file has it`, 40),
      closed(
        { column: column(`the column with ${what}`), translate: maybe(translate) },
        `where ${what} stands`,
      ),
    ],
    { description: `${what}, or the column that has it` },
  );

const published = closed(
  {
    currency: maybe(stated('the currency, such as USD, or USc for US cents')),
    unit: maybe(stated('the unit of measure, such as lb')),
    factor: maybe(
      Type.Unsafe<number | string>({
        type: ['integer', 'string'],
        minimum: 1,
        pattern: '^\\d{1,15}(\\.\\d{1,15})?$',
        description: 'what each number is multiplied by: a decimal greater than 0',
      }),
    ),
  },
  'the terms in which the file has the values',
);

const values = {
  low: maybe(column('the column with the low value')),
  mid: column('the column with the value, or the middle value'),
  high: maybe(column('the column with the high value')),
};

const columns = Type.Union(
  [
    dictionary(code, 'the code of the price that a column holds'),
    Type.Array(
      closed({ code, ...values, published: maybe(published) }, 'the columns of one price'),
      { minItems: 1, maxItems: 16_384, description: 'the columns of each price' },
    ),
  ],
  { description: 'the columns of the prices: column to code, or a list' },
);

const textFile = closed(
  {
    delimiter: maybe(
      word(['comma', 'semicolon', 'tab', 'pipe', 'spaces'], 'what stands between fields'),
    ),
    quote: maybe(word(['double', 'single', 'none'], 'the quotation mark around fields')),
    encoding: maybe(
      word(
        ['utf-8', 'utf-16', 'utf-16le', 'utf-16be', 'windows-1252', 'latin1'],
        'the encoding of the file',
      ),
    ),
    comment: maybe(text('what a line that is left out begins with', 8)),
  },
  'how delimited text is written',
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
  },
  'where in a workbook the table stands',
);
const rows = closed(
  {
    header: maybe(whole(0, LINES_MAX, 'the line with the names of the columns, 0 for none')),
    first: maybe(line('the first line with values')),
    last: maybe(line('the last line with values')),
    stop: maybe(
      closed(
        {
          blank: maybe(flag('true when the table ends at an empty line')),
          column: maybe(column('the column that shows the end')),
          startsWith: maybe(text('what the text in it begins with')),
        },
        'where the table ends',
      ),
    ),
    only: maybe(
      list(
        closed({ column: column('a column'), in: texts('the texts to keep') }, 'a condition'),
        'the rows that are read',
      ),
    ),
  },
  'which lines hold the table',
);
const numbers = closed(
  {
    decimal: maybe(word(['point', 'comma'], 'what stands before decimals')),
    thousands: maybe(
      word(['none', 'comma', 'point', 'space', 'apostrophe'], 'what stands between thousands'),
    ),
    missing: maybe(texts('the texts that mean "no value"', 0)),
  },
  'how numbers are written',
);

/** A mapping file; `docs/mapping.md` tells what each member does. */
export const MAPPING = closed(
  {
    description: maybe(text('what the mapping is for', 2_000)),
    text: maybe(textFile),
    workbook: maybe(workbook),
    rows: maybe(rows),
    expect: maybe(
      list(
        closed(
          { column: column('a column'), row: line('a line above the values'), is: text('a text') },
          'what must stand in a cell',
        ),
        'what must stand above the values',
      ),
    ),
    code: maybe(codeSource),
    date: maybe(dateSource),
    ...values,
    mid: maybe(values.mid),
    columns: maybe(columns),
    dateColumns: maybe(dateColumns),
    publishedAt: maybe(publishedAt),
    vintage: maybe(vintage),
    published: maybe(published),
    numbers: maybe(numbers),
    prices: maybe(list(price, 'prices that are made when they are not there')),
    products: maybe(list(product, 'products that are made when they are not there')),
    values: maybe(list(dimensionValue, 'values of dimensions that are made when missing')),
  },
  'a mapping',
);

export type Mapping = Static<typeof MAPPING>;
export type Published = Static<typeof published>;
export type StatedTerm = Static<ReturnType<typeof stated>>;
export type DateSource = Static<typeof dateSource>;
export type PublicationSource = Static<typeof publishedAt>;
