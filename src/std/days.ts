/* Day numbers count from 2000-01-01 in the proleptic Gregorian calendar, as in PostgreSQL. */

/** Inclusive bounds of some days, as day numbers; an infinite bound is open. */
export interface Days {
  readonly first: number;
  readonly last: number;
}

/** All days. */
export const ALL_DAYS: Days = { first: -Infinity, last: Infinity };

/** The number of days; Infinity if a bound is open. */
export const daysIn = ({ first, last }: Days): number => 1 + last - first;

interface CalendarDay {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  /** 1 to 31. */
  readonly day: number;
}

const DAYS_PER_ERA = 146_097;
const YEARS_PER_ERA = 400;

/** Days from 0000-03-01 to 2000-01-01. Years that start in March end with the leap day. */
const EPOCH = 730_425;

/** The day number of a calendar day. */
export function dayNumber(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / YEARS_PER_ERA);
  const yearOfEra = marchYear - era * YEARS_PER_ERA;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  return era * DAYS_PER_ERA + yearOfEra * 365 + leapDays + dayOfYear - EPOCH;
}

/** The day number of `YYYY-MM-DD`. */
export const dayOf = (text: string): number =>
  dayNumber(Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10)));

/** The calendar day of a day number. */
export function calendarDay(number: number): CalendarDay {
  const days = number + EPOCH;
  const era = Math.floor(days / DAYS_PER_ERA);
  const dayOfEra = days - era * DAYS_PER_ERA;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  const dayOfYear = dayOfEra - (yearOfEra * 365 + leapDays);
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: era * YEARS_PER_ERA + yearOfEra + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

const pad = (value: number, width: number): string => String(value).padStart(width, '0');

/** A calendar day as `YYYY-MM-DD`. */
export const calendarText = (year: number, month: number, day: number): string =>
  `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;

/** A day number as `YYYY-MM-DD`. */
export function dayText(number: number): string {
  const { year, month, day } = calendarDay(number);
  return calendarText(year, month, day);
}

/** A bound of days as `YYYY-MM-DD`; null if it is open. */
export const boundText = (bound: number): string | null =>
  Math.abs(bound) === Infinity ? null : dayText(bound);

/** The day a number of days later; earlier if the number is negative. */
export const dayAfter = (day: string, days: number): string => dayText(dayOf(day) + days);
