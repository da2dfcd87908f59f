// Calendar days as text, `YYYY-MM-DD`, and as whole days since 1970-01-01.

const DAY_MS = 86_400_000;

const PATTERN = /^(\d{4})-(\d{2})-(\d{2})$/;

/** Days since 1970-01-01 of a date. */
export const dayOf = (date) =>
  Date.UTC(+date.slice(0, 4), +date.slice(5, 7) - 1, +date.slice(8, 10)) / DAY_MS;

/** The date of a day. */
export const dateOf = (day) => new Date(day * DAY_MS).toISOString().slice(0, 10);

/** True for an existing day within the years that the service accepts. */
export function isDate(text) {
  const [, year] = PATTERN.exec(text) ?? [];
  if (year === undefined || +year < 1800 || +year > 2199) return false;
  return dateOf(dayOf(text)) === text;
}

/** Today in UTC, like all dates of the service. */
export const today = () => new Date().toISOString().slice(0, 10);

/** 0 for Sunday to 6 for Saturday. */
export const weekdayOf = (day) => (((day + 4) % 7) + 7) % 7;

/** The Friday before today. */
export function lastFriday() {
  const day = dayOf(today());
  return dateOf(day - ((weekdayOf(day) + 2) % 7 || 7));
}

/** The same day of a later or earlier month, or the last day of a shorter month. */
export function monthsFrom(day, months) {
  const date = new Date(day * DAY_MS);
  const first = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
  const next = new Date(first);
  const last = Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0);
  return Math.min(first / DAY_MS + date.getUTCDate() - 1, last / DAY_MS);
}

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/;

/** True for an instant that `asOf` accepts. */
export const isInstant = (text) => INSTANT.test(text) && isDate(text.slice(0, 10));

/** The last instant of a day; an instant is returned unchanged. */
export const endOf = (text) => (isDate(text) ? `${text}T23:59:59.999999Z` : text);

/** An instant to the minute, such as `2026-06-30 16:00 UTC`. */
export const minuteOf = (instant) => `${instant.slice(0, 10)} ${instant.slice(11, 16)} UTC`;

/** The time of day of this browser's clock, to the second. */
export const clockTime = (date) => date.toTimeString().slice(0, 8);

/**
 * The day from which a new calculation counts: today, or the day after the last whole month of a price
 * that ends earlier.
 * @param last the day of its newest value, or null
 */
export function anchorFor(last) {
  const day = dayOf(today());
  const before = dateOf(monthsFrom(day, -1)).slice(0, 7);
  if (!last || last.slice(0, 7) >= before) return today();
  return dateOf(monthsFrom(dayOf(`${last.slice(0, 7)}-01`), 1));
}
