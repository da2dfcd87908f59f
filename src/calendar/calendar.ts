import { dayOf } from '../std/days.ts';
import type { CalendarDefinition, HolidayList } from './definition.ts';
import { isClosedByWeekends, isWeekend, monthAround, namedDays, weekdayOf } from './rule.ts';
import { instantAt } from './zone.ts';

/*
 * A publication calendar: the days on which a price is due, and the instants. It knows neither
 * prices nor the clock, and the same definition always gives the same days.
 */

/** A day that the rule of a calendar names, after its policy was applied. */
export interface DueDay {
  /** The day that the rule names; it identifies the entry, also when the price moves. */
  readonly named: number;
  /** The day on which the price is due; null if it is skipped. */
  readonly due: number | null;
  /** The name of the holiday, or of the day of a weekend, that closes the named day. */
  readonly closed: string | null;
}

/** The first due day after a day. */
export type NextDue =
  | { readonly day: number; readonly at: string; readonly reason: null }
  | {
      readonly day: null;
      readonly at: null;
      /** `calendar_unknown`: beyond the days that the holiday list knows, or no day in sight. */
      readonly reason: 'calendar_unknown';
    };

const UNKNOWN: NextDue = { day: null, at: null, reason: 'calendar_unknown' };

/** A policy moves a day by no more than this. */
const MOVES_MAX = 31;

/**
 * Days that are searched, in turn: the next due day is near unless many are closed. A day of a
 * quarter may lie on weekends for a year.
 */
const SEARCH_DAYS = [10, 100, 1_000];

/** Remembered next due days. They are few: prices are assessed on the same days. */
const REMEMBERED_MAX = 2_000;

const WEEKEND_NAMES: Readonly<Record<number, string>> = { 5: 'Saturday', 6: 'Sunday' };

export class Calendar {
  readonly definition: CalendarDefinition;
  readonly #holidays: ReadonlyMap<number, string>;
  readonly #makeUp: ReadonlySet<number>;
  readonly #from: number;
  readonly #until: number;
  readonly #fortnight: number;
  readonly #closedByWeekends: boolean;
  readonly #next = new Map<number, NextDue>();

  /** @param list the holiday list that the definition names; null if it names none */
  constructor(definition: CalendarDefinition, list: HolidayList | null) {
    this.definition = definition;
    const { rule } = definition;
    this.#holidays = new Map(list?.days.map(({ date, name }) => [dayOf(date), name]));
    this.#makeUp = new Set(definition.makeUpDays ? list?.workingDays.map(dayOf) : []);
    this.#from = list === null ? -Infinity : dayOf(list.from);
    this.#until = list === null ? Infinity : dayOf(list.until);
    const isFortnightly = typeof rule === 'object' && 'fortnightly' in rule;
    this.#fortnight = isFortnightly ? dayOf(rule.fortnightly) : 0;
    this.#closedByWeekends = isClosedByWeekends(rule);
  }

  /** The first day that the holiday list knows; -Infinity without a list. */
  get from(): number {
    return this.#from;
  }

  /** The last day that the holiday list knows; Infinity without a list. */
  get until(): number {
    return this.#until;
  }

  /** The instant at which a price of a day is due, RFC 3339 in UTC. */
  instantOf(day: number): string {
    return instantAt(day, this.definition.at, this.definition.zone);
  }

  #isKnown(day: number): boolean {
    return day >= this.#from && day <= this.#until;
  }

  /** True if a day is worked; null if that is not known. */
  #isOpen(day: number): boolean | null {
    if (!this.#isKnown(day)) return null;
    if (this.#makeUp.has(day)) return true;
    return !isWeekend(day) && !this.#holidays.has(day);
  }

  /** The name of the holiday or of the day of a weekend that closes a named day. */
  #closedBy(day: number): string | null {
    const holiday = this.#holidays.get(day);
    if (holiday !== undefined) return holiday;
    if (!this.#closedByWeekends || !isWeekend(day) || this.#makeUp.has(day)) return null;
    return WEEKEND_NAMES[weekdayOf(day)] ?? null;
  }

  /** The day to which a closed day moves; null if it is skipped, undefined if that is not known. */
  #movedFrom(day: number): number | null | undefined {
    const { policy } = this.definition;
    if (policy === 'skip') return null;
    if (policy === 'carry') return day;
    const month = monthAround(day);
    for (let distance = 1; distance <= MOVES_MAX; distance += 1) {
      const candidates =
        policy === 'preceding' ? [day - distance] : [day - distance, day + distance];
      for (const each of candidates) {
        if (policy === 'nearest' && (each < month.first || each > month.last)) continue;
        const open = this.#isOpen(each);
        if (open === null) return undefined;
        if (open) return each;
      }
    }
    return null;
  }

  /**
   * The days that the rule names between two days. Of one that is not known, `unknown` has the last
   * day on which it could be.
   */
  #entries(first: number, last: number): { known: DueDay[]; unknown: number[] } {
    const known: DueDay[] = [];
    const unknown: number[] = [];
    const named = namedDays(this.definition.rule, first, last, {
      isOpen: (day) => this.#isOpen(day),
      isMakeUp: (day) => this.#makeUp.has(day),
      fortnight: this.#fortnight,
    });
    for (const { day, latest } of named) {
      if (day === null || !this.#isKnown(day)) {
        unknown.push(day ?? latest);
        continue;
      }
      const closed = this.#closedBy(day);
      const due = closed === null ? day : this.#movedFrom(day);
      if (due === undefined) unknown.push(day);
      else known.push({ named: day, due, closed });
    }
    return { known: withoutDoubles(known), unknown };
  }

  /**
   * The entries whose due day, or for skipped ones the named day, lies between two days, both
   * included. Sorted by that day. Days that the holiday list does not know have no entry.
   */
  dueDays(first: number, last: number): readonly DueDay[] {
    return this.#entries(first - MOVES_MAX, last + MOVES_MAX)
      .known.filter(({ named, due }) => (due ?? named) >= first && (due ?? named) <= last)
      .sort((one, other) => (one.due ?? one.named) - (other.due ?? other.named));
  }

  /** The first day after a day on which the price is due. */
  nextAfter(day: number): NextDue {
    const known = this.#next.get(day);
    if (known !== undefined) return known;
    const found = this.#search(day);
    if (this.#next.size >= REMEMBERED_MAX) this.#next.clear();
    this.#next.set(day, found);
    return found;
  }

  #search(after: number): NextDue {
    for (const days of SEARCH_DAYS) {
      const { known, unknown } = this.#entries(after - MOVES_MAX, after + days + MOVES_MAX);
      const due = known.flatMap((each) => each.due ?? []).filter((each) => each > after);
      const first = Math.min(...due, Infinity);
      const firstUnknown = Math.min(...unknown.filter((each) => each > after), Infinity);
      // A later named day may still move before one that is found beyond the searched days.
      if (firstUnknown <= Math.min(first, after + days)) return UNKNOWN;
      if (first <= after + days) return { day: first, at: this.instantOf(first), reason: null };
    }
    return UNKNOWN;
  }
}

/**
 * A price is due once a day: a closed day that moves to a day which is due anyway, or to which
 * another one moved, is skipped.
 */
function withoutDoubles(entries: readonly DueDay[]): DueDay[] {
  const taken = new Set(entries.filter(({ named, due }) => named === due).map(({ due }) => due));
  return entries.map((each) => {
    if (each.due === null || each.due === each.named) return each;
    if (taken.has(each.due)) return { ...each, due: null };
    taken.add(each.due);
    return each;
  });
}
