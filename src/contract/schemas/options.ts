import Type, { type TSchema } from 'typebox';
import { METHODS, type Method, PERIODS, type Period } from '../../catalog/analytics.ts';
import { closed, word } from './components.ts';

/*
 * The table of options. Everything else that knows options derives from it: the schema of a body,
 * the parameters of GET and their examples, the plan of a request with its defaults, the text that
 * cursors and ETags are bound to, the refusals of options that have no effect, and the clients. The
 * table of formats names the options that only some formats have.
 */

/** An option of a request for prices. */
interface Option {
  /** The schema of its value, which may depend on the maximum number of records on a page. */
  readonly schema: TSchema | ((recordsMax: number) => TSchema);
  /**
   * The value of a request without the option. It is a member of the plan, unless the option only
   * selects a revision or a page. A released default never changes: cursors are bound to it.
   */
  readonly default?: unknown;
  /** `computes`: adds numbers that are not published. `rounds`: needs an option that computes. */
  readonly effect?: 'computes' | 'rounds';
  /** True if any value but the default needs the points of series. */
  readonly needsSeries?: boolean;
  /** The notation of a value that is an object in an address. */
  readonly address?: AddressNotation;
  /** The detail of the violation for a text in another form. */
  readonly form?: string;
  /** A value in an address. The examples of all options together are one valid request. */
  readonly example?: string | number | boolean;
  /** In place of an example, a value that shows the form only: no tool may fill it in. */
  readonly sample?: string | number;
}

/** The notation of an option in an address. */
export interface AddressNotation {
  /** The schema of the parameter. */
  readonly schema: TSchema;
  /** Parses a text; a text in another notation stays a string. */
  readonly parse: (text: string) => unknown;
  /** The detail of the violation for a text in another notation. */
  readonly expected: string;
}

/** Texts without control characters and lone surrogates, which PostgreSQL cannot hold. */
export const PRINTABLE = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

const text = (description: string, maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: PRINTABLE, description });

const flag = (description: string) =>
  Type.Boolean({ description: `${description}; default false` });

/** An instant of RFC 3339, without extensions such as a zone name. */
export const INSTANT =
  '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$';

/** Maximum of `lastObservations`: more days than a series can have. */
const LAST_OBSERVATIONS_MAX = 146_100;

/** Maximum of `movingAverage`: about the sessions of a year. */
const MOVING_AVERAGE_MAX = 250;

/** `all`, `short`, or column names separated by commas. */
const COLUMNS = '^[A-Za-z]+(,[A-Za-z]+){0,99}$';

/** The period and method of an aggregate, such as `month:average`. */
const AGGREGATE_NOTATION: AddressNotation = {
  schema: Type.String({
    pattern: `^(${PERIODS.join('|')}):(${METHODS.join('|')})$`,
    description: 'One point for each period, `period:method`, such as `month:average`',
  }),
  parse: (text) => {
    const [period, method, ...more] = text.split(':');
    return method === undefined || more.length > 0 ? text : { period, method };
  },
  expected: 'Must be a period and a method, such as month:average',
};

