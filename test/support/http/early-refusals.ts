import { codeOf, type HttpAnswer } from '../process/load.ts';

/** Minimum duration of four attempts: the backoff is 50, 100 and 200 ms or more. */
const ATTEMPTS_MS = 340;

/** The log message of a service that stops waiting for its database. */
const DOWN_MESSAGE = 'every answer is 503 until that is fixed';

/**
 * Requests that failed for lack of the database before all retries were due, as `status code,
 * time`. Retries stop once the service has logged that its database is down. A slow machine cannot
 * cause a false report: it only adds time.
 */
export const earlyRefusals = (answers: readonly HttpAnswer[], log: string): string[] =>
  log.includes(DOWN_MESSAGE)
    ? []
    : answers
        .filter((each) => each.ms < ATTEMPTS_MS && /_unavailable$/.test(codeOf(each) ?? ''))
        .map((each) => `${each.status} ${codeOf(each)}, ${Math.round(each.ms)} ms`);
