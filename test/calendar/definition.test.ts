import t from 'tap';
import { calendarFaults, checkCalendarFile, listFaults } from '../../src/calendar/definition.ts';

const LIST = { source: 'a test', from: '2026-01-01', until: '2026-12-31' };
const CALENDAR = { rule: 'daily', at: '16:00', zone: 'Europe/London' };

/** The faults of a file with one list and one calendar, as `pointer: message`. */
const faultsOf = (list: object, calendar: object, prices: object = {}): string[] =>
  checkCalendarFile({
    holidays: { l: { ...LIST, ...list } },
    calendars: { c: { ...CALENDAR, ...calendar } },
    prices,
  }).faults.map(({ pointer, message }) => `${pointer}: ${message}`);

t.test('a file without faults is read as it is stated, with the defaults', async (t) => {
  const { file, faults } = checkCalendarFile({
    holidays: {
      l: { ...LIST, days: { '2026-12-25': 'Christmas Day' }, workingDays: ['2026-01-04'] },
    },
    calendars: {
      c: CALENDAR,
      d: { ...CALENDAR, holidays: 'l', policy: 'carry', makeUpDays: true },
    },
    prices: { 'XX-1': 'c', 'XX-2': 'none' },
  });
  t.strictSame(faults, []);
  t.strictSame(file.holidays.get('l'), {
    ...LIST,
    days: [{ date: '2026-12-25', name: 'Christmas Day' }],
    workingDays: ['2026-01-04'],
  });
  t.strictSame(file.calendars.get('c'), {
    ...CALENDAR,
    holidays: null,
    policy: 'skip',
    makeUpDays: false,
  });
  t.strictSame(
    [...file.prices],
    [
      ['XX-1', 'c'],
      ['XX-2', null],
    ],
  );
  for (const list of file.holidays.values()) t.strictSame(listFaults(list), []);
  for (const calendar of file.calendars.values()) t.strictSame(calendarFaults(calendar), []);
});

t.test('every fault is refused with its place', async (t) => {
  const LISTS: readonly (readonly [object, RegExp])[] = [
    [{ until: '2025-12-31' }, /^\/holidays\/l\/until: "until" lies before/],
    [{ until: '2026-02-30' }, /^\/holidays\/l\/until: Must be a day/],
    [{ source: '' }, /^\/holidays\/l\/source: /],
    [{ source: undefined }, /^\/holidays\/l: The member "source" is missing/],
    [{ days: { '2027-01-01': 'x' } }, /^\/holidays\/l\/days\/2027-01-01: Lies outside/],
    [{ days: { Monday: 'x' } }, /^\/holidays\/l\/days\/Monday: Must be a day/],
    [{ days: { '2026-01-01': 5 } }, /^\/holidays\/l\/days\/2026-01-01: Must be a text/],
    [{ days: [] }, /^\/holidays\/l\/days: Must be a mapping/],
    [{ workingDays: ['2026-01-05'] }, /^\/holidays\/l\/workingDays\/0: Must be a Saturday/],
    [{ workingDays: ['2026-01-04', '2026-01-04'] }, /Names a day twice/],
    [{ workingDays: '2026-01-04' }, /^\/holidays\/l\/workingDays: Must be a list/],
    [{ days: { '2026-01-04': 'x' }, workingDays: ['2026-01-04'] }, /is a holiday of the list/],
    [{ holydays: {} }, /^\/holidays\/l\/holydays: There is no such member/],
  ];
  for (const [list, expected] of LISTS) {
    const faults = faultsOf(list, {});
    t.equal(faults.length, 1, JSON.stringify(list));
    t.match(faults[0], expected, JSON.stringify(list));
  }
  const CALENDARS: readonly (readonly [object, RegExp])[] = [
    [{ rule: 'hourly' }, /^\/calendars\/c\/rule: Must be daily, or/],
    [{ rule: {} }, /exactly one of/],
    [{ rule: { monthly: 1, weekly: ['monday'] } }, /exactly one of/],
    [{ rule: { monthly: 31 } }, /^\/calendars\/c\/rule\/monthly: .*write "last"/],
    [{ rule: { monthly: 'first' } }, /^\/calendars\/c\/rule\/monthly: /],
    [{ rule: { monthly: { workingDay: 0 } } }, /-1 for the last/],
    [{ rule: { monthly: { weekday: 'friday', nth: 5 } } }, /nth: Must be a whole number/],
    [{ rule: { weekly: [] } }, /Must be a list of weekdays/],
    [{ rule: { weekly: ['friday', 'friday'] } }, /Names a weekday twice/],
    [{ rule: { weekly: ['fri'] } }, /^\/calendars\/c\/rule\/weekly\/0: Must be one of/],
    [{ rule: { fortnightly: 'friday' } }, /Must be a day/],
    [{ rule: { quarterly: { month: 4, day: 1 } } }, /month: Must be a whole number from 1 to 3/],
    [{ at: '24:00' }, /^\/calendars\/c\/at: Must be a time/],
    [{ at: 16 }, /^\/calendars\/c\/at: Must be a time/],
    [{ zone: 'Europe/Lundon' }, /^\/calendars\/c\/zone: "Europe\/Lundon" is not a time zone/],
    [{ zone: undefined }, /The member "zone" is missing/],
    [{ policy: 'next' }, /^\/calendars\/c\/policy: Must be one of skip, carry/],
    [{ makeUpDays: 'yes' }, /Must be true or false/],
    [{ makeUpDays: true }, /Only a holiday list has make-up working days/],
  ];
  for (const [calendar, expected] of CALENDARS) {
    const faults = faultsOf({}, calendar);
    t.equal(faults.length, 1, `${JSON.stringify(calendar)}: ${faults.join(' | ')}`);
    t.match(faults[0], expected, JSON.stringify(calendar));
  }
  t.match(faultsOf({}, {}, { 'XX 1': 'c' }), [/A code has/]);
  t.match(faultsOf({}, {}, { 'XX-1': null }), [/^\/prices\/XX-1: Must be a text/]);
  const named = (holidays: object) =>
    checkCalendarFile({ holidays }).faults.map((each) => each.message);
  t.match(named({ 'London!': LIST }), [/A name has small letters/]);
  t.match(named({ none: LIST }), [/A name has small letters/]);
  t.equal(checkCalendarFile([]).faults.length, 1);
  t.equal(checkCalendarFile({ calender: {} }).faults.length, 1);
});
