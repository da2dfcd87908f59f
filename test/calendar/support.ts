import { Calendar } from '../../src/calendar/calendar.ts';
import type { CalendarDefinition, HolidayList } from '../../src/calendar/definition.ts';
import type { MonthDay, Rule } from '../../src/calendar/rule.ts';
import { dayOf, dayText } from '../../src/std/days.ts';

/** A list that knows some years and closes some days. */
export const listOf = (
  days: Readonly<Record<string, string>>,
  { from = '2020-01-01', until = '2029-12-31', workingDays = [] as readonly string[] } = {},
): HolidayList => ({
  source: 'a test',
  from,
  until,
  days: Object.entries(days)
    .map(([date, name]) => ({ date, name }))
    .sort((one, other) => (one.date < other.date ? -1 : 1)),
  workingDays,
});

export const calendarOf = (
  rule: Rule,
  list: HolidayList | null = null,
  more: Partial<CalendarDefinition> = {},
): Calendar =>
  new Calendar(
    {
      rule,
      at: '16:00',
      zone: 'Europe/London',
      holidays: list === null ? null : 'list',
      policy: 'skip',
      makeUpDays: false,
      ...more,
    },
    list,
  );

/** The due days between two days, as texts. */
export const duesOf = (calendar: Calendar, first: string, last: string): string[] =>
  calendar
    .dueDays(dayOf(first), dayOf(last))
    .flatMap(({ due }) => (due === null ? [] : [dayText(due)]));

export const nextOf = (calendar: Calendar, after: string): string | null => {
  const { day } = calendar.nextAfter(dayOf(after));
  return day === null ? null : dayText(day);
};

/*
 * A second implementation of due days: it asks of every single day whether the rule names it, by
 * the fields of a Date, and lists the days in question instead of stepping through them.
 */

const NAMES = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
const dateOf = (day: string): Date => new Date(`${day}T00:00:00Z`);
const textOf = (date: Date): string => date.toISOString().slice(0, 10);
const plus = (day: string, days: number): string => {
  const date = dateOf(day);
  date.setUTCDate(date.getUTCDate() + days);
  return textOf(date);
};
const nameOf = (day: string): string => NAMES[dateOf(day).getUTCDay()] ?? '';
const isWeekend = (day: string): boolean => ['saturday', 'sunday'].includes(nameOf(day));

/** All days of the month of a day. */
function monthOf(day: string): string[] {
  const last = new Date(Date.UTC(Number(day.slice(0, 4)), Number(day.slice(5, 7)), 0)).getUTCDate();
  return Array.from(
    { length: last },
    (_, index) => `${day.slice(0, 8)}${String(index + 1).padStart(2, '0')}`,
  );
}

interface Oracle {
  readonly rule: Rule;
  readonly list: HolidayList;
  readonly policy: CalendarDefinition['policy'];
  readonly makeUpDays: boolean;
}

const holidayOn = ({ list }: Oracle, day: string): string | undefined =>
  list.days.find(({ date }) => date === day)?.name;
const isMakeUp = ({ list, makeUpDays }: Oracle, day: string): boolean =>
  makeUpDays && list.workingDays.includes(day);
const isOpen = (oracle: Oracle, day: string): boolean =>
  isMakeUp(oracle, day) || (!isWeekend(day) && holidayOn(oracle, day) === undefined);

function isMonthDay(oracle: Oracle, wanted: MonthDay, day: string): boolean {
  const days = monthOf(day);
  if (wanted === 'last') return days.at(-1) === day;
  if (typeof wanted === 'number') return Number(day.slice(8)) === wanted;
  if ('workingDay' in wanted) {
    const open = days.filter((each) => isOpen(oracle, each));
    return open.at(wanted.workingDay > 0 ? wanted.workingDay - 1 : wanted.workingDay) === day;
  }
  const same = days.filter((each) => nameOf(each) === wanted.weekday);
  return same.at(wanted.nth > 0 ? wanted.nth - 1 : wanted.nth) === day;
}

function isNamed(oracle: Oracle, day: string): boolean {
  const { rule } = oracle;
  if (rule === 'daily') return !isWeekend(day) || isMakeUp(oracle, day);
  if ('weekly' in rule) return rule.weekly.includes(nameOf(day) as never);
  if ('fortnightly' in rule) {
    return (dateOf(day).getTime() - dateOf(rule.fortnightly).getTime()) % (14 * 86_400_000) === 0;
  }
  if ('monthly' in rule) return isMonthDay(oracle, rule.monthly, day);
  const month = Number(day.slice(5, 7));
  return (
    ((month - 1) % 3) + 1 === rule.quarterly.month && isMonthDay(oracle, rule.quarterly.day, day)
  );
}

const isByNumber = (rule: Rule): boolean => {
  if (rule === 'daily' || 'weekly' in rule || 'fortnightly' in rule) return false;
  const day = 'monthly' in rule ? rule.monthly : rule.quarterly.day;
  return day === 'last' || typeof day === 'number';
};

const isClosed = (oracle: Oracle, day: string): boolean =>
  holidayOn(oracle, day) !== undefined ||
  (isByNumber(oracle.rule) && isWeekend(day) && !isMakeUp(oracle, day));

/** The day on which a closed day is due; null if it is skipped. */
function movedTo(oracle: Oracle, day: string): string | null {
  const { policy } = oracle;
  if (policy === 'skip') return null;
  if (policy === 'carry') return day;
  if (policy === 'preceding') {
    const before = Array.from({ length: 31 }, (_, index) => plus(day, -1 - index));
    return before.find((each) => isOpen(oracle, each)) ?? null;
  }
  const distance = (each: string): number =>
    Math.abs(dateOf(each).getTime() - dateOf(day).getTime());
  // Days before sort first, so that they win a tie.
  const [nearest] = monthOf(day)
    .filter((each) => isOpen(oracle, each))
    .sort((one, other) => distance(one) - distance(other) || (one < other ? -1 : 1));
  return nearest ?? null;
}

/** The due days between two days, sorted. */
export function oracleDues(oracle: Oracle, first: string, last: string): string[] {
  const dues = new Set<string>();
  for (let day = plus(first, -40); day <= plus(last, 40); day = plus(day, 1)) {
    if (!isNamed(oracle, day)) continue;
    const due = isClosed(oracle, day) ? movedTo(oracle, day) : day;
    if (due !== null && due >= first && due <= last) dues.add(due);
  }
  return [...dues].sort();
}
