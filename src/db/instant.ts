/**
 * A TIMESTAMPTZ as PostgreSQL prints it in UTC (`2026-03-05 16:00:00.5+00`), as RFC 3339
 * (`2026-03-05T16:00:00.5Z`). Text to text: no Date, so no microsecond is lost.
 */
export const instantOf = (timestamp: string): string =>
  timestamp.replace(' ', 'T').replace(/\+00(:00)?$/, 'Z');
