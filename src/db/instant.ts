/**
 * A TIMESTAMPTZ as PostgreSQL prints it in UTC (`2026-03-05 16:00:00.5+00`), as RFC 3339
 * (`2026-03-05T16:00:00.5Z`). Text to text: no Date, so no microsecond is lost.
 * @throws Error for a text of another time zone, which no session of ours has
 */
export function instantOf(timestamp: string): string {
  if (!timestamp.endsWith('+00')) throw new Error(`a timestamp is not in UTC: ${timestamp}`);
  return `${timestamp.slice(0, -3).replace(' ', 'T')}Z`;
}
