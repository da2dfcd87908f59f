/** First day that a value may have; the last is tomorrow. */
export const DATE_MIN = '1800-01-01';

/** The months in English. */
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

/** Days of a month, which counts from 1; 0 when there is no such month. */
export const daysIn = (year: number, month: number): number =>
  month === 2 && isLeap(year)
    ? 29
    : ([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0);

/** Whether a text is a real day of the calendar, as YYYY-MM-DD. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = Number(text.slice(8));
  return day > 0 && day <= daysIn(Number(text.slice(0, 4)), Number(text.slice(5, 7)));
}

const two = (value: number): string => String(value).padStart(2, '0');

/** A day as YYYY-MM-DD; the month counts from 1. */
export const dayText = (year: number, month: number, day: number): string =>
  `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;

/** The day that lies some days after another. */
export const dayAfter = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);

const TIME = /^T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether a text is an instant of RFC 3339, to at most the microsecond. */
export const isInstant = (text: string): boolean =>
  isDay(text.slice(0, 10)) && TIME.test(text.slice(10));

/**
 * An instant of RFC 3339 in UTC, with the digits of its fraction as they were. PostgreSQL does not
 * read every offset that RFC 3339 allows.
 */
export function inUtc(instant: string): string {
  if (instant.endsWith('Z')) return instant;
  const seconds = new Date(Date.parse(instant.slice(0, 19) + instant.slice(-6))).toISOString();
  return `${seconds.slice(0, 19)}${instant.slice(19, -6)}Z`;
}