/** Every option, in the order of the documents. No schema has a `default`: see `optionMembers`. */
export const OPTIONS = {
  includeSeries: {
    schema: flag('Adds the series to each record'),
    default: false as boolean,
    example: true,
  },
  includeSummary: {
    schema: flag('Adds a summary to each record'),
    default: false as boolean,
    example: true,
  },
  /** The text of the request. The reference data of the snapshot resolve it. */
  currency: {
    schema: text('ISO 4217 code, ignoring case: converts prices, never payables', 64),
    default: null as string | null,
    effect: 'computes',
    example: 'EUR',
  },
  /** The text of the request. The reference data of the snapshot resolve it. */
  unitOfMeasure: {
    schema: text('Id, name or symbol of a unit: converts prices, never payables', 128),
    default: null as string | null,
    effect: 'computes',
    example: 'kg',
  },
  onUnconvertible: {
    schema: word(['keep', 'omit', 'error'], {
      description:
        'For a price that cannot be converted, or none of whose requested points can; ' +
        'default keep',
    }),
    default: 'keep' as 'keep' | 'omit' | 'error',
    example: 'keep',
  },
  decimals: {
    schema: Type.Integer({
      minimum: 0,
      maximum: 10,
      description:
        'Decimals of computed values; default 6 significant digits, at least 2 decimals. ' +
        'Rejected if nothing is computed',
    }),
    default: null as number | null,
    effect: 'rounds',
    example: 4,
  },
  aggregate: {
    schema: closed(
      { period: word(PERIODS), method: word(METHODS) },
      { description: 'One point for each period, from its unrounded assessments' },
    ),
    default: null as { readonly period: Period; readonly method: Method } | null,
    effect: 'computes',
    address: AGGREGATE_NOTATION,
    example: 'month:average',
  },
  asOf: {
    schema: Type.String({
      format: 'date-time',
      pattern: INSTANT,
      maxLength: 64,
      description: 'Reads the data as known at this instant (RFC 3339), not in the future',
    }),
    form: 'Must be an instant with its offset (RFC 3339), such as 2026-03-05T16:00:00Z',
    sample: '2026-07-01T06:30:00Z',
  },
  revision: {
    schema: Type.String({
      pattern: '^[0-9a-z]{4,18}\\.(0|[1-9]\\d{0,17})$',
      description: 'Reads an earlier $metadata.revision; not with asOf',
    }),
    form: 'Must be a revision as an answer names it in $metadata.revision',
    sample: 'k3f9a1w2c7xe.184223',
  },
  limit: {
    schema: (recordsMax) =>
      Type.Integer({
        minimum: 1,
        maximum: recordsMax,
        description: 'Maximum number of records on a page; default all',
      }),
    example: 100,
  },
  cursor: {
    schema: Type.String({
      description: 'The `nextCursor` of the previous page',
    }),
    sample: 'WyJrM2Y5YTEuMTg0MjIzIiwiQ1AtTkktMDA0MiIsImxHc3cxV0VTR2ZRa1Jab3AiXQ',
  },
  strict: {
    schema: flag('Rejects values that match nothing'),
    default: false as boolean,
    example: true,
  },
  /** Number of last points of each series in the response; null for all. */
  lastObservations: {
    schema: Type.Integer({
      minimum: 1,
      maximum: LAST_OBSERVATIONS_MAX,
      description:
        'Only the last n points of each series; everything else covers the whole ' +
        'range. Requires includeSeries',
    }),
    default: null as number | null,
    needsSeries: true,
    example: 12,
  },
  decimalsAsText: {
    schema: flag(
      'Writes numbers of points, figures of summaries, all decimals of rows and XLSX as text',
    ),
    default: false as boolean,
    example: false,
  },
  /** `all`, `short`, or column names separated by commas, as sent; null is `all`. */
  columns: {
    schema: Type.String({
      pattern: COLUMNS,
      maxLength: 2_048,
      description:
        'Columns, but not of JSON and NDJSON: all (default), short, or names with commas',
    }),
    default: null as string | null,
    form: 'Must be all, short, or names of columns with commas and no blanks',
    sample: 'code,date,mid',
  },
  layout: {
    schema: word(['long', 'wide'], {
      description:
        'CSV, rows and XLSX: long (default), a row for each price and date, or wide, a row for ' +
        'each date with the mid of each code',
    }),
    default: 'long' as 'long' | 'wide',
    needsSeries: true,
    example: 'long',
  },
  warnings: {
    schema: word(['header', 'row'], {
      description: 'CSV and NDJSON: warnings in headers only (default), or also as last rows',
    }),
    default: 'header' as 'header' | 'row',
    example: 'header',
  },
  /** Number of sessions of each mean; null for no means. */
  movingAverage: {
    schema: Type.Integer({
      minimum: 1,
      maximum: MOVING_AVERAGE_MAX,
      description:
        'Mean of the last n mids at each point, also of those before dateFrom; null if ' +
        'fewer. Requires includeSeries; rejected with aggregate or layout=wide',
    }),
    default: null as number | null,
    effect: 'computes',
    needsSeries: true,
    sample: 20,
  },
  rates: {
    schema: word(['day', 'period-mean'], {
      description: 'Rate of means (`observes`): of the day (default), or the mean of their period',
    }),
    default: 'day' as 'day' | 'period-mean',
    example: 'day',
  },
  csvDialect: {
    schema: word(['comma', 'semicolon'], {
      description: 'CSV: cells between commas (default), or semicolons, with decimal commas',
    }),
    default: 'comma' as 'comma' | 'semicolon',
    example: 'comma',
  },
  vat: {
    schema: word(['as-published', 'exclude'], {
      description:
        'VAT of prices with a `vatCountry`: as-published (default), or exclude: ÷ (1 + the rate ' +
        'of the day)',
    }),
    default: 'as-published' as 'as-published' | 'exclude',
    effect: 'computes',
    example: 'exclude',
  },
} as const satisfies Readonly<Record<string, Option>>;

export type OptionName = keyof typeof OPTIONS;

/** The names of all options, in the order of the table. */
export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[];

/** The entry of an option. */
export const optionOf = (name: OptionName): Option => OPTIONS[name];

/** The options that are members of a plan: those with a default. */
export type PlanOptionName = {
  [Name in OptionName]: (typeof OPTIONS)[Name] extends { readonly default: unknown } ? Name : never;
}[OptionName];

/** The names of `PlanOptionName`, in the order of the table. */
export const PLAN_OPTION_NAMES = OPTION_NAMES.filter(
  (name): name is PlanOptionName => 'default' in OPTIONS[name],
);

/** The options that compute numbers, which `decimals` then rounds. */
export const COMPUTING = PLAN_OPTION_NAMES.filter((name) => optionOf(name).effect === 'computes');

/**
 * The members of `options`. None has a `default`, because generated clients would require it.
 * @param recordsMax maximum number of records on a page
 */
export const optionMembers = (recordsMax: number): Readonly<Record<OptionName, TSchema>> =>
  Object.fromEntries(
    OPTION_NAMES.map((name) => {
      const { schema } = optionOf(name);
      return [name, Type.Optional(typeof schema === 'function' ? schema(recordsMax) : schema)];
    }),
  ) as Record<OptionName, TSchema>;
