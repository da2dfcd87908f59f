import { type Answered, codeOf } from '../process/load.ts';

/** The least that four attempts take, as the waits between them are 50, 100 and 200 ms and more. */
const ATTEMPTS_MS = 340;

/** What the log of a service says when it waits no longer for its database. */
const AWAY = 'every answer is 503 until that is fixed';

/**
 * Requests that were refused for want of the database before they were tried as often as they
 * should be, as `status code, time`. A service that says that its database is away owes nobody
 * another attempt. However slow a machine is, it takes no time away.
 */
export const givenUp = (answers: readonly Answered[], log: string): string[] =>
  log.includes(AWAY)
    ? []
    : answers
        .filter((each) => each.ms < ATTEMPTS_MS && /_unavailable$/.test(codeOf(each) ?? ''))
        .map((each) => `${each.status} ${codeOf(each)}, ${Math.round(each.ms)} ms`);
