/*
 * Local times of IANA time zones. The rules of zones are those of the ICU library of Node.
 */

const MS_PER_DAY = 86_400_000;
/** 2000-01-01 in milliseconds from 1970-01-01. */
const EPOCH_MS = Date.UTC(2000, 0, 1);

/** A formatter takes about 0.1 ms to make and 2 KB to keep; there are about 450 zones. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** The formatter of local times. @throws RangeError for an unknown zone */
function formatterOf(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-u-hc-h23', {
    timeZone: zone,
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formatters.set(zone, made);
  return made;
}

/** Local time minus UTC at an instant, in milliseconds. The instant has whole seconds. */
function offsetAt(zone: string, ms: number): number {
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatterOf(zone).formatToParts(ms)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - ms;
}

/**
 * The instant of a local time, RFC 3339 in UTC with whole seconds. A time that the clocks skip is
 * the same time by the clock of before, so that 02:30 is 03:30 in the spring; a time that comes
 * twice is the first of the two. Both are the rule "compatible" of RFC 5545 and of Temporal.
 * @param day a day number
 * @param at `HH:MM`
 * @param zone a time zone that `zoneFault` accepts
 */
export function instantAt(day: number, at: string, zone: string): string {
  const minutes = Number(at.slice(0, 2)) * 60 + Number(at.slice(3));
  const local = EPOCH_MS + day * MS_PER_DAY + minutes * 60_000;
  // No zone is further than a day from UTC, so these lie on both sides of a change near this time.
  const before = offsetAt(zone, local - MS_PER_DAY);
  const after = offsetAt(zone, local + MS_PER_DAY);
  const isThen = (offset: number): boolean => offsetAt(zone, local - offset) === offset;
  // Of two valid instants, the first has the larger offset: that of before the change.
  const offset = isThen(before) || !isThen(after) ? before : after;
  return `${new Date(local - offset).toISOString().slice(0, 19)}Z`;
}

/** The calendar day of an instant in a zone, as a day number. */
export function dayIn(zone: string, ms: number): number {
  const whole = Math.floor(ms / 1000) * 1000;
  return Math.floor((whole + offsetAt(zone, whole) - EPOCH_MS) / MS_PER_DAY);
}

/** Names of zones in other letters, such as `europe/london`, by their lower case. */
const byLowerCase = new Map(
  Intl.supportedValuesOf('timeZone').map((name) => [name.toLowerCase(), name] as const),
);

/** The reason why a text is no time zone; null if it is one. */
export function zoneFault(zone: string): string | null {
  const message = 'is not a time zone of IANA, such as Europe/London or UTC';
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/.test(zone)) return message;
  const spelt = byLowerCase.get(zone.toLowerCase());
  if (spelt !== undefined && spelt !== zone) return `is written ${spelt}`;
  try {
    instantAt(0, '12:00', zone);
    return null;
  } catch (error) {
    if (error instanceof RangeError) return message;
    throw error;
  }
}
