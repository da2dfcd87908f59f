import t from 'tap';
import type { Period } from '../../src/catalog/analytics.ts';
import { endOfYearBefore, monthsBefore, periodOf } from '../../src/conversion/calendar.ts';
import { calendarDay, dayNumber, dayText } from '../../src/std/days.ts';
import { dayOf } from './support.ts';

const DAY_MS = 86_400_000;

const period = (date: string, name: Period): string => {
  const { start, end } = periodOf(dayOf(date), name);
  return `${dayText(start)} ${dayText(end)}`;
};

t.test('every day from 1800 to 2199 has the number that a Date gives it', async (t) => {
  const epoch = Date.UTC(2000, 0, 1);
  const first = (Date.UTC(1800, 0, 1) - epoch) / DAY_MS;
  const last = (Date.UTC(2199, 11, 31) - epoch) / DAY_MS;
  let wrong = 0;
  for (let number = first; number <= last; number += 1) {
    const date = new Date(epoch + number * DAY_MS);
    const { year, month, day } = calendarDay(number);
    if (dayText(number) !== date.toISOString().slice(0, 10)) wrong += 1;
    if (dayNumber(year, month, day) !== number) wrong += 1;
    const { start, end } = periodOf(number, 'week');
    const monday = new Date(epoch + start * DAY_MS).getUTCDay() === 1;
    if (!monday || end - start !== 6 || number < start || number > end) wrong += 1;
  }
  t.equal(wrong, 0);
});

t.test('weeks run from Monday to Sunday, across years and in years of 53 weeks', async (t) => {
  t.equal(period('2020-12-31', 'week'), '2020-12-28 2021-01-03', 'week 53 of 2020');
  t.equal(period('2021-01-03', 'week'), '2020-12-28 2021-01-03');
  t.equal(period('2021-01-04', 'week'), '2021-01-04 2021-01-10', 'week 1 of 2021');
  t.equal(period('2024-12-30', 'week'), '2024-12-30 2025-01-05', 'week 1 of 2025');
  t.equal(period('1999-12-31', 'week'), '1999-12-27 2000-01-02');
});

t.test('months, quarters and years are calendar ones, leap years included', async (t) => {
  t.equal(period('2024-02-10', 'month'), '2024-02-01 2024-02-29');
  t.equal(period('1900-02-10', 'month'), '1900-02-01 1900-02-28');
  t.equal(period('2000-02-29', 'month'), '2000-02-01 2000-02-29');
  t.equal(period('2023-12-31', 'month'), '2023-12-01 2023-12-31');
  t.equal(period('2023-11-30', 'quarter'), '2023-10-01 2023-12-31');
  t.equal(period('2023-04-01', 'quarter'), '2023-04-01 2023-06-30');
  t.equal(period('2024-12-31', 'year'), '2024-01-01 2024-12-31');
});

t.test('months before keep the day, or end with a shorter month', async (t) => {
  const before = (date: string, months: number) => dayText(monthsBefore(dayOf(date), months));
  t.equal(before('2024-03-31', 1), '2024-02-29');
  t.equal(before('2023-03-31', 1), '2023-02-28');
  t.equal(before('2024-05-31', 3), '2024-02-29');
  t.equal(before('2024-08-31', 6), '2024-02-29');
  t.equal(before('2024-02-29', 12), '2023-02-28');
  t.equal(before('2024-01-15', 1), '2023-12-15');
  t.equal(before('2024-03-15', 12), '2023-03-15');
  t.equal(before('2024-02-29', 1), '2024-01-29', 'an end of month is a day like any other');
});

t.test('the year to date starts from 31 December of the year before', async (t) => {
  t.equal(dayText(endOfYearBefore(dayOf('2024-01-01'))), '2023-12-31');
  t.equal(dayText(endOfYearBefore(dayOf('2024-12-31'))), '2023-12-31');
});
