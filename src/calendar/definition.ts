import { dayOf, dayText } from '../std/days.ts';
import { isWeekend, type MonthDay, type Rule, WEEKDAYS, type Weekday } from './rule.ts';
import { zoneFault } from './zone.ts';

/*
 * A calendar file: holiday lists, calendars, and which price follows which. This file checks its
 * form. The loader adds the places in the file, and compares the names with those of the database.
 */

/** The policy for a due day that is closed. */
export const POLICIES = ['skip', 'carry', 'nearest', 'preceding'] as const;
type Policy = (typeof POLICIES)[number];

interface Holiday {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  readonly name: string;
}

/** The closed days of a place, as far as they are decreed. */
export interface HolidayList {
  /** The first and the last day of which the list knows whether they are closed. */
  readonly from: string;
  readonly until: string;
  /** Its source, which decrees or publishes it: a name or an address. */
  readonly source: string;
  /** Sorted by date. */
  readonly days: readonly Holiday[];
  /** Days of weekends that are worked, sorted. */
  readonly workingDays: readonly string[];
}

export interface CalendarDefinition {
  readonly rule: Rule;
  /** Local time, `HH:MM`. */
  readonly at: string;
  /** Time zone of IANA. */
  readonly zone: string;
  /** The slug of a holiday list; null if no day is closed. */
  readonly holidays: string | null;
  readonly policy: Policy;
  /** True if the working days of the list are days like Monday to Friday. */
  readonly makeUpDays: boolean;
}

/** The content of a calendar file. */
export interface CalendarFile {
  /** By slug. */
  readonly holidays: ReadonlyMap<string, HolidayList>;
  readonly calendars: ReadonlyMap<string, CalendarDefinition>;
  /** The slug of the calendar of each price, by its code; null if the price follows none. */
  readonly prices: ReadonlyMap<string, string | null>;
}

/** A rule that a file breaks, and the member that breaks it, as a JSON pointer. */
interface CalendarFault {
  readonly pointer: string;
  readonly message: string;
}

/** The word for "follows no calendar". */
const NONE = 'none';

