import { isDay } from '../parsing/dates.ts';
import { cellDecimal, multiplied } from '../parsing/decimals.ts';
import type { SourceRow } from '../parsing/rows.ts';
import { type Cell, dateTimeOfSerial } from '../parsing/xlsx-cells.ts';
import type { LoadErrorCode } from '../records/load-error.ts';
import {
  type DatePattern,
  type DatePeriod,
  type DateTime,
  datePattern,
  endOf,
  ISO_DAY,
} from './date-pattern.ts';
import type { DateNotation } from './schema.ts';

/** The notation of numbers in a file. */
export interface Notation {
  readonly decimal: 'point' | 'comma';
  readonly thousands: 'none' | 'comma' | 'point' | 'space' | 'apostrophe';
}

const SEPARATORS: Readonly<Record<Notation['thousands'], string>> = {
  none: '',
  comma: ',',
  point: '.',
  // Includes non-breaking spaces, which spreadsheet programs write.
  space: ' \u00a0\u2009\u202f',
  apostrophe: "'\u2019",
};

const PLAIN = /^-?\d+(?:\.\d+)?$/;

/**
 * Builds a parser that converts numbers of a notation to plain decimals, or returns null. Thousands
 * separators must be complete or absent. A number with separators must not start with 0, so that
 * 0.123 is never read as 123.
 */
export function numberReader({ decimal, thousands }: Notation): (text: string) => string | null {
  const point = decimal === 'point' ? String.raw`\.` : ',';
  const fraction = String.raw`(?:${point}(\d+))?`;
  const plain = new RegExp(`^(-?\\d+)${fraction}$`);
  const separators = SEPARATORS[thousands];
  const grouped = new RegExp(
    `^(-?[1-9]\\d{0,2}(?:([${separators}])\\d{3})(?:\\2\\d{3})*)${fraction}$`,
  );
  return (text) => {
    // Fast path: most texts are plain decimals.
    if (decimal === 'point' && PLAIN.test(text)) return text;
    const simple = plain.exec(text);
    if (simple) return simple[2] === undefined ? text : `${simple[1]}.${simple[2]}`;
    const match = separators === '' ? null : grouped.exec(text);
    if (!match) return null;
    const whole = (match[1] ?? '').replaceAll(match[2] ?? '', '');
    return match[3] === undefined ? whole : `${whole}.${match[3]}`;
  };
}

/** An example number in the notation, for messages. */
export const sampleOf = ({ decimal, thousands }: Notation): string => {
  const separator = SEPARATORS[thousands].slice(0, 1);
  return `1${separator}234${decimal === 'point' ? '.' : ','}5`;
};

/** A field of a table: text of a delimited file, or a cell of a workbook. */
export type Field = string | Cell;

/** A row of text or of a workbook. Empty cells may be absent. */
export type TableRow = SourceRow<Field | undefined>;

/** The reason why a field has no valid value. */
export class Fault {
  readonly code: LoadErrorCode;
  readonly message: string;

  constructor(code: LoadErrorCode, message: string) {
    this.code = code;
    this.message = message;
  }
}

/** Longest text that is parsed as a number, date or code; all valid ones are shorter. */
const CHARACTERS_MAX = 64;

/** Trims a text and collapses its white space. */
export const plainText = (text: string): string => text.trim().replace(/\s+/g, ' ');

/** The displayed text of a field, for messages. */
export const shownText = (field: Field | undefined): string =>
  field === undefined ? '' : typeof field === 'string' ? field : field.text;

/** True if a field is empty; a formula without a result is not. */
export function isEmpty(field: Field | undefined): boolean {
  if (field === undefined) return true;
  if (typeof field === 'string') return field.trim() === '';
  return field.type === 'text' && field.text.trim() === '';
}

/** States why a cell has neither text nor number; null if it has one. */
function cellFault(cell: Cell, code: LoadErrorCode): Fault | null {
  if (cell.type === 'nothing') {
    const what = 'The formula of the cell was never calculated';
    return new Fault(code, `${what}: save the workbook in a spreadsheet program`);
  }
  if (cell.type === 'error') return new Fault(code, `The cell shows an error, ${cell.text}`);
  return cell.type === 'boolean' ? new Fault(code, 'The cell holds TRUE or FALSE') : null;
}

/** The trimmed text of a field; a workbook number as displayed. */
export function textOf(field: Field | undefined, code: LoadErrorCode): string | Fault {
  if (field === undefined) return '';
  if (typeof field === 'string') return field.trim();
  const fault = cellFault(field, code);
  if (fault) return fault;
  if (field.type === 'text') return field.text.trim();
  const isNumber = field.type === 'number' && field.kind === 'number';
  const text = isNumber ? cellDecimal(field.text) : null;
  return text ?? new Fault(code, 'The cell holds a date or a percentage, where a text is needed');
}

/** Rules for the values of a table. */
export interface NumberRules {
  readonly read: (text: string) => string | null;
  /** An example number, for messages. */
  readonly sample: string;
  readonly missing: ReadonlySet<string>;
  /** True if formulas and texts of a workbook are invalid as values. */
  readonly onlyNumbers: boolean;
}

/** True if a field marks a missing value. */
export function isMissing(field: Field | undefined, rules: NumberRules): boolean {
  const { missing, onlyNumbers } = rules;
  if (field === undefined) return missing.has('');
  if (typeof field === 'string') return missing.has(field.trim());
  if (onlyNumbers && field.isFormula) return false;
  return (field.type === 'text' || field.type === 'number') && missing.has(field.text.trim());
}

