import type { Period } from '../catalog/analytics.ts';
import { calendarDay, dayNumber } from '../std/days.ts';

/** The number that stands for no day: less than that of every day. */
export const NO_DAY = -2_147_483_648;

/** The last day of a month. A month above 12 or below 1 is in another year. */
const monthEnd = (year: number, month: number): number => monthStart(year, month + 1) - 1;

const monthStart = (year: number, month: number): number => {
  const months = year * 12 + (month - 1);
  return dayNumber(Math.floor(months / 12), (((months % 12) + 12) % 12) + 1, 1);
};

/** The same day some months before, or the last day of a shorter month. */
export function monthsBefore(number: number, months: number): number {
  const { year, month, day } = calendarDay(number);
  const start = monthStart(year, month - months);
  return Math.min(start + day - 1, monthEnd(year, month - months));
}

/** 31 December of the year before. */
export const endOfYearBefore = (number: number): number =>
  dayNumber(calendarDay(number).year, 1, 1) - 1;

const MONTHS = { month: 1, quarter: 3, year: 12 } as const;

/** 2000-01-01 was a Saturday; weeks run from Monday to Sunday (ISO 8601). */
const weekStart = (number: number): number => number - ((((number + 5) % 7) + 7) % 7);

/** The first and last day of the period that contains a day. */
export function periodOf(number: number, period: Period): { start: number; end: number } {
  if (period === 'week') {
    const start = weekStart(number);
    return { start, end: start + 6 };
  }
  const { year, month } = calendarDay(number);
  const months = MONTHS[period];
  const first = month - ((month - 1) % months);
  return { start: monthStart(year, first), end: monthEnd(year, first + months - 1) };
}
