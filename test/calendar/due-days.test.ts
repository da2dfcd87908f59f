import fc from 'fast-check';
import t from 'tap';
import { sampleCalendars } from '../../seeds/calendars.ts';
import { Calendar } from '../../src/calendar/calendar.ts';
import { POLICIES } from '../../src/calendar/definition.ts';
import { type MonthDay, type Rule, WEEKDAYS } from '../../src/calendar/rule.ts';
import { dayAfter, dayOf, dayText } from '../../src/std/days.ts';
import { calendarOf, duesOf, listOf, nextOf, oracleDues } from './support.ts';

const CHRISTMAS = listOf({ '2026-12-25': 'Christmas Day', '2026-12-28': 'Boxing Day' });

t.test('a Friday price on 25 December under each policy', async (t) => {
  const dues = Object.fromEntries(
    POLICIES.map((policy) => [
      policy,
      duesOf(calendarOf({ weekly: ['friday'] }, CHRISTMAS, { policy }), '2026-12-19', '2027-01-01'),
    ]),
  );
  t.strictSame(dues, {
    skip: ['2027-01-01'],
    carry: ['2026-12-25', '2027-01-01'],
    nearest: ['2026-12-24', '2027-01-01'],
    preceding: ['2026-12-24', '2027-01-01'],
  });
});

t.test('a closed day is named with its holiday, wherever it moves', async (t) => {
  const entry = (policy: (typeof POLICIES)[number]) =>
    calendarOf({ weekly: ['friday'] }, CHRISTMAS, { policy })
      .dueDays(dayOf('2026-12-24'), dayOf('2026-12-25'))
      .map(({ named, due, closed }) => [dayText(named), due && dayText(due), closed]);
  t.strictSame(entry('skip'), [['2026-12-25', null, 'Christmas Day']]);
  t.strictSame(entry('nearest'), [['2026-12-25', '2026-12-24', 'Christmas Day']]);
});

t.test('a Wednesday price on 1 January goes to the 2nd: nearest stays in its month', async (t) => {
  const list = listOf({ '2025-01-01': "New Year's Day" });
  const calendar = calendarOf({ weekly: ['wednesday'] }, list, { policy: 'nearest' });
  t.strictSame(duesOf(calendar, '2024-12-26', '2025-01-08'), ['2025-01-02', '2025-01-08']);
  const preceding = calendarOf({ weekly: ['wednesday'] }, list, { policy: 'preceding' });
  t.strictSame(duesOf(preceding, '2024-12-26', '2025-01-08'), ['2024-12-31', '2025-01-08']);
});

t.test('a tie of nearest goes before', async (t) => {
  const list = listOf({ '2026-06-17': 'A holiday' });
  const calendar = calendarOf({ weekly: ['wednesday'] }, list, { policy: 'nearest' });
  t.strictSame(duesOf(calendar, '2026-06-15', '2026-06-20'), ['2026-06-16']);
});

t.test('a price is due once a day: a closed day never doubles another', async (t) => {
  const list = listOf({ '2026-12-25': 'Christmas Day' });
  for (const policy of ['nearest', 'preceding'] as const) {
    const dues = duesOf(calendarOf('daily', list, { policy }), '2026-12-21', '2026-12-31');
    t.equal(new Set(dues).size, dues.length);
    t.notOk(dues.includes('2026-12-25'));
  }
});

t.test(
  'a day of a month that falls on a weekend is closed, the n-th Saturday is not',
  async (t) => {
    t.strictSame(duesOf(calendarOf({ monthly: 15 }), '2026-08-01', '2026-09-30'), ['2026-09-15']);
    t.strictSame(
      duesOf(
        calendarOf({ monthly: 15 }, null, { policy: 'preceding' }),
        '2026-08-01',
        '2026-08-31',
      ),
      ['2026-08-14'],
    );
    t.strictSame(
      duesOf(calendarOf({ monthly: { weekday: 'saturday', nth: -1 } }), '2026-08-01', '2026-08-31'),
      ['2026-08-29'],
    );
  },
);

t.test('make-up working days count where the calendar says so', async (t) => {
  const list = listOf({ '2026-01-02': 'A bridge' }, { workingDays: ['2026-01-04'] });
  t.strictSame(
    duesOf(calendarOf('daily', list, { makeUpDays: true }), '2026-01-01', '2026-01-05'),
    ['2026-01-01', '2026-01-04', '2026-01-05'],
  );
  t.strictSame(duesOf(calendarOf('daily', list), '2026-01-01', '2026-01-05'), [
    '2026-01-01',
    '2026-01-05',
  ]);
  const third = { monthly: { workingDay: 3 } };
  t.strictSame(duesOf(calendarOf(third, list, { makeUpDays: true }), '2026-01-01', '2026-01-31'), [
    '2026-01-05',
  ]);
});

t.test(
  'after the last day that the list knows, nothing is due: the calendar is unknown',
  async (t) => {
    const list = listOf({}, { from: '2026-01-01', until: '2026-12-31' });
    const calendar = calendarOf({ weekly: ['friday'] }, list);
    t.match(calendar.nextAfter(dayOf('2026-12-18')), { reason: null });
    t.strictSame(calendar.nextAfter(dayOf('2026-12-25')), {
      day: null,
      at: null,
      reason: 'calendar_unknown',
    });
    t.equal(calendar.nextAfter(dayOf('2025-11-01')).reason, 'calendar_unknown');
    // The last working day of a month is unknown while the list ends within the month.
    const ends = calendarOf({ monthly: { workingDay: -1 } }, listOf({}, { until: '2026-12-30' }));
    t.equal(nextOf(ends, '2026-11-30'), null);
    t.equal(nextOf(ends, '2026-10-31'), '2026-11-30');
  },
);

