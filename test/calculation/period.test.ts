import fc from 'fast-check';
import t from 'tap';
import {
  type DayPeriod,
  daysOfPeriod,
  parsePeriod,
  type SessionPeriod,
  sessionsOfPeriod,
} from '../../src/calculation/period.ts';
import { dayText } from '../../src/std/days.ts';
import { dayOf } from '../conversion/support.ts';

/*
 * A second implementation: periods by `Date` in UTC, and sessions by a search from the anchor.
 */

const utc = (year: number, month: number, day: number): Date => {
  const date = new Date(Date.UTC(2000, 0, 1));
  date.setUTCFullYear(year, month - 1, day);
  return date;
};
const text = (date: Date): string => date.toISOString().slice(0, 10);

/** The last day of the month that is some months after a day. */
const lastOfMonth = (anchor: Date, months: number): Date =>
  utc(anchor.getUTCFullYear(), anchor.getUTCMonth() + 2 + months, 0);

const cutDay = (anchor: Date, months: number, day: number): Date => {
  const last = lastOfMonth(anchor, months);
  return utc(last.getUTCFullYear(), last.getUTCMonth() + 1, Math.min(day, last.getUTCDate()));
};

/** A period as a text, and its days by the second implementation. */
interface Expected {
  readonly text: string;
  readonly days: (anchor: Date) => readonly [string, string];
}

const count = fc.integer({ min: 1, max: 40 });
const offset = fc.integer({ min: -40, max: 40 });
const signed = (value: number): string => (value === 0 ? '' : value > 0 ? `+${value}` : `${value}`);

/** A part of a text that may be left out if it is its default. */
const counted = (value: number): string => (value === 1 ? '' : String(value));

const units = fc
  .record({ unit: fc.constantFrom('M', 'Q', 'Y'), count, offset })
  .map(({ unit, count: units, offset: away }): Expected => {
    const months = { M: 1, Q: 3, Y: 12 }[unit] as number;
    return {
      text: `${counted(units)}${unit}${signed(away)}`,
      days: (anchor) => {
        const inUnit = anchor.getUTCMonth() % months;
        const last = lastOfMonth(anchor, months - 1 - inUnit + away * months);
        const first = utc(last.getUTCFullYear(), last.getUTCMonth() + 2 - units * months, 1);
        return [text(first), text(last)];
      },
    };
  });

const cuts = fc
  .record({ from: offset, span: fc.nat(5), first: fc.integer({ min: 1, max: 31 }), last: count })
  .map(({ from, span, first, last }): Expected => {
    const to = span === 0 ? from : from + span;
    const end = span === 0 ? Math.max(first, Math.min(31, last)) : Math.min(31, last);
    return {
      text: `M${signed(from)}:${first}/M${signed(to)}:${end}`,
      days: (anchor) => [text(cutDay(anchor, from, first)), text(cutDay(anchor, to, end))],
    };
  });

const dates = fc
  .date({ min: new Date('1800-01-01'), max: new Date('2199-12-31'), noInvalidDate: true })
  .map((date) => new Date(text(date)));

const absolutes = fc
  .record({ date: dates, form: fc.constantFrom('day', 'month', 'quarter', 'year', 'range'), count })
  .map(({ date, form, count: more }): Expected => {
    const day = text(date);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1];
    const quarter = Math.ceil(month / 3);
    if (form === 'day') return { text: day, days: () => [day, day] };
    if (form === 'month') {
      return {
        text: day.slice(0, 7),
        days: () => [`${day.slice(0, 7)}-01`, text(utc(year, month + 1, 0))],
      };
    }
    if (form === 'year') {
      return { text: day.slice(0, 4), days: () => [`${year}-01-01`, `${year}-12-31`] };
    }
    if (form === 'quarter') {
      const first = text(utc(year, quarter * 3 - 2, 1));
      return {
        text: `${day.slice(0, 4)}-Q${quarter}`,
        days: () => [first, text(utc(year, quarter * 3 + 1, 0))],
      };
    }
    const to = new Date(date.getTime() + more * 86_400_000);
    const last = to.getUTCFullYear() > 2199 ? day : text(to);
    return { text: `${day}/${last}`, days: () => [day, last] };
  });

