import { calendarDay, type Days, dayNumber, dayOf, dayText } from '../std/days.ts';

/*
 * Periods as text:
 *
 *   2026-06-24, 2026-06, 2026-Q2, 2026     a day, month, quarter, year
 *   2026-06-01/2026-06-30                  from a day to a day
 *   M, M-1, 4M-1, Q+1, Y                   months, quarters, years, counted from the anchor
 *   M-1:16/M:15                            from a day of a month to a day of a month
 *   S, S+1, 5S+1, 5S                       sessions, counted from the anchor
 */

/** A day of a month relative to the anchor: the last day of a month that is shorter. */
interface MonthDay {
  readonly offset: number;
  readonly day: number;
}

/** A count of sessions. Up to `offset` 0 it ends with that session, beyond it begins with it. */
export interface SessionPeriod {
  readonly kind: 'sessions';
  readonly count: number;
  /** 0 is the last session on or before the anchor, 1 the first after it. */
  readonly offset: number;
}

/** A period by the calendar. */
export type DayPeriod =
  | ({ readonly kind: 'days' } & Days)
  | {
      readonly kind: 'months';
      /** Months of a unit: 1, 3 or 12. */
      readonly months: number;
      readonly count: number;
      /** The last unit of the period, counted from that of the anchor. */
      readonly offset: number;
    }
  | { readonly kind: 'cut'; readonly from: MonthDay; readonly to: MonthDay };

export type Period = DayPeriod | SessionPeriod;

/** A text that is no period. The message says what would be right. */
export class PeriodError extends Error {
  override readonly name = 'PeriodError';
}

/** Bounds of the years of the contract. */
const YEAR_FIRST = 1800;
const YEAR_LAST = 2199;

/** Most units or sessions of a period, and most between it and the anchor. */
const COUNT_MAX = 400;

const MONTHS: Readonly<Record<string, number>> = { M: 1, Q: 3, Y: 12 };

const EXAMPLES =
  'write a day, month, quarter or year (2026-06-24, 2026-06, 2026-Q2, 2026), two days ' +
  '(2026-06-01/2026-06-30), months, quarters or years from the anchor (M-1, Q, 4M-1, ' +
  'M-1:16/M:15), or sessions (S, S+1, 5S+1)';

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const ABSOLUTE = /^(\d{4})(?:-(?:Q([1-4])|(\d{2})))?$/;
const RELATIVE = /^(\d{1,4})?([MQYS])(?:([+-])(\d{1,4}))?$/;
const CUT = /^M(?:([+-])(\d{1,4}))?:(\d{1,2})\/M(?:([+-])(\d{1,4}))?:(\d{1,2})$/;

/** The first day of a month, which may lie in another year. */
const monthStart = (year: number, month: number): number => {
  const months = year * 12 + month - 1;
  return dayNumber(Math.floor(months / 12), (((months % 12) + 12) % 12) + 1, 1);
};

/** The first day of the month some months after that of a day. */
const monthAfter = (day: number, months: number): number => {
  const { year, month } = calendarDay(day);
  return monthStart(year, month + months);
};

function checkYear(year: number): void {
  if (year >= YEAR_FIRST && year <= YEAR_LAST) return;
  throw new PeriodError(`The year must lie between ${YEAR_FIRST} and ${YEAR_LAST}`);
}

/** The day number of a real calendar day. @throws PeriodError */
export function realDay(text: string): number {
  if (!DAY.test(text)) throw new PeriodError('A day is written YYYY-MM-DD');
  checkYear(Number(text.slice(0, 4)));
  const day = dayOf(text);
  if (dayText(day) !== text) throw new PeriodError(`There is no day ${text}`);
  return day;
}

const signed = (sign: string | undefined, digits: string | undefined): number =>
  digits === undefined ? 0 : Number(`${sign}${digits}`);

function checkCount(count: number, offset: number): void {
  if (count >= 1 && count <= COUNT_MAX && Math.abs(offset) <= COUNT_MAX) return;
  throw new PeriodError(`A period has 1 to ${COUNT_MAX} units, at most ${COUNT_MAX} away`);
}

function absolutePeriod([, year = '', quarter, month]: readonly string[]): DayPeriod {
  const number = Number(year);
  checkYear(number);
  const [first, months] =
    quarter !== undefined
      ? [Number(quarter) * 3 - 2, 3]
      : month !== undefined
        ? [Number(month), 1]
        : [1, 12];
  if (first < 1 || first > 12) throw new PeriodError(`There is no month ${month}`);
  const last = monthStart(number, first + months) - 1;
  return { kind: 'days', first: monthStart(number, first), last };
}

