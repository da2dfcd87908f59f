/**
 * Converts a TIMESTAMPTZ from PostgreSQL's UTC text (`2026-03-05 16:00:00.5+00`) to RFC 3339
 * (`2026-03-05T16:00:00.5Z`). A Date would lose microseconds.
 * @throws Error for another time zone; all sessions of the service use UTC
 */
export function instantOf(timestamp: string): string {
  if (!timestamp.endsWith('+00')) throw new Error(`a timestamp is not in UTC: ${timestamp}`);
  return `${timestamp.slice(0, -3).replace(' ', 'T')}Z`;
}

/** Like `instantOf`, with null for null and for infinity. */
export const instantOrNull = (time: string | null): string | null =>
  time === null || time === 'infinity' ? null : instantOf(time);

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);
const RFC3339 = /^(.{10})T(.{8})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;

/**
 * Normalises an RFC 3339 instant to UTC with microseconds, the precision of `timestamptz`. Further
 * decimals are truncated, because rounding up could include a later commit. Instants before 1970
 * become 1970, when no data existed either, and instants after 9999 its last second.
 * @throws Error for a text that is not an instant
 */
export function utcMicroseconds(instant: string): string {
  const [, date, time = '', decimals = '', offset] = RFC3339.exec(instant.toUpperCase()) ?? [];
  // A leap second is the following second, like in PostgreSQL. Date.parse does not accept it.
  const isLeap = time.endsWith(':60');
  const whole = Date.parse(`${date}T${isLeap ? `${time.slice(0, 6)}59` : time}${offset}`);
  if (Number.isNaN(whole)) throw new Error('not an RFC 3339 instant');
  const ms = Math.min(LAST_MS, Math.max(0, isLeap ? whole + 1000 : whole));
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return `${seconds}.${decimals.slice(0, 6).padEnd(6, '0')}Z`;
}

/**
 * The first microsecond in UTC at or after an RFC 3339 instant: further decimals are rounded up,
 * because rounding down could include an earlier commit.
 * @throws Error for a text that is not an instant
 */
export function firstMicrosecondFrom(instant: string): string {
  const truncated = utcMicroseconds(instant);
  if (!/\.\d{6}\d*[1-9]/.test(instant)) return truncated;
  const micros = BigInt(Date.parse(truncated)) * 1_000n + BigInt(truncated.slice(-4, -1)) + 1n;
  const milliseconds = new Date(Number(micros / 1_000n)).toISOString().slice(0, -1);
  return `${milliseconds}${String(micros % 1_000n).padStart(3, '0')}Z`;
}
