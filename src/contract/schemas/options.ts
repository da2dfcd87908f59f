import Type from 'typebox';
import { METHODS, PERIODS } from '../../catalog/analytics.ts';
import { closed, word } from './components.ts';

/** Texts without control characters and lone surrogates, which PostgreSQL cannot hold. */
export const PRINTABLE = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

const text = (description: string, maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: PRINTABLE, description });

const flag = (description: string) =>
  Type.Optional(Type.Boolean({ description: `${description}; false by default` }));

/** An instant of RFC 3339, without extensions such as a zone name. */
const INSTANT = '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$';

/** Maximum of `lastObservations`: more days than a series can have. */
const LAST_OBSERVATIONS_MAX = 146_100;

/** `all`, `short`, or column names separated by commas. */
const COLUMNS = '^[A-Za-z]+(,[A-Za-z]+){0,99}$';

/**
 * The members of `options`. None has a `default`, because generated clients would require it.
 * @param recordsMax maximum number of records on a page
 */
export const optionMembers = (recordsMax: number) => ({
  includeSeries: flag('Adds the series to each record'),
  includeSummary: flag('Adds a summary to each record'),
  currency: Type.Optional(
    text('ISO 4217 code, ignoring case: converts prices, never payables', 64),
  ),
  unitOfMeasure: Type.Optional(
    text('Id, name or symbol of a unit: converts prices, never payables', 128),
  ),
  onUnconvertible: Type.Optional(
    word(['keep', 'omit', 'error'], {
      description:
        'Treatment of a price that cannot be converted, or none of whose requested points can; ' +
        'default keep',
    }),
  ),
  decimals: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10,
      description:
        'Decimals of converted and aggregated values; default 6 significant digits, at least 2 ' +
        'decimals. Rejected without currency, unitOfMeasure or aggregate',
    }),
  ),
  aggregate: Type.Optional(
    closed(
      { period: word(PERIODS), method: word(METHODS) },
      { description: 'One point for each period, from its unrounded assessments' },
    ),
  ),
  asOf: Type.Optional(
    Type.String({
      format: 'date-time',
      pattern: INSTANT,
      maxLength: 64,
      description:
        'Reads the data as known at this instant (RFC 3339), not in the future; there are no ' +
        'records before the first load',
    }),
  ),
  revision: Type.Optional(
    Type.String({
      pattern: '^[0-9a-z]{4,18}\\.(0|[1-9]\\d{0,17})$',
      description: 'Reads an earlier $metadata.revision; cannot be combined with asOf',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: recordsMax,
      description: 'Maximum number of records on a page; default all',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: 'The `nextCursor` of the previous page; continues after it, at its revision',
    }),
  ),
  strict: flag('Rejects values that match nothing'),
  lastObservations: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LAST_OBSERVATIONS_MAX,
      description:
        'Returns only the last n points of each series; everything else still covers the whole ' +
        'range. Requires includeSeries',
    }),
  ),
  decimalsAsText: flag(
    'Writes low, mid, high, the figures of summaries and all decimals of rows as JSON strings',
  ),
  columns: Type.Optional(
    Type.String({
      pattern: COLUMNS,
      maxLength: 2_048,
      description:
        'Columns of CSV, rows, Parquet and Arrow: all (default), short, or names with commas',
    }),
  ),
  layout: Type.Optional(
    word(['long', 'wide'], {
      description:
        'CSV and rows: long, a row for each price and date (default), or wide, a row for each ' +
        'date with the mid of each code',
    }),
  ),
  warnings: Type.Optional(
    word(['header', 'row'], {
      description: 'CSV and NDJSON: warnings in headers only (default), or also as last rows',
    }),
  ),
});
