import { calendarDay, dayNumber } from '../std/days.ts';

/*
 * The rules of a publication calendar, and the days that they name. Day numbers count from
 * 2000-01-01, as in `src/std/days.ts`.
 */

export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** A day of a month. */
export type MonthDay =
  /** 1 to 28. */
  | number
  | 'last'
  /** The n-th working day; -1 is the last. */
  | { readonly workingDay: number }
  /** The n-th of a weekday, 1 to 4; -1 is the last. */
  | { readonly weekday: Weekday; readonly nth: number };

/** The rule of due days, as a calendar file and the database state it. */
export type Rule =
  /** Monday to Friday. */
  | 'daily'
  | { readonly weekly: readonly Weekday[] }
  /** Every 14 days, before and after this day (`YYYY-MM-DD`). */
  | { readonly fortnightly: string }
  | { readonly monthly: MonthDay }
  /** In the first, second or third month of each quarter. */
  | { readonly quarterly: { readonly month: 1 | 2 | 3; readonly day: MonthDay } };

/** 2000-01-01 was a Saturday. */
const SATURDAY = 5;

/** 0 for Monday to 6 for Sunday. */
export const weekdayOf = (day: number): number => (((day + SATURDAY) % 7) + 7) % 7;

/** True for a Saturday or Sunday. */
export const isWeekend = (day: number): boolean => weekdayOf(day) >= SATURDAY;

/** A calendar month, counted from the year 0. */
const monthOf = (day: number): number => {
  const { year, month } = calendarDay(day);
  return year * 12 + month - 1;
};

const firstOf = (month: number): number => dayNumber(Math.floor(month / 12), (month % 12) + 1, 1);

/** First and last day of the month of a day. */
export const monthAround = (day: number): { readonly first: number; readonly last: number } => {
  const month = monthOf(day);
  return { first: firstOf(month), last: firstOf(month + 1) - 1 };
};

/** True if a day is worked; null if that is not known. */
type IsOpen = (day: number) => boolean | null;

/** A day that a rule names; null if it depends on days of which nothing is known. */
interface NamedDay {
  readonly day: number | null;
  /** The last day on which it could be, by which it is sorted. */
  readonly latest: number;
}

function nthWorkingDay(first: number, last: number, n: number, isOpen: IsOpen): NamedDay[] {
  const step = n > 0 ? 1 : -1;
  let left = Math.abs(n);
  for (let day = n > 0 ? first : last; day >= first && day <= last; day += step) {
    const open = isOpen(day);
    if (open === null) return [{ day: null, latest: last }];
    if (open) left -= 1;
    if (left === 0) return [{ day, latest: day }];
  }
  return [];
}

function dayInMonth(month: number, wanted: MonthDay, isOpen: IsOpen): NamedDay[] {
  const first = firstOf(month);
  const last = firstOf(month + 1) - 1;
  const exactly = (day: number): NamedDay[] => [{ day, latest: day }];
  if (wanted === 'last') return exactly(last);
  if (typeof wanted === 'number') return exactly(first + wanted - 1);
  if ('workingDay' in wanted) return nthWorkingDay(first, last, wanted.workingDay, isOpen);
  const weekday = WEEKDAYS.indexOf(wanted.weekday);
  return wanted.nth > 0
    ? exactly(first + ((weekday - weekdayOf(first) + 7) % 7) + 7 * (wanted.nth - 1))
    : exactly(last - ((weekdayOf(last) - weekday + 7) % 7));
}

/** The days of each month of a range, of which `months` are wanted. */
function inMonths(
  first: number,
  last: number,
  day: MonthDay,
  isWanted: (month: number) => boolean,
  isOpen: IsOpen,
): NamedDay[] {
  const days: NamedDay[] = [];
  for (let month = monthOf(first); month <= monthOf(last); month += 1) {
    if (isWanted(month)) days.push(...dayInMonth(month, day, isOpen));
  }
  return days.filter(({ latest }) => latest >= first && latest <= last);
}

function everyDay(first: number, last: number, isNamed: (day: number) => boolean): NamedDay[] {
  const days: NamedDay[] = [];
  for (let day = first; day <= last; day += 1) {
    if (isNamed(day)) days.push({ day, latest: day });
  }
  return days;
}

/**
 * The days that a rule names between two days, both included, in their order. Holidays are among
 * them: only "the n-th working day" depends on which days are open.
 * @param isMakeUp true for a day of a weekend that is worked; `daily` names it too
 * @param fortnight a day of a fortnightly rule, as a day number; not read by other rules
 */
export function namedDays(
  rule: Rule,
  first: number,
  last: number,
  {
    isOpen,
    isMakeUp,
    fortnight,
  }: {
    readonly isOpen: IsOpen;
    readonly isMakeUp: (day: number) => boolean;
    readonly fortnight: number;
  },
): readonly NamedDay[] {
  if (rule === 'daily') return everyDay(first, last, (day) => !isWeekend(day) || isMakeUp(day));
  if ('weekly' in rule) {
    const weekdays = rule.weekly.map((each) => WEEKDAYS.indexOf(each));
    return everyDay(first, last, (day) => weekdays.includes(weekdayOf(day)));
  }
  if ('fortnightly' in rule) {
    return everyDay(first, last, (day) => (day - fortnight) % 14 === 0);
  }
  if ('monthly' in rule) return inMonths(first, last, rule.monthly, () => true, isOpen);
  const { month: place, day } = rule.quarterly;
  return inMonths(first, last, day, (month) => (month % 3) + 1 === place, isOpen);
}

/**
 * True if the rule names days by their numbers, so that a weekend closes them. A weekday that a
 * rule names is due on weekends too, if it is one.
 */
export function isClosedByWeekends(rule: Rule): boolean {
  if (rule === 'daily' || 'weekly' in rule || 'fortnightly' in rule) return false;
  const day = 'monthly' in rule ? rule.monthly : rule.quarterly.day;
  return day === 'last' || typeof day === 'number';
}
