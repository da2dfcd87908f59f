/** First valid date of a value; the last is tomorrow. */
export const DATE_MIN = '1800-01-01';

/** English month names. */
export const MONTHS: readonly string[] = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);

/** Number of days of a month, counted from 1; 0 for an invalid month. */
export const daysIn = (year: number, month: number): number =>
  month === 2 && isLeap(year)
    ? 29
    : ([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0);

/** True if a text is a real calendar day, YYYY-MM-DD. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = Number(text.slice(8));
  return day > 0 && day <= daysIn(Number(text.slice(0, 4)), Number(text.slice(5, 7)));
}

/** 2000-01-01T00:00Z, from which PostgreSQL counts. */
const EPOCH_MS = 946_684_800_000;

/** Microseconds from 2000-01-01T00:00Z to an instant in UTC, as `inUtc` returns it. */
export function microsOf(instant: string): number {
  const fraction = instant.slice(20, -1).padEnd(6, '0');
  return 1_000 * (Date.parse(`${instant.slice(0, 19)}Z`) - EPOCH_MS) + Number(fraction);
}

const TIME = /^T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$/;

/** True if a text is an RFC 3339 instant with at most microseconds. */
export const isInstant = (text: string): boolean =>
  isDay(text.slice(0, 10)) && TIME.test(text.slice(10));

/**
 * Converts an RFC 3339 instant to UTC and keeps the digits of its fraction. PostgreSQL does not
 * accept every offset of RFC 3339.
 */
export function inUtc(instant: string): string {
  if (instant.endsWith('Z')) return instant;
  const seconds = new Date(Date.parse(instant.slice(0, 19) + instant.slice(-6))).toISOString();
  return `${seconds.slice(0, 19)}${instant.slice(19, -6)}Z`;
}
