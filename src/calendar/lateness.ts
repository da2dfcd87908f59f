import { dayOf, dayText } from '../std/days.ts';
import type { Calendar } from './calendar.ts';

/*
 * Lateness of prices: a comparison with the clock, which answers of a market never make. The
 * caller gives the time.
 */

const MS_PER_DAY = 86_400_000;
const MINUTE_MS = 60_000;

/** The time at which lateness is judged, and how long a price may take after it is due. */
export interface Judgement {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly graceMinutes: number;
}

/**
 * Days after which a price without a calendar is late, by the short name of its frequency: about
 * two intervals and a few holidays, as in the explorer.
 */
const ALLOWED_DAYS: Readonly<Record<string, number>> = {
  D: 7,
  '2xW': 10,
  W: 16,
  '2W': 32,
  M: 75,
  Q: 200,
  A: 731,
};

/** Why and from when a price is late. */
export interface Late {
  /** `frequency` for a price without a calendar, which is judged with a generous allowance. */
  readonly by: 'calendar' | 'frequency';
  /** The day whose value is missing; for a frequency the last day of the allowance. */
  readonly day: string;
  /** The end of the grace or of the allowance, RFC 3339 in UTC. */
  readonly since: string;
}

/** The days of a price that decide whether it is late. */
interface AssessedPrice {
  /** `YYYY-MM-DD`; null without points. */
  readonly lastDate: string | null;
  readonly launched: string | null;
  /** The short name of the frequency. */
  readonly frequency: string | null;
}

const instantOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** True if the grace after a due instant is over. */
export const isOver = (dueAt: string, { nowMs, graceMinutes }: Judgement): boolean =>
  Date.parse(dueAt) + graceMinutes * MINUTE_MS < nowMs;

/**
 * The instant from which a price is late, which depends on no clock. Null where that is unknown:
 * beyond the days that the holiday list of its calendar knows, and for a price without points and
 * launch.
 */
export function lateFrom(
  calendar: Calendar | null,
  { lastDate, launched, frequency }: AssessedPrice,
  graceMinutes: number,
): Late | null {
  const first = lastDate ?? launched;
  if (first === null) return null;
  if (calendar !== null) {
    const { day, at } = calendar.nextAfter(lastDate === null ? dayOf(first) - 1 : dayOf(first));
    if (day === null) return null;
    const sinceMs = Date.parse(at) + graceMinutes * MINUTE_MS;
    return { by: 'calendar', day: dayText(day), since: instantOf(sinceMs) };
  }
  const days = ALLOWED_DAYS[frequency ?? ''];
  // A price that was never assessed has no rhythm.
  if (days === undefined || lastDate === null) return null;
  const day = dayText(dayOf(lastDate) + days);
  const endMs = Date.parse(`${day}T00:00:00Z`) + MS_PER_DAY;
  return { by: 'frequency', day, since: instantOf(endMs) };
}

/** Judges a price: why it is late, or null. Unknown is not late. */
export function lateness(
  calendar: Calendar | null,
  price: AssessedPrice,
  { nowMs, graceMinutes }: Judgement,
): Late | null {
  const late = lateFrom(calendar, price, graceMinutes);
  return late !== null && Date.parse(late.since) < nowMs ? late : null;
}
