const MINUTE = 60;
const HOUR = 3_600;

/** Seconds before each attempt, from the attempt before: those that Standard Webhooks suggests. */
export const RETRY_SECONDS: readonly number[] = [
  ...[0, 5, 5 * MINUTE, 30 * MINUTE],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
];

/** The longest Retry-After that is obeyed: the longest wait of the schedule. */
const RETRY_AFTER_SECONDS_MAX = 24 * HOUR;

/**
 * Parses Retry-After (RFC 9110): seconds, or a date.
 * @returns milliseconds, at most a day; 0 without the header, or for another text
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number {
  if (header === undefined) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), RETRY_AFTER_SECONDS_MAX * 1_000);
}

/**
 * The wait before the next attempt.
 * @param attempts attempts that have failed
 * @returns milliseconds; null after the last attempt
 */
export function waitMs(attempts: number): number | null {
  const seconds = RETRY_SECONDS[attempts];
  return seconds === undefined ? null : seconds * 1_000;
}