function relativePeriod([, sent, unit = '', sign, away]: readonly string[]): Period {
  const [count, offset] = [Number(sent ?? 1), signed(sign, away)];
  checkCount(count, offset);
  const months = MONTHS[unit];
  return months === undefined
    ? { kind: 'sessions', count, offset }
    : { kind: 'months', months, count, offset };
}

function cutPeriod([, ...parts]: readonly (string | undefined)[]): DayPeriod {
  const bound = (at: number): MonthDay => ({
    offset: signed(parts[at], parts[at + 1]),
    day: Number(parts[at + 2]),
  });
  const [from, to] = [bound(0), bound(3)];
  for (const { offset, day } of [from, to]) {
    checkCount(1, offset);
    if (day < 1 || day > 31) throw new PeriodError('A day of a month is 1 to 31');
  }
  if (from.offset > to.offset || (from.offset === to.offset && from.day > to.day)) {
    throw new PeriodError('The period ends before it begins; swap its ends');
  }
  return { kind: 'cut', from, to };
}

/**
 * Parses a period.
 * @throws PeriodError that says what would be right
 */
export function parsePeriod(text: string): Period {
  if (DAY.test(text)) {
    const day = realDay(text);
    return { kind: 'days', first: day, last: day };
  }
  const [from, to, ...more] = text.split('/');
  if (from !== undefined && to !== undefined && more.length === 0 && DAY.test(from)) {
    const days = { kind: 'days', first: realDay(from), last: realDay(to) } as const;
    if (days.first > days.last) {
      throw new PeriodError('The period ends before it begins; swap its ends');
    }
    return days;
  }
  const absolute = ABSOLUTE.exec(text);
  if (absolute) return absolutePeriod(absolute);
  const relative = RELATIVE.exec(text);
  if (relative) return relativePeriod(relative);
  const cut = CUT.exec(text);
  if (cut) return cutPeriod(cut);
  throw new PeriodError(`This is no period; ${EXAMPLES}`);
}

/** True if the days of a period depend on an anchor. */
export const isRelative = ({ kind }: Period): boolean => kind !== 'days';

/** The last day of a month for a day that the month does not have. */
const dayInMonth = (anchor: number, { offset, day }: MonthDay): number =>
  Math.min(monthAfter(anchor, offset) + day - 1, monthAfter(anchor, offset + 1) - 1);

/**
 * The days of a period by the calendar, both ends inclusive.
 * @param anchor a day number; ignored by an absolute period
 */
export function daysOfPeriod(period: DayPeriod, anchor: number): Days {
  if (period.kind === 'days') return { first: period.first, last: period.last };
  if (period.kind === 'cut') {
    return { first: dayInMonth(anchor, period.from), last: dayInMonth(anchor, period.to) };
  }
  const { months, count, offset } = period;
  const { year, month } = calendarDay(anchor);
  // The first month of the anchor's unit.
  const unit = month - ((month - 1) % months);
  const next = unit + (offset + 1) * months;
  return {
    first: monthStart(year, next - count * months),
    last: monthStart(year, next) - 1,
  };
}

/** Some sessions: indexes from `from` up to `to`, and the sessions that the series lacks. */
export interface SessionIndexes {
  readonly from: number;
  readonly to: number;
  /** Sessions before the first of the series. */
  readonly before: number;
  /** Sessions after the last of the series: they are not published yet. */
  readonly after: number;
}

/** The number of days up to and with a day. @param days ascending */
export function countUpTo(days: ArrayLike<number>, day: number): number {
  let [low, high] = [0, days.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((days[middle] as number) <= day) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sessions of a period. @param days the days of all sessions that it may use, ascending */
export function sessionsOfPeriod(
  { count, offset }: SessionPeriod,
  anchor: number,
  days: ArrayLike<number>,
): SessionIndexes {
  const last = countUpTo(days, anchor) - 1;
  const from = offset > 0 ? last + offset : last + offset - count + 1;
  const to = from + count;
  const clipped = (index: number): number => Math.min(Math.max(index, 0), days.length);
  return {
    from: clipped(from),
    to: clipped(to),
    before: Math.min(count, Math.max(0, -from)),
    after: Math.min(count, Math.max(0, to - days.length)),
  };
}
