import type { NameOf } from './reference/values.ts';

/** The sample series and rates cover these days, both included. */
export const FIRST_DAY = '2021-01-01';
export const LAST_DAY = '2026-06-30';

/** Number of a calendar day, counted from 1970-01-01. */
export const dayOf = (date: string): number => Date.parse(`${date}T00:00:00Z`) / 86_400_000;

/** The calendar day of a number, as `YYYY-MM-DD`. */
export const dateOf = (day: number): string =>
  new Date(day * 86_400_000).toISOString().slice(0, 10);

/** 0 for Sunday to 6 for Saturday; 1970-01-01 was a Thursday. */
const weekdayOf = (day: number): number => (day + 4) % 7;
const TUESDAY = 2;
const THURSDAY = 4;

export const isWeekday = (day: number): boolean => weekdayOf(day) !== 0 && weekdayOf(day) !== 6;

const daysOf = (first: string, last: string): number[] => {
  const from = dayOf(first);
  return Array.from({ length: dayOf(last) - from + 1 }, (_, index) => from + index);
};

/** Every Monday to Friday of the sample period. */
export const WEEKDAYS: readonly number[] = daysOf(FIRST_DAY, LAST_DAY).filter(isWeekday);

const YEARS = [2021, 2022, 2023, 2024, 2025, 2026];
const EASTER_SUNDAYS = [
  '2021-04-04',
  '2022-04-17',
  '2023-04-09',
  '2024-03-31',
  '2025-04-20',
  '2026-04-05',
];

/** Days on which the euro payment system rests: no reference rates, and few markets are open. */
const TARGET: ReadonlySet<number> = new Set([
  ...YEARS.flatMap((year) =>
    ['01-01', '05-01', '12-25', '12-26'].map((day) => `${year}-${day}`),
  ).map(dayOf),
  ...EASTER_SUNDAYS.flatMap((sunday) => [dayOf(sunday) - 2, dayOf(sunday) + 1]),
]);

/** Public holidays of China, first and last day; the lunar new year makes the longest gap. */
const CHINA: ReadonlySet<number> = new Set(
  `2021-01-01 2021-01-03, 2021-02-11 2021-02-17, 2021-04-03 2021-04-05, 2021-05-01 2021-05-05,
   2021-06-12 2021-06-14, 2021-09-19 2021-09-21, 2021-10-01 2021-10-07,
   2022-01-01 2022-01-03, 2022-01-31 2022-02-06, 2022-04-03 2022-04-05, 2022-04-30 2022-05-04,
   2022-06-03 2022-06-05, 2022-09-10 2022-09-12, 2022-10-01 2022-10-07,
   2022-12-31 2023-01-02, 2023-01-21 2023-01-27, 2023-04-05 2023-04-05, 2023-04-29 2023-05-03,
   2023-06-22 2023-06-24, 2023-09-29 2023-10-06,
   2023-12-30 2024-01-01, 2024-02-09 2024-02-17, 2024-04-04 2024-04-06, 2024-05-01 2024-05-05,
   2024-06-08 2024-06-10, 2024-09-15 2024-09-17, 2024-10-01 2024-10-07,
   2025-01-01 2025-01-01, 2025-01-28 2025-02-04, 2025-04-04 2025-04-06, 2025-05-01 2025-05-05,
   2025-05-31 2025-06-02, 2025-10-01 2025-10-08,
   2026-01-01 2026-01-03, 2026-02-15 2026-02-23, 2026-04-04 2026-04-06, 2026-05-01 2026-05-05,
   2026-06-19 2026-06-21`
    .split(',')
    .map((range) => range.trim().split(' '))
    .flatMap(([first = '', last = '']) => daysOf(first, last)),
);

export const HOLIDAYS = { china: CHINA, target: TARGET } as const;
export type Calendar = keyof typeof HOLIDAYS;

const openDays = (calendar: Calendar): number[] =>
  WEEKDAYS.filter((day) => !HOLIDAYS[calendar].has(day));

/** The days of the sample period on which the markets of a calendar are open. */
export const OPEN_DAYS: Readonly<Record<Calendar, readonly number[]>> = {
  china: openDays('china'),
  target: openDays('target'),
};

const monthOf = (day: number): string => dateOf(day).slice(0, 7);

/** The last open day of each month: the one whose successor lies in another month. */
const monthEnds = (open: readonly number[]): number[] =>
  open.filter((day, index) => {
    const next = open[index + 1];
    return next === undefined || monthOf(next) !== monthOf(day);
  });

const MONTH_ENDS: Readonly<Record<Calendar, readonly number[]>> = {
  china: monthEnds(OPEN_DAYS.china),
  target: monthEnds(OPEN_DAYS.target),
};
const QUARTER_ENDS = new Set(['03', '06', '09', '12']);

/**
 * The days on which a price of a frequency is assessed within the sample period, from its launch
 * on. A holiday gives no value and moves nothing, but a last working day is never a holiday.
 */
export function assessmentDays(
  frequency: NameOf<'frequency'>,
  calendar: Calendar,
  launched: string,
): number[] {
  const launch = dayOf(launched);
  const open = OPEN_DAYS[calendar];
  const ends = MONTH_ENDS[calendar];
  const rules: Record<NameOf<'frequency'>, () => readonly number[]> = {
    Daily: () => open,
    'Twice weekly': () => open.filter((day) => [TUESDAY, THURSDAY].includes(weekdayOf(day))),
    Weekly: () => open.filter((day) => weekdayOf(day) === THURSDAY),
    Fortnightly: () => open.filter((day) => (day - launch) % 14 === 0),
    Monthly: () => ends,
    Quarterly: () => ends.filter((day) => QUARTER_ENDS.has(dateOf(day).slice(5, 7))),
    Annual: () =>
      YEARS.map((year) => dayOf(`${year}-12-31`)).filter((day) => day <= dayOf(LAST_DAY)),
  };
  return rules[frequency]().filter((day) => day >= launch);
}
