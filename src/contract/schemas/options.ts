import Type from 'typebox';
import { METHODS, PERIODS } from '../../catalog/analytics.ts';
import { closed, word } from './components.ts';

/** Texts without control characters and lone surrogates, which PostgreSQL cannot hold. */
export const PRINTABLE = '^[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

const text = (description: string, maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: PRINTABLE, description });

const flag = (description: string) =>
  Type.Optional(Type.Boolean({ description: `${description}; false by default` }));

/** A moment of RFC 3339 and nothing beyond it, such as the name of a zone. */
const MOMENT = '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$';

/** Most points of each price that `lastObservations` takes: more days than a series can have. */
const LAST_OBSERVATIONS_MAX = 146_100;

/** `all`, `short`, or names of columns with commas between them. */
const COLUMNS = '^[A-Za-z]+(,[A-Za-z]+){0,99}$';

/**
 * The members of `options`. None has a `default`: generated clients would make it compulsory.
 * @param recordsMax most records that a page may have
 */
export const optionMembers = (recordsMax: number) => ({
  includeSeries: flag('Adds the series to each record'),
  includeSummary: flag('Adds a summary to each record'),
  currency: Type.Optional(
    text('ISO 4217 code, whatever the case: converts prices, never payables', 64),
  ),
  unitOfMeasure: Type.Optional(
    text('Id, name or symbol of a unit: converts prices, never payables', 128),
  ),
  onUnconvertible: Type.Optional(
    word(['keep', 'omit', 'error'], {
      description:
        'Treatment of a price that cannot be converted, or of which no requested point can; ' +
        'keep by default',
    }),
  ),
  decimals: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10,
      description:
        'Decimals of converted and aggregated values; otherwise 6 significant digits, at least 2 ' +
        'decimals. Refused without currency, unitOfMeasure or aggregate',
    }),
  ),
  aggregate: Type.Optional(
    closed(
      { period: word(PERIODS), method: word(METHODS) },
      { description: 'One point for each period, from the unrounded assessments in it' },
    ),
  ),
  asOf: Type.Optional(
    Type.String({
      format: 'date-time',
      pattern: MOMENT,
      maxLength: 64,
      description:
        'Everything as it was known at this moment (RFC 3339), not in the future; there are no ' +
        'records before the first load',
    }),
  ),
  revision: Type.Optional(
    Type.String({
      pattern: '^[0-9a-z]{4,18}\\.(0|[1-9]\\d{0,17})$',
      description: 'The same by an earlier $metadata.revision; not together with asOf',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: recordsMax,
      description: 'Most records of the answer; everything that was asked for without it',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: 'The `nextCursor` of the page before; goes on after it, at its state',
    }),
  ),
  strict: flag('Refuses values that match nothing'),
  lastObservations: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LAST_OBSERVATIONS_MAX,
      description:
        'Only the last n points of each series; all else is that of the whole range. Needs ' +
        'includeSeries',
    }),
  ),
  decimalsAsText: flag(
    'Writes low, mid, high and the figures of summaries as JSON strings with the same digits; ' +
      'schemas show the default, numbers',
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
        'Of CSV and rows: long, a row for each price and date (default), or wide, a row for each ' +
        'date with the mid of each code',
    }),
  ),
  warnings: Type.Optional(
    word(['header', 'row'], {
      description: 'Of CSV and NDJSON: warnings in headers alone (default), or also as last rows',
    }),
  ),
});
