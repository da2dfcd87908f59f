import type { DueDay } from '../../calendar/calendar.ts';
import { isOver, type Judgement, type Late, lateFrom } from '../../calendar/lateness.ts';
import { dayText } from '../../std/days.ts';
import { Slice } from '../../std/turns.ts';
import type { NamedCalendar, PriceCalendars } from '../market/price-calendars.ts';
import type { DuePrice } from './due-prices.ts';

/*
 * Due days of prices, and late prices: `due-prices.ts` reads them, this file has the due days
 * of an answer and `write.ts` its bytes, `late.ts` judges prices, `watch.ts` counts for metrics.
 */

/** The state of a due day. Only `due` and `late` depend on the clock. */
type DueStatus = 'published' | 'due' | 'late' | 'closed';

/** A due day of a price, or a closed one. */
interface ScheduledDay {
  /** The day on which the price is due; of a closed one the day that its rule names. */
  readonly date: string;
  /** The due instant, RFC 3339 in UTC; null if it is closed. */
  readonly dueAt: string | null;
  readonly status: DueStatus;
  /** The holiday, or the day of a weekend, that closes the named day; null if it is open. */
  readonly holiday: string | null;
  /** The named day of a price that moved; null otherwise. */
  readonly movedFrom: string | null;
}

/** The due days of a price. */
export interface ScheduledPrice {
  readonly price: DuePrice;
  readonly calendar: NamedCalendar | null;
  /** `calendar_unknown` if the calendar does not know all of the days; null otherwise. */
  readonly reason: 'calendar_unknown' | null;
  readonly nextExpectedAt: string | null;
  /** From when the price is late; null where that is unknown. */
  readonly late: Late | null;
  readonly days: readonly ScheduledDay[];
}

/** The first and the last day of a schedule, as day numbers. */
interface ScheduleRange {
  readonly first: number;
  readonly last: number;
}

/** The due days of some prices, and how many there are of all. */
interface DueDays {
  readonly byCalendar: ReadonlyMap<NamedCalendar, readonly DueDay[]>;
  readonly entries: number;
}

/** Computes the due days of each calendar once. */
export function dueDaysOf(
  prices: readonly DuePrice[],
  calendars: PriceCalendars,
  { first, last }: ScheduleRange,
): DueDays {
  const byCalendar = new Map<NamedCalendar, readonly DueDay[]>();
  let entries = 0;
  for (const { id } of prices) {
    const found = calendars.of(id);
    if (found === null) continue;
    const days = byCalendar.get(found) ?? found.calendar.dueDays(first, last);
    byCalendar.set(found, days);
    entries += days.length;
  }
  return { byCalendar, entries };
}

function scheduledDay(
  { named, due, closed }: DueDay,
  { calendar }: NamedCalendar,
  { firstDay }: DuePrice,
  published: ReadonlySet<number> | undefined,
  judgement: Judgement,
): ScheduledDay {
  if (due === null) {
    const isThere = published?.has(named) === true;
    const status = isThere ? 'published' : 'closed';
    return { date: dayText(named), dueAt: null, status, holiday: closed, movedFrom: null };
  }
  const dueAt = calendar.instantOf(due);
  const isLate = firstDay !== null && isOver(dueAt, judgement);
  return {
    date: dayText(due),
    dueAt,
    status: published?.has(due) === true ? 'published' : isLate ? 'late' : 'due',
    holiday: closed,
    movedFrom: due === named ? null : dayText(named),
  };
}

/**
 * The due days of prices with their states. A day before the launch of a price, or without one
 * before its first point, was never due, and a price with neither is never late.
 */
export async function scheduleOf(
  prices: readonly DuePrice[],
  calendars: PriceCalendars,
  range: ScheduleRange,
  { byCalendar }: DueDays,
  published: ReadonlyMap<number, ReadonlySet<number>>,
  judgement: Judgement,
): Promise<readonly ScheduledPrice[]> {
  const slice = new Slice();
  const scheduled: ScheduledPrice[] = [];
  for (const price of prices) {
    const calendar = calendars.of(price.id);
    const days = calendar === null ? [] : (byCalendar.get(calendar) ?? []);
    const { launched, firstDay } = price;
    const next = calendars.nextOf({
      id: price.id,
      last_date: price.lastDate,
      assessment_launched_at: launched,
    });
    const isUnknown =
      calendar === null ||
      range.last > calendar.calendar.until ||
      range.first < calendar.calendar.from;
    scheduled.push({
      price,
      calendar,
      reason: isUnknown ? 'calendar_unknown' : null,
      nextExpectedAt: next?.at ?? null,
      late: lateFrom(calendar?.calendar ?? null, price, judgement.graceMinutes),
      days:
        calendar === null
          ? []
          : days
              .map((each) =>
                scheduledDay(each, calendar, price, published.get(price.id), judgement),
              )
              .filter(({ date }) => firstDay === null || date >= firstDay),
    });
    if (slice.isOver) await slice.yieldIfOver();
  }
  return scheduled;
}
