import { calendarText } from '../../std/days.ts';
import { daysIn, isDay, MONTHS } from '../parsing/dates.ts';

/** The period that a date stands for. A month, quarter or year is dated on its last day. */
export const PERIODS = ['day', 'month', 'quarter', 'year'] as const;
export type DatePeriod = (typeof PERIODS)[number];

/** A parsed date, with the time and offset that its text states. */
export interface DateTime {
  /** YYYY-MM-DD; for a month, quarter or year its last day. */
  readonly day: string;
  /** HH:MM:SS; null if absent. */
  readonly time: string | null;
  /** `Z` or `+01:00`; null if absent. */
  readonly offset: string | null;
}

/** A parser of dates in one notation. */
export interface DatePattern {
  /** The period that the pattern states. */
  readonly period: DatePeriod;
  readonly hasTime: boolean;
  readonly hasOffset: boolean;
  /** Parses a text; null if it does not match the pattern or is no real date. */
  read(text: string): DateTime | null;
}

/** An invalid pattern; the message states why. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

const OFFSET = 'X'.repeat(3);
const SHORT_MONTHS = MONTHS.map((name) => name.slice(0, 3));

/**
 * Pattern letters (a subset of Unicode's date field symbols): the name and regular expression of
 * each. Two-digit years are not supported, because the century would be a guess.
 */
const PARTS: ReadonlyMap<string, readonly [name: string, form: string]> = new Map([
  ['yyyy', ['year', String.raw`\d{4}`]],
  ['M', ['month', String.raw`\d{1,2}`]],
  ['MM', ['month', String.raw`\d{2}`]],
  ['MMM', ['month', `${SHORT_MONTHS.join('|')}|Sept`]],
  ['MMMM', ['month', MONTHS.join('|')]],
  ['Q', ['quarter', '[1-4]']],
  ['d', ['day', String.raw`\d{1,2}`]],
  ['dd', ['day', String.raw`\d{2}`]],
  ['H', ['hour', String.raw`\d{1,2}`]],
  ['HH', ['hour', String.raw`\d{2}`]],
  ['mm', ['minute', String.raw`\d{2}`]],
  ['ss', ['second', String.raw`\d{2}`]],
  [OFFSET, ['offset', String.raw`Z|[-+](?:[01]\d|2[0-3]):[0-5]\d`]],
]);

const TOKEN = /'(?:[^']|'')*'|([a-zA-Z])\1*|[^a-zA-Z']+|'/g;
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** The regular expression of one token; adds the name of a date part to `names`. */
function formOf(token: string, names: Set<string>): string {
  if (token === "'") throw new PatternError('a quotation mark is never closed');
  if (token === "''") return "'";
  if (token.startsWith("'")) return escaped(token.slice(1, -1).replaceAll("''", "'"));
  if (!/^[a-zA-Z]/.test(token)) return escaped(token);
  const part = PARTS.get(token);
  if (!part) {
    const legal = [...PARTS.keys()].join(', ');
    const hint = /^y+$/.test(token) ? 'a year has four digits: yyyy' : `the parts are ${legal}`;
    const quoting = "put other letters between single quotation marks, as in yyyy'M'MM";
    throw new PatternError(`"${token}" is not a date part; ${hint}; ${quoting}`);
  }
  const [name, form] = part;
  if (names.has(name)) throw new PatternError(`the ${name} appears twice`);
  names.add(name);
  return `(?<${name}>${form})`;
}

/** The finest date part of a pattern. */
function periodOf(names: ReadonlySet<string>): DatePeriod {
  const needs = (name: string, other: string): void => {
    if (names.has(name) && !names.has(other)) {
      throw new PatternError(`the ${name} needs the ${other}`);
    }
  };
  if (!names.has('year')) throw new PatternError('the year, yyyy, is missing');
  if (names.has('minute') && !names.has('hour')) {
    throw new PatternError('mm means minutes, which need the hour; a month is MM');
  }
  needs('day', 'month');
  needs('hour', 'day');
  needs('hour', 'minute');
  needs('second', 'minute');
  needs('offset', 'hour');
  if (names.has('quarter') && names.has('month')) {
    throw new PatternError('a quarter and a month exclude each other');
  }
  if (names.has('day')) return 'day';
  if (names.has('month')) return 'month';
  return names.has('quarter') ? 'quarter' : 'year';
}

const monthOf = (text: string): number => {
  if (/^\d/.test(text)) return Number(text);
  const start = text.slice(0, 3).toLowerCase();
  return SHORT_MONTHS.findIndex((each) => each.toLowerCase() === start) + 1;
};

function dateTimeOf(groups: Readonly<Record<string, string | undefined>>): DateTime | null {
  const { year, month, quarter, day, hour, minute, second = '00', offset = null } = groups;
  const inYear = month === undefined ? 3 * Number(quarter ?? 4) : monthOf(month);
  const last = daysIn(Number(year), inYear);
  const inMonth = day === undefined ? last : Number(day);
  if (inMonth < 1 || inMonth > last) return null;
  const date = calendarText(Number(year), inYear, inMonth);
  if (hour === undefined || minute === undefined) return { day: date, time: null, offset };
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  return { day: date, time: `${hour.padStart(2, '0')}:${minute}:${second}`, offset };
}

/** The default pattern, in which dates are stored. */
export const ISO_DAY = 'yyyy-MM-dd';

/**
 * Compiles a pattern such as `dd.MM.yyyy`, `MMM yyyy` or `yyyy'M'MM`. Month names are English and
 * case-insensitive.
 * @throws PatternError for an invalid pattern
 */
export function datePattern(pattern: string): DatePattern {
  const names = new Set<string>();
  const forms = (pattern.match(TOKEN) ?? []).map((token) => formOf(token, names));
  const period = periodOf(names);
  const form = new RegExp(`^${forms.join('')}$`, 'i');
  return {
    period,
    hasTime: names.has('hour'),
    hasOffset: names.has('offset'),
    read(text) {
      if (pattern === ISO_DAY) return isDay(text) ? { day: text, time: null, offset: null } : null;
      const groups = form.exec(text)?.groups;
      return groups ? dateTimeOf(groups) : null;
    },
  };
}

/** The last day of the period that contains a day. */
export function endOf(period: DatePeriod, day: string): string {
  if (period === 'day') return day;
  const year = Number(day.slice(0, 4));
  const month = Number(day.slice(5, 7));
  const last = { month, quarter: 3 * Math.ceil(month / 3), year: 12 }[period];
  return calendarText(year, last, daysIn(year, last));
}