const pointerTo = (parent: string, name: string | number): string =>
  `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;

type Members = Readonly<Record<string, unknown>>;

const isMap = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const SLUG_MAX = 64;
const TEXT_MAX = 200;
const SOURCE_MAX = 500;
const DAYS_MAX = 20_000;
const DATE_MIN = '1800-01-01';
const DATE_MAX = '2199-12-31';
const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;

const isDay = (value: unknown): value is string =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\d$/.test(value) &&
  value >= DATE_MIN &&
  value <= DATE_MAX &&
  dayText(dayOf(value)) === value;

const list = (names: readonly string[]): string => names.join(', ');

/** Collects faults while the members of a file are read. */
class Checker {
  readonly faults: CalendarFault[] = [];

  fail(pointer: string, message: string): null {
    this.faults.push({ pointer, message });
    return null;
  }

  /** A mapping whose members are all among the known ones. */
  map(value: unknown, pointer: string, known: readonly string[] | null): Members | null {
    if (!isMap(value)) return this.fail(pointer, 'Must be a mapping of names to values');
    for (const name of known === null ? [] : Object.keys(value)) {
      if (known?.includes(name)) continue;
      this.fail(pointerTo(pointer, name), `There is no such member; it has ${list(known ?? [])}`);
    }
    return value;
  }

  text(value: unknown, pointer: string, max = TEXT_MAX): string | null {
    if (typeof value !== 'string') return this.fail(pointer, 'Must be a text; put it in quotes');
    if (value.trim() === '' || value.length > max || /[\p{Cc}\p{Cs}]/u.test(value)) {
      return this.fail(
        pointer,
        `Must be a text of 1 to ${max} characters, without control characters`,
      );
    }
    return value;
  }

  day(value: unknown, pointer: string): string | null {
    if (isDay(value)) return value;
    return this.fail(pointer, `Must be a day from ${DATE_MIN} to ${DATE_MAX}, written YYYY-MM-DD`);
  }

  oneOf<T extends string>(value: unknown, pointer: string, known: readonly T[]): T | null {
    if (known.includes(value as T)) return value as T;
    return this.fail(pointer, `Must be one of ${list(known)}`);
  }

  whole(value: unknown, pointer: string, least: number, most: number): number | null {
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number;
    }
    return this.fail(pointer, `Must be a whole number from ${least} to ${most}`);
  }

  /** The members of a section of the file by their slugs. */
  section<T>(
    value: unknown,
    pointer: string,
    read: (value: unknown, pointer: string) => T | null,
  ): ReadonlyMap<string, T> {
    const found = new Map<string, T>();
    if (value === undefined) return found;
    for (const [slug, each] of Object.entries(this.map(value, pointer, null) ?? {})) {
      const at = pointerTo(pointer, slug);
      if (!SLUG.test(slug) || slug.length > SLUG_MAX || slug === NONE) {
        this.fail(at, 'A name has small letters, digits and single hyphens, such as london-daily');
      }
      const entry = read(each, at);
      if (entry !== null) found.set(slug, entry);
    }
    return found;
  }
}

function holidaysOf(check: Checker, value: unknown, pointer: string): readonly Holiday[] {
  if (value === undefined) return [];
  const days = check.map(value, pointer, null) ?? {};
  if (Object.keys(days).length > DAYS_MAX) {
    check.fail(pointer, `A list has at most ${DAYS_MAX} days`);
    return [];
  }
  return Object.entries(days)
    .flatMap(([date, name]) => {
      const at = pointerTo(pointer, date);
      const day = check.day(date, at);
      const text = check.text(name, at);
      return day === null || text === null ? [] : [{ date: day, name: text }];
    })
    .sort((one, other) => (one.date < other.date ? -1 : 1));
}

function workingDaysOf(check: Checker, value: unknown, pointer: string): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    check.fail(pointer, 'Must be a list of days');
    return [];
  }
  const days = value.flatMap((each, index) => {
    const at = pointerTo(pointer, index);
    const day = check.day(each, at);
    if (day === null) return [];
    if (isWeekend(dayOf(day))) return [day];
    return check.fail(at, 'Must be a Saturday or Sunday; other days are worked anyway') ?? [];
  });
  if (new Set(days).size < days.length) check.fail(pointer, 'Names a day twice');
  return [...days].sort();
}

const LIST_MEMBERS = ['source', 'from', 'until', 'days', 'workingDays'];

function listOf(check: Checker, value: unknown, pointer: string): HolidayList | null {
  const members = check.map(value, pointer, LIST_MEMBERS);
  if (members === null) return null;
  const at = (name: string): string => pointerTo(pointer, name);
  const required = ['source', 'from', 'until'].filter((name) => members[name] === undefined);
  for (const name of required) check.fail(pointer, `The member "${name}" is missing`);
  const days = holidaysOf(check, members['days'], at('days'));
  const workingDays = workingDaysOf(check, members['workingDays'], at('workingDays'));
  if (required.length > 0) return null;
  const source = check.text(members['source'], at('source'), SOURCE_MAX);
  const from = check.day(members['from'], at('from'));
  const until = check.day(members['until'], at('until'));
  if (source === null || from === null || until === null) return null;
  if (from > until) return check.fail(at('until'), '"until" lies before "from"');
  for (const { date } of days) {
    if (date >= from && date <= until) continue;
    check.fail(pointerTo(at('days'), date), `Lies outside of "from" ${from} to "until" ${until}`);
  }
  const closed = new Set(days.map(({ date }) => date));
  for (const day of workingDays) {
    if (day < from || day > until) {
      check.fail(at('workingDays'), `${day} lies outside of "from" ${from} to "until" ${until}`);
    }
    if (closed.has(day)) check.fail(at('workingDays'), `${day} is a holiday of the list`);
  }
  return { source, from, until, days, workingDays };
}

/** The only member of a mapping; null if it has another number of them. */
function onlyMember<T extends string>(
  check: Checker,
  value: unknown,
  pointer: string,
  known: readonly T[],
): readonly [name: T, value: unknown, pointer: string] | null {
  const members = check.map(value, pointer, known);
  if (members === null) return null;
  const names = known.filter((each) => members[each] !== undefined);
  const [name] = names;
  if (name === undefined || names.length > 1) {
    return check.fail(pointer, `Must have exactly one of ${list(known)}`);
  }
  return [name, members[name], pointerTo(pointer, name)];
}

function monthDayOf(check: Checker, value: unknown, pointer: string): MonthDay | null {
  if (value === 'last') return value;
  if (typeof value === 'number') {
    const message = 'Must be a day from 1 to 28; write "last" for the last day of the month';
    const isDayOfAll = Number.isInteger(value) && value >= 1 && value <= 28;
    return isDayOfAll ? value : check.fail(pointer, message);
  }
  if (!isMap(value)) {
    return check.fail(
      pointer,
      'Must be a day from 1 to 28, last, {workingDay: n} or {weekday: friday, nth: n}',
    );
  }
  const { workingDay } = value;
  if (workingDay !== undefined) {
    check.map(value, pointer, ['workingDay']);
    const at = pointerTo(pointer, 'workingDay');
    const n = check.whole(workingDay, at, -15, 15);
    if (n === 0) return check.fail(at, 'Must be 1 to 15, or -1 for the last down to -15');
    return n === null ? null : { workingDay: n };
  }
  check.map(value, pointer, ['workingDay', 'weekday', 'nth']);
  const weekday = check.oneOf(value['weekday'], pointerTo(pointer, 'weekday'), WEEKDAYS);
  const nth = value['nth'];
  if (nth !== -1 && check.whole(nth, pointerTo(pointer, 'nth'), 1, 4) === null) return null;
  return weekday === null ? null : { weekday, nth: nth as number };
}

const RULE_NAMES = ['weekly', 'fortnightly', 'monthly', 'quarterly'] as const;
const RULES_TEXT = 'Must be daily, or a mapping with weekly, fortnightly, monthly or quarterly';

function weekdaysOf(check: Checker, value: unknown, pointer: string): Rule | null {
  if (!Array.isArray(value) || value.length === 0) {
    return check.fail(pointer, `Must be a list of weekdays: ${list(WEEKDAYS)}`);
  }
  const days = value.map((each, index) => check.oneOf(each, pointerTo(pointer, index), WEEKDAYS));
  if (days.includes(null)) return null;
  const weekdays = WEEKDAYS.filter((each) => days.includes(each));
  if (weekdays.length < days.length) return check.fail(pointer, 'Names a weekday twice');
  return { weekly: weekdays as readonly Weekday[] };
}

function ruleOf(check: Checker, value: unknown, pointer: string): Rule | null {
  if (value === 'daily') return value;
  if (!isMap(value)) return check.fail(pointer, RULES_TEXT);
  const only = onlyMember(check, value, pointer, RULE_NAMES);
  if (only === null) return null;
  const [name, content, at] = only;
  if (name === 'weekly') return weekdaysOf(check, content, at);
  if (name === 'fortnightly') {
    const day = check.day(content, at);
    return day === null ? null : { fortnightly: day };
  }
  if (name === 'monthly') {
    const day = monthDayOf(check, content, at);
    return day === null ? null : { monthly: day };
  }
  const members = check.map(content, at, ['month', 'day']);
  if (members === null) return null;
  const month = check.whole(members['month'], pointerTo(at, 'month'), 1, 3);
  const day = monthDayOf(check, members['day'], pointerTo(at, 'day'));
  return month === null || day === null ? null : { quarterly: { month: month as 1 | 2 | 3, day } };
}

function timeOf(check: Checker, value: unknown, pointer: string): string | null {
  if (typeof value === 'string' && TIME.test(value)) return value;
  return check.fail(pointer, 'Must be a time from 00:00 to 23:59, written HH:MM');
}

function zoneOf(check: Checker, value: unknown, pointer: string): string | null {
  const zone = check.text(value, pointer);
  if (zone === null) return null;
  const fault = zoneFault(zone);
  return fault === null ? zone : check.fail(pointer, `"${zone}" ${fault}`);
}

const CALENDAR_MEMBERS = ['rule', 'at', 'zone', 'holidays', 'policy', 'makeUpDays'];

function calendarOf(check: Checker, value: unknown, pointer: string): CalendarDefinition | null {
  const members = check.map(value, pointer, CALENDAR_MEMBERS);
  if (members === null) return null;
  const at = (name: string): string => pointerTo(pointer, name);
  const missing = ['rule', 'at', 'zone'].filter((name) => members[name] === undefined);
  for (const name of missing) check.fail(pointer, `The member "${name}" is missing`);
  const given = <T>(
    name: string,
    read: (check: Checker, value: unknown, pointer: string) => T | null,
  ): T | null => (members[name] === undefined ? null : read(check, members[name], at(name)));
  const rule = given('rule', ruleOf);
  const time = given('at', timeOf);
  const zone = given('zone', zoneOf);
  const { holidays = null, policy = 'skip', makeUpDays = false } = members;
  const name = holidays === null ? null : check.text(holidays, at('holidays'));
  const known = check.oneOf(policy, at('policy'), POLICIES);
  if (typeof makeUpDays !== 'boolean') return check.fail(at('makeUpDays'), 'Must be true or false');
  if (holidays === null && makeUpDays) {
    return check.fail(at('makeUpDays'), 'Only a holiday list has make-up working days: name one');
  }
  if (rule === null || time === null || zone === null || known === null) return null;
  if (holidays !== null && name === null) return null;
  return { rule, at: time, zone, holidays: name, policy: known, makeUpDays };
}

function pricesOf(check: Checker, value: unknown): ReadonlyMap<string, string | null> {
  const prices = new Map<string, string | null>();
  if (value === undefined) return prices;
  for (const [code, calendar] of Object.entries(check.map(value, '/prices', null) ?? {})) {
    const at = pointerTo('/prices', code);
    if (!/^[!-~]{1,64}$/.test(code)) {
      check.fail(at, 'A code has 1 to 64 visible characters of ASCII');
      continue;
    }
    const name = check.text(calendar, at);
    if (name !== null) prices.set(code, name === NONE ? null : name);
  }
  return prices;
}

const FILE_MEMBERS = ['holidays', 'calendars', 'prices'];

/**
 * Checks the content of a calendar file.
 * @param value plain values: mappings as objects, whole numbers as numbers, all else as texts
 * @returns the content without the faulty entries, and all faults
 */
export function checkCalendarFile(value: unknown): {
  readonly file: CalendarFile;
  readonly faults: readonly CalendarFault[];
} {
  const check = new Checker();
  const members = check.map(value, '', FILE_MEMBERS) ?? {};
  const file = {
    holidays: check.section(members['holidays'], '/holidays', (each, at) =>
      listOf(check, each, at),
    ),
    calendars: check.section(members['calendars'], '/calendars', (each, at) =>
      calendarOf(check, each, at),
    ),
    prices: pricesOf(check, members['prices']),
  };
  return { file, faults: check.faults };
}

/** The faults of a stored holiday list. */
export function listFaults({ days, ...others }: HolidayList): readonly CalendarFault[] {
  const check = new Checker();
  const named = Object.fromEntries(days.map(({ date, name }) => [date, name]));
  listOf(check, { ...others, days: named }, '');
  if (Object.keys(named).length < days.length) check.fail('/days', 'Names a day twice');
  return check.faults;
}

/** The faults of a stored calendar. */
export function calendarFaults(definition: CalendarDefinition): readonly CalendarFault[] {
  const check = new Checker();
  calendarOf(check, withoutNull(definition), '');
  return check.faults;
}

const withoutNull = ({ holidays, ...others }: CalendarDefinition): object =>
  holidays === null ? others : { holidays, ...others };
