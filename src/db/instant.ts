/**
 * A TIMESTAMPTZ as PostgreSQL prints it in UTC (`2026-03-05 16:00:00.5+00`), as RFC 3339
 * (`2026-03-05T16:00:00.5Z`). Text to text: no Date, so no microsecond is lost.
 * @throws Error for a text of another time zone, which no session of ours has
 */
export function instantOf(timestamp: string): string {
  if (!timestamp.endsWith('+00')) throw new Error(`a timestamp is not in UTC: ${timestamp}`);
  return `${timestamp.slice(0, -3).replace(' ', 'T')}Z`;
}

/** A time of the database as RFC 3339 text; null for none and for infinity. */
export const instantOrNull = (time: string | null): string | null =>
  time === null || time === 'infinity' ? null : instantOf(time);

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);
const RFC3339 = /^(.{10})T(.{8})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;

/**
 * An RFC 3339 instant in UTC and to the microsecond, as `timestamptz` takes it. More decimals are
 * cut, never rounded up to a moment that was not asked for. What lies before 1970 becomes 1970, of
 * which nothing is known either, and what lies after 9999 its last second.
 */
export function utcMicroseconds(instant: string): string {
  const [, date, time = '', decimals = '', offset] = RFC3339.exec(instant.toUpperCase()) ?? [];
  // A leap second is the second after it, as it is for PostgreSQL; a Date does not know it.
  const isLeap = time.endsWith(':60');
  const whole = Date.parse(`${date}T${isLeap ? `${time.slice(0, 6)}59` : time}${offset}`);
  if (Number.isNaN(whole)) throw new Error('not an RFC 3339 instant');
  const moment = Math.min(LAST_MS, Math.max(0, isLeap ? whole + 1000 : whole));
  const seconds = new Date(moment).toISOString().slice(0, 19);
  return `${seconds}.${decimals.slice(0, 6).padEnd(6, '0')}Z`;
}
