import { CALENDAR_COLUMNS } from '../../contract/schemas/calendar.ts';
import { instantOf } from '../../db/instant.ts';
import { textCell } from '../../std/csv.ts';
import { Slice } from '../../std/turns.ts';
import type { PriceCalendars } from '../market/price-calendars.ts';
import type { ScheduledPrice } from './schedule.ts';

/**
 * The due days of a price as an object of an answer.
 * @param samples the ids of the sample prices
 */
export const shownPrice = (
  { price, calendar, reason, nextExpectedAt, late, days }: ScheduledPrice,
  samples: ReadonlySet<number>,
) => ({
  market: price.market,
  code: price.code,
  name: price.name,
  calendar: calendar?.slug ?? null,
  reason,
  nextExpectedAt,
  lastAssessedAt: price.lastDate,
  latestPublishedAt: price.lastPublishedAt && instantOf(price.lastPublishedAt),
  lateFrom: late?.since ?? null,
  lateBy: late?.by ?? null,
  sample: samples.has(price.id),
  days,
});

/** One row for each due day, and one without a day for a price that has none. */
export async function csvOf(
  scheduled: readonly ScheduledPrice[],
  samples: ReadonlySet<number>,
): Promise<string> {
  const slice = new Slice();
  const lines = [CALENDAR_COLUMNS.join(',')];
  for (const each of scheduled) {
    const { days, sample, ...shared } = shownPrice(each, samples);
    for (const day of days.length === 0 ? [null] : days) {
      const row: Readonly<Record<string, string | null>> = {
        ...shared,
        sample: String(sample),
        ...day,
      };
      lines.push(CALENDAR_COLUMNS.map((name) => textCell(row[name] ?? null)).join(','));
    }
    if (slice.isOver) await slice.yieldIfOver();
  }
  return `${lines.join('\r\n')}\r\n`;
}

/** Calendar programs read an address again after this time. */
const REFRESH_SECONDS = 3_600;

/** RFC 5545 stores it in 32 bits. */
const SEQUENCE_MAX = 2_147_483_647;

/**
 * The due days as iCalendar (RFC 5545): one event for each price and day. The id of an event is of
 * the day that the rule names, so that it stays when a holiday moves the price. Its sequence number
 * is the revision that changed the calendar last, which grows with each change. Nothing depends on
 * the clock.
 * @param stampedAt commit time of the revision, RFC 3339
 */
export async function icalendarOf(
  scheduled: readonly ScheduledPrice[],
  calendars: PriceCalendars,
  stampedAt: string,
): Promise<string> {
  const { ICalCalendar, ICalCalendarMethod } = await import('ical-generator');
  const made = () =>
    new ICalCalendar({
      name: 'Prices due',
      method: ICalCalendarMethod.PUBLISH,
      prodId: { company: 'commodity-prices', product: 'publication calendars', language: 'EN' },
      ttl: REFRESH_SECONDS,
    });
  const slice = new Slice();
  const stamp = new Date(stampedAt);
  const parts: string[] = [];
  for (const { price, days } of scheduled) {
    // A calendar for each price: the library writes one without a pause.
    const calendar = made();
    const sequence = calendars.changedIn(price.id) % SEQUENCE_MAX;
    for (const { date, dueAt, holiday, movedFrom } of days) {
      if (dueAt === null) continue;
      const moved = movedFrom === null ? '' : `; moved from ${movedFrom}: ${holiday ?? 'closed'}`;
      calendar.createEvent({
        id: `${price.code}.${movedFrom ?? date}@commodity-prices`,
        sequence,
        stamp,
        start: new Date(dueAt),
        summary: `${price.code} ${price.name}`,
        description: `${price.market}, due for ${date}${moved}`,
      });
    }
    parts.push(eventsIn(calendar.toString()));
    if (slice.isOver) await slice.yieldIfOver();
  }
  const empty = made().toString();
  const end = empty.lastIndexOf(END);
  return empty.slice(0, end) + parts.join('') + empty.slice(end);
}

const END = 'END:VCALENDAR';

/** The events of a calendar, as they stand in it. */
function eventsIn(calendar: string): string {
  const first = calendar.indexOf('BEGIN:VEVENT');
  return first < 0 ? '' : calendar.slice(first, calendar.lastIndexOf(END));
}