const wrongNumber = (message: string): Fault => new Fault('invalid_number', message);

function numberOfText(text: string, rules: NumberRules, isPercent: boolean): string | Fault {
  if (text === '') return new Fault('missing_value', 'The value is missing');
  if (text.length > CHARACTERS_MAX) return wrongNumber('The value is not a number');
  const bare = isPercent ? text.replace(/[ \u00a0\u202f]?%$/, '') : text;
  const decimal = rules.read(bare);
  if (decimal !== null) return decimal;
  return wrongNumber(
    `The value is neither a number such as ${rules.sample} nor a mark for a missing value`,
  );
}

/** The displayed number of a cell, with at most 15 significant digits. */
function numberOfCell(cell: Cell, isPercent: boolean): string | Fault {
  if (cell.kind === 'percent' && !isPercent) {
    return wrongNumber('The cell shows a percentage: publish it in the unit "%"');
  }
  if (cell.kind !== 'number' && cell.kind !== 'percent') {
    return wrongNumber('The cell shows a date or a time, not a number');
  }
  const decimal = cellDecimal(cell.text);
  if (decimal === null) return wrongNumber('The cell does not hold a number');
  return cell.kind === 'percent' ? multiplied(decimal, { digits: 100n, scale: 0 }) : decimal;
}

/** Parses the value of a field as a plain decimal; null for a missing value. */
export function numberOf(
  field: Field | undefined,
  rules: NumberRules,
  isPercent: boolean,
): string | null | Fault {
  if (isMissing(field, rules)) return null;
  if (field === undefined) return numberOfText('', rules, isPercent);
  if (typeof field === 'string') return numberOfText(field.trim(), rules, isPercent);
  const fault = cellFault(field, 'invalid_number');
  if (fault) return fault;
  if (rules.onlyNumbers && field.isFormula) return wrongNumber('The cell holds a formula');
  if (field.type === 'number') return numberOfCell(field, isPercent);
  if (rules.onlyNumbers) return wrongNumber('The cell is not a number');
  if (field.type === 'text') return numberOfText(field.text.trim(), rules, isPercent);
  return wrongNumber('The cell holds a date, not a number');
}

const ISO = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)Z?)?$/;

/** Parses the dates and times of one column. */
export class DateTimeReader {
  private readonly patterns: readonly DatePattern[];
  private readonly is1904: boolean;
  private readonly code: LoadErrorCode;
  private lastText: string | null = null;
  private lastDateTime: DateTime | Fault | null = null;

  constructor(patterns: readonly DatePattern[], is1904: boolean, code: LoadErrorCode) {
    this.patterns = patterns;
    this.is1904 = is1904;
    this.code = code;
  }

  private fault(message: string): Fault {
    return new Fault(this.code, message);
  }

  /** Parses the date in a field; `''` if it is empty. */
  read(field: Field | undefined): DateTime | Fault | '' {
    if (field === undefined) return '';
    if (typeof field === 'string') return this.ofText(field.trim());
    const fault = cellFault(field, this.code);
    if (fault) return fault;
    if (field.type === 'text') return this.ofText(field.text.trim());
    if (field.type === 'date') return this.ofIso(field.text);
    if (field.kind === 'date' || field.kind === 'date-time') return this.ofSerial(field.text);
    const text = field.kind === 'number' ? cellDecimal(field.text) : null;
    // A number cell may hold a year, or a date such as 20260305.
    return this.ofText(text ?? field.text);
  }

  private ofText(text: string): DateTime | Fault | '' {
    if (text === '') return '';
    if (text !== this.lastText || this.lastDateTime === null) {
      const dateTime = this.parsed(text);
      this.lastText = text;
      this.lastDateTime =
        dateTime ?? this.fault('The text does not match the date pattern of the mapping');
    }
    return this.lastDateTime;
  }

  private parsed(text: string): DateTime | null {
    if (text.length > CHARACTERS_MAX) return null;
    for (const pattern of this.patterns) {
      const dateTime = pattern.read(text);
      if (dateTime) return dateTime;
    }
    return null;
  }

  private ofSerial(text: string): DateTime | Fault {
    const dateTime = dateTimeOfSerial(Number(text), this.is1904);
    if (typeof dateTime === 'string') return this.fault(`The cell ${dateTime}`);
    return { ...dateTime, offset: null };
  }

  private ofIso(text: string): DateTime | Fault {
    const [, day = '', time = '00:00:00'] = ISO.exec(text.trim()) ?? [];
    return isDay(day) ? { day, time, offset: null } : this.fault('The cell does not hold a date');
  }
}

/** Parses the days of one column; a month, quarter or year is dated on its last day. */
export class DayReader {
  private readonly dateTimes: DateTimeReader;
  private readonly period: DatePeriod;

  constructor({ pattern = ISO_DAY, period }: DateNotation, is1904: boolean) {
    const patterns = [pattern].flat().map(datePattern);
    this.dateTimes = new DateTimeReader(patterns, is1904, 'invalid_date');
    const [only, second] = patterns;
    this.period = period ?? (second ? 'day' : (only?.period ?? 'day'));
  }

  /** Parses the day in a field, YYYY-MM-DD. */
  read(field: Field | undefined): string | Fault {
    const dateTime = this.dateTimes.read(field);
    if (dateTime instanceof Fault) return dateTime;
    if (dateTime === '') return new Fault('missing_value', 'The date is missing');
    return endOf(this.period, dateTime.day);
  }
}