t.test('10,000 periods have the days of a second implementation', async (t) => {
  let differences = 0;
  let tried = 0;
  const periods = fc.oneof(units, cuts, absolutes);
  fc.assert(
    fc.property(periods, dates, (expected, anchor) => {
      const { first, last } = daysOfPeriod(
        parsePeriod(expected.text) as DayPeriod,
        dayOf(text(anchor)),
      );
      const [from, to] = expected.days(anchor);
      const found = [dayText(first), dayText(last)];
      tried += 1;
      if (found[0] === from && found[1] === to) return;
      differences += 1;
      t.same(found, [from, to], `${expected.text} at ${text(anchor)}`);
    }),
    { numRuns: 10_000 },
  );
  t.equal(tried, 10_000);
  t.equal(differences, 0);
});

/** The sessions of a period, by lists of those up to the anchor and of those after it. */
function expectedSessions(
  days: readonly number[],
  anchor: number,
  { count, offset }: SessionPeriod,
): readonly number[] {
  if (offset > 0) return days.filter((day) => day > anchor).slice(offset - 1, offset - 1 + count);
  const upTo = days.filter((day) => day <= anchor);
  const ends = upTo.slice(0, Math.max(0, upTo.length + offset));
  return ends.slice(Math.max(0, ends.length - count));
}

t.test('10,000 periods of sessions find those of a search from the anchor', async (t) => {
  const days = fc.uniqueArray(fc.integer({ min: 0, max: 80 }), { maxLength: 40 });
  fc.assert(
    fc.property(
      days,
      fc.integer({ min: -5, max: 90 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: -8, max: 8 }),
      (sent, anchor, sessions, away) => {
        const sorted = [...sent].sort((a, b) => a - b);
        const period = parsePeriod(`${counted(sessions)}S${signed(away)}`) as SessionPeriod;
        const { from, to, before, after } = sessionsOfPeriod(period, anchor, sorted);
        const expected = expectedSessions(sorted, anchor, period);
        if (JSON.stringify(sorted.slice(from, to)) !== JSON.stringify(expected)) {
          t.same(sorted.slice(from, to), expected, JSON.stringify([sorted, anchor, period]));
        }
        if (to - from + before + after !== sessions) t.fail('each session is there or lacking');
      },
    ),
    { numRuns: 10_000 },
  );
});

const around = (period: string, anchor: string): string => {
  const { first, last } = daysOfPeriod(parsePeriod(period) as DayPeriod, dayOf(anchor));
  return `${dayText(first)}/${dayText(last)}`;
};

t.test('the periods of the documents have the days that they say', async (t) => {
  t.equal(around('M-1', '2026-06-24'), '2026-05-01/2026-05-31');
  t.equal(around('4M-1', '2026-06-24'), '2026-02-01/2026-05-31');
  t.equal(around('M-1:16/M:15', '2026-06-24'), '2026-05-16/2026-06-15');
  t.equal(around('Q-1', '2026-06-24'), '2026-01-01/2026-03-31');
  t.equal(around('M:31/M+1:31', '2028-02-10'), '2028-02-29/2028-03-31', 'the last of the month');
});

t.test('a text that is no period is refused with what would be right', async (t) => {
  const refusals: readonly (readonly [string, RegExp])[] = [
    ['', /write a day, month/],
    ['last month', /write a day, month/],
    ['m-1', /write a day, month/],
    ['2026-02-30', /There is no day 2026-02-30/],
    ['2026-13', /There is no month 13/],
    ['2026-Q5', /write a day, month/],
    ['1799', /between 1800 and 2199/],
    ['2026-06-30/2026-06-01', /ends before it begins/],
    ['2026-06/2026-07', /write a day, month/],
    ['0M', /1 to 400 units/],
    ['401S', /1 to 400 units/],
    ['M-401', /at most 400 away/],
    ['M:0/M:15', /1 to 31/],
    ['M:32/M+1:15', /1 to 31/],
    ['M:16/M-1:15', /ends before it begins/],
  ];
  for (const [period, message] of refusals) {
    t.throws(() => parsePeriod(period), { name: 'PeriodError', message }, period);
  }
});
