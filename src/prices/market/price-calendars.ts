import { Calendar, type NextDue } from '../../calendar/calendar.ts';
import { type CalendarRows, definitionOf, holidayListOf } from '../../db/reference/calendars.ts';
import { dayOf } from '../../std/days.ts';

/** A calendar with its name. */
export interface NamedCalendar {
  readonly slug: string;
  readonly calendar: Calendar;
  /** The newest revision of the calendar and of its holiday list. */
  readonly changedIn: number;
}

/** The last and first days of a price that decide when it is due next. */
interface AssessedDays {
  readonly id: number;
  /** `YYYY-MM-DD`; null without points. */
  readonly last_date: string | null;
  readonly assessment_launched_at: string | null;
}

/** The calendars of prices at one revision. Prices without one are not in it. */
export class PriceCalendars {
  readonly #byPrice: ReadonlyMap<number, NamedCalendar>;
  /** The revision in which each price got its calendar. */
  readonly #followedIn: ReadonlyMap<number, number>;

  constructor({ lists, calendars, followers }: CalendarRows) {
    const listById = new Map(lists.map((row) => [row.id, row]));
    const slugs = new Map(lists.map(({ id, slug }) => [id, slug]));
    const byId = new Map(
      calendars.map((row) => {
        const list = row.listId === null ? null : (listById.get(row.listId) ?? null);
        const calendar = new Calendar(definitionOf(row, slugs), list && holidayListOf(list));
        const changedIn = Math.max(row.revision, list?.revision ?? 0);
        return [row.id, { slug: row.slug, calendar, changedIn }];
      }),
    );
    this.#followedIn = new Map(followers.map(({ priceId, revision }) => [priceId, revision]));
    this.#byPrice = new Map(
      followers.flatMap(({ priceId, calendarId }) => {
        const found = byId.get(calendarId);
        return found === undefined ? [] : [[priceId, found] as const];
      }),
    );
  }

  /** The calendar of a price; null if it follows none. */
  of(priceId: number): NamedCalendar | null {
    return this.#byPrice.get(priceId) ?? null;
  }

  /**
   * The newest revision that changed the due days of a price: its number grows with each change of
   * its calendar, of the holiday list, and with another calendar. 0 without a calendar.
   */
  changedIn(priceId: number): number {
    const calendar = this.#byPrice.get(priceId);
    return Math.max(calendar?.changedIn ?? 0, this.#followedIn.get(priceId) ?? 0);
  }

  /**
   * The first due day after the last assessed day; for a price without points the first one from
   * its launch on. Null without a calendar, and without points and launch.
   */
  nextOf({ id, last_date, assessment_launched_at }: AssessedDays): NextDue | null {
    const found = this.#byPrice.get(id);
    if (found === undefined) return null;
    if (last_date !== null) return found.calendar.nextAfter(dayOf(last_date));
    return assessment_launched_at === null
      ? null
      : found.calendar.nextAfter(dayOf(assessment_launched_at) - 1);
  }
}