t.test('a holiday that is added three days before moves the next due day', async (t) => {
  const before = calendarOf({ weekly: ['monday'] }, listOf({}), { policy: 'nearest' });
  const after = calendarOf({ weekly: ['monday'] }, listOf({ '2022-09-19': 'A funeral' }), {
    policy: 'nearest',
  });
  t.equal(nextOf(before, '2022-09-16'), '2022-09-19');
  t.equal(nextOf(after, '2022-09-16'), '2022-09-20');
});

t.test('a price whose every day is closed is never due, and the search ends', async (t) => {
  const closed = Object.fromEntries(
    Array.from({ length: 3650 }, (_, index) => [dayAfter('2020-01-01', index), 'closed']),
  );
  const calendar = calendarOf('daily', listOf(closed));
  t.equal(nextOf(calendar, '2021-01-01'), null);
});

const monthDay = fc.oneof(
  fc.integer({ min: 1, max: 28 }),
  fc.constant('last' as const),
  fc.integer({ min: -5, max: 5 }).map((n) => ({ workingDay: n === 0 ? 1 : n })),
  fc.record({ weekday: fc.constantFrom(...WEEKDAYS), nth: fc.constantFrom(1, 2, 3, 4, -1) }),
) as fc.Arbitrary<MonthDay>;

const anyDay = fc.integer({ min: dayOf('2024-01-01'), max: dayOf('2027-12-31') }).map(dayText);

const anyRule: fc.Arbitrary<Rule> = fc.oneof(
  fc.constant('daily' as const),
  fc.uniqueArray(fc.constantFrom(...WEEKDAYS), { minLength: 1 }).map((weekly) => ({ weekly })),
  anyDay.map((fortnightly) => ({ fortnightly })),
  monthDay.map((monthly) => ({ monthly })),
  fc
    .record({ month: fc.constantFrom(1, 2, 3) as fc.Arbitrary<1 | 2 | 3>, day: monthDay })
    .map((quarterly) => ({ quarterly })),
);

const isWeekend = (day: string) => [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());

const anyOracle = fc.record({
  rule: anyRule,
  list: fc
    .record({ closed: fc.uniqueArray(anyDay, { maxLength: 120 }), worked: fc.uniqueArray(anyDay) })
    .map(({ closed, worked }) =>
      listOf(Object.fromEntries(closed.map((day) => [day, `closed on ${day}`])), {
        workingDays: worked.filter((day) => isWeekend(day) && !closed.includes(day)).sort(),
      }),
    ),
  policy: fc.constantFrom(...POLICIES),
  makeUpDays: fc.boolean(),
});

t.test('due days are those of a second implementation, for any rule and list', async () => {
  fc.assert(
    fc.property(anyOracle, anyDay, fc.integer({ min: 0, max: 200 }), (oracle, first, days) => {
      const { rule, list, policy, makeUpDays } = oracle;
      const calendar = calendarOf(rule, list, { policy, makeUpDays });
      const last = dayAfter(first, days);
      const expected = oracleDues(oracle, first, last);
      const found = duesOf(calendar, first, last);
      return JSON.stringify(found) === JSON.stringify(expected);
    }),
    { numRuns: 400 },
  );
});

t.test('the next due day is the first of the due days, from any day', async () => {
  fc.assert(
    fc.property(anyOracle, anyDay, (oracle, after) => {
      const { rule, list, policy, makeUpDays } = oracle;
      const calendar = calendarOf(rule, list, { policy, makeUpDays });
      const [first = null] = oracleDues(oracle, dayAfter(after, 1), dayAfter(after, 400));
      const next = nextOf(calendar, after);
      // The second implementation looks no further than 400 days.
      return first === null ? next === null || next > dayAfter(after, 400) : next === first;
    }),
    { numRuns: 400 },
  );
});

t.test(
  'a year with the holidays of three places has no false due day and misses none',
  async (t) => {
    const { holidays } = await sampleCalendars();
    for (const slug of ['london', 'shanghai', 'new-york']) {
      const list = holidays.get(slug);
      if (list === undefined) throw new Error(`no list ${slug}`);
      const closed = new Set(list.days.map(({ date }) => date));
      const open: string[] = [];
      for (let day = '2026-01-01'; day <= '2026-12-31'; day = dayAfter(day, 1)) {
        if (!isWeekend(day) && !closed.has(day)) open.push(day);
      }
      t.strictSame(duesOf(calendarOf('daily', list), '2026-01-01', '2026-12-31'), open, slug);
      // Whoever publishes on each open day is never late: the next due day is the next open day.
      const calendar = calendarOf('daily', list);
      for (const [index, day] of open.slice(0, -1).entries()) {
        if (nextOf(calendar, day) !== open[index + 1]) t.fail(`${slug} ${day}`);
      }
    }
  },
);

t.test('the same day is remembered, not computed again', async (t) => {
  const calendar = new Calendar(calendarOf('daily').definition, null);
  t.equal(calendar.nextAfter(dayOf('2026-06-30')), calendar.nextAfter(dayOf('2026-06-30')));
});
