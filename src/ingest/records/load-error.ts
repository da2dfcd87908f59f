import { quoted } from '../../errors.ts';
import { ownCopy } from './texts.ts';

/** Problem codes of loads and their meanings. Append-only; documented in `docs/loading.md`. */
export const LOAD_ERRORS = {
  invalid_layout: 'The file is not what its format says',
  invalid_archive: 'The ZIP archive is damaged, encrypted or too large once unpacked',
  invalid_encoding: 'Bytes that are not UTF-8, or a NUL character',
  line_too_long: 'A line or a text of more than 1 MiB',
  empty_file: 'The file holds no values',
  file_changed: 'The file was changed while it was read',
  too_many_prices: 'The file names more prices than one load takes',
  invalid_vintage: 'The vintage is missing, impossible, or not the one that the file states',
  unknown_column: 'A column that the format does not have',
  missing_column: 'A column that the format needs',
  ambiguous_column: 'A column that may hold the same series as another one',
  wrong_column_count: 'A row with more or fewer fields than the header',
  invalid_quote: 'A quotation mark where RFC 4180 has none',
  invalid_json: 'A line that is not one JSON object',
  unknown_member: 'A JSON member that the record does not have',
  wrong_type: 'A value of another type',
  missing_value: 'A value that every row needs',
  invalid_number: 'A value that is not a plain decimal number',
  too_precise: 'More than 10 decimals, or more than 15 significant digits',
  out_of_range: 'A value or date outside the range allowed',
  low_mid_high: 'low, mid and high that are not in order',
  invalid_date: 'A text that is not a real calendar day',
  invalid_time: 'A text that is not an RFC 3339 instant',
  invalid_text: 'A text that is too long or holds control characters',
  unit_mismatch: 'A column in another unit than expected',
  currency_mismatch: 'Values in another currency than their price',
  duplicate: 'A price and date, or a currency and date, given before in the same file',
  conflicting: 'A second statement about a price that contradicts the first',
  unknown_code: 'A code that no price has and that the file does not describe',
  unknown_market: 'A market that the catalog does not have',
  unknown_currency: 'A currency that ISO 4217 does not have, or that no price can be in',
  unknown_unit: 'A unit of measure that the reference data do not have',
  unknown_product: 'A product that the market does not have',
  unknown_value: 'A dimension value that the reference data do not have',
  unsupported_field: 'A dimension that belongs to other markets',
  invalid_price: 'A description that breaks a rule of prices and payables',
  immutable: 'Market, code, type, currency or unit of a price, which never change',
  correction_not_allowed: 'A published value or description would change, without permission',
  jump: 'A value that differs too much from a neighbouring value, without permission',
  invalid_code: 'A code that is not 1 to 64 visible ASCII characters',
  period_averages: 'Averages of a month or year, where rates of days are needed',
  no_value: 'A day to withdraw on which the price has no value',
  invalid_yaml: 'A text that is not plain YAML',
  invalid_calendar: 'A holiday list or calendar that breaks a rule of calendar files',
  unknown_calendar: 'A calendar that neither the file nor the database has',
  unknown_holidays: 'A holiday list that neither the file nor the database has',
  invalid_vat: 'A country, day or rate of VAT that breaks a rule of VAT files',
} as const;

export type LoadErrorCode = keyof typeof LOAD_ERRORS;

/** A mapping with which `load table` loads a column that the format refuses. */
export interface Remedy {
  /** The condition, as a clause: "it holds …". */
  readonly when: string;
  readonly mapping: object;
}

/** One problem and its place. Lines (rows of a sheet) count from 1. */
export interface LoadProblem {
  /** Path of the mapping, if the problem is in the mapping and not in the loaded file. */
  readonly file?: string;
  readonly line: number | null;
  /** The column of the line in characters, from 1; only of YAML. */
  readonly position?: number;
  /** The name of the column or member. */
  readonly column: string | null;
  /** The text at the place, cut to 64 characters. */
  readonly value: string | null;
  readonly code: LoadErrorCode;
  readonly message: string;
  readonly remedies?: readonly Remedy[];
}

/** A problem that makes the rest of the file unreadable; reading stops. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly problem: LoadProblem;

  constructor(code: LoadErrorCode, message: string, place: ProblemPlace = {}) {
    super(message);
    this.problem = problemOf(code, message, place);
  }
}

export interface ProblemPlace {
  readonly file?: string | undefined;
  readonly line?: number | null;
  readonly position?: number;
  readonly column?: string | null;
  readonly value?: string | null;
  readonly remedies?: readonly Remedy[];
}

/** A displayable copy of a text of the file. A slice would keep its whole block in memory. */
const shownCopy = (text: string | null): string | null =>
  text === null ? null : ownCopy(quoted(text));

/** A message that may quote the file, without control characters that could reach a terminal. */
const sentence = (text: string): string =>
  ownCopy(
    text
      .replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd')
      .slice(0, MESSAGE_MAX)
      .toWellFormed(),
  );

const MESSAGE_MAX = 1_000;

/** Builds a problem; quoted texts are shortened and made safe to display. */
export const problemOf = (
  code: LoadErrorCode,
  message: string,
  { file, line = null, position, column = null, value = null, remedies }: ProblemPlace,
): LoadProblem => ({
  ...(file === undefined ? {} : { file }),
  // Line 0 stands for the command line, which has no lines.
  line: line === 0 ? null : line,
  ...(position === undefined ? {} : { position }),
  column: shownCopy(column),
  value: shownCopy(value),
  code,
  message: sentence(message),
  ...(remedies === undefined ? {} : { remedies }),
});
