import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from './schema.ts';

/** The advisory lock of whoever changes the schema or the rights of accounts. */
const KEY = '7130541504';

/**
 * How long a change of the schema waits for a table that somebody reads. Readers queue behind it
 * meanwhile, and give up after a second: it must give up first.
 */
const LOCK_TIMEOUT_MS = 500;
const STATEMENT_TIMEOUT_MS = 600_000;
const POLL_MS = 100;
/** With the pauses between, somewhat more than half a minute of trying. */
const TRIES_MAX = 30;
const PAUSE_MS = 500;

/** A lock that could not be had, and a deadlock: with a little patience they pass. */
const PASSING = new Set(['55P03', '40P01']);

/**
 * A lock on a table that was not free in all the time that we tried. The message names the
 * sessions that may have held it.
 */
export class LockedOutError extends Error {
  override readonly name = 'LockedOutError';
}

/** Sessions with a transaction that is older than our patience, as a person would name them. */
async function suspects(db: Kysely<Database>): Promise<string> {
  const { rows } = await sql<{ who: string }>`
    select format('process %s (%s, %s, since %s)', pid, usename,
      coalesce(nullif(application_name, ''), 'unnamed'), date_trunc('second', xact_start)) as who
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and xact_start < clock_timestamp() - ${`${LOCK_TIMEOUT_MS} ms`}::interval
    order by xact_start limit 5`.execute(db);
  return rows.map(({ who }) => who).join(', ');
}

/**
 * Does something that takes strong locks for a moment, again and again until it gets them. It must
 * be one transaction, or else not mind being done twice.
 * @throws LockedOutError when somebody held one of them all the time
 */
export async function untilUnlocked<T>(
  db: Kysely<Database>,
  attempt: () => Promise<T>,
  onWait: (tries: number) => void = () => {},
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!PASSING.has((error as { code?: string }).code ?? '')) throw error;
      if (tries === TRIES_MAX) {
        const who = await suspects(db);
        throw new LockedOutError(
          `a table was locked each of ${tries} times${who === '' ? '' : `, perhaps by ${who}`}; ` +
            'nothing was changed by this step: run it again',
          { cause: error },
        );
      }
      onWait(tries);
    }
    // Nobody is to meet the same other statement again and again.
    await pause(PAUSE_MS * (0.5 + Math.random()));
  }
}

/**
 * Runs work on one connection, on which locks are waited for shortly, while nobody else changes
 * the schema or the rights; others wait for their turn.
 */
export const asOnlyRunner = <T>(
  db: Kysely<Database>,
  work: (one: Kysely<Database>) => Promise<T>,
): Promise<T> =>
  db.connection().execute(async (one) => {
    // Asked again and again: who waits inside a statement holds up CREATE INDEX CONCURRENTLY.
    const tryLock = sql<{ locked: boolean }>`
      select pg_try_advisory_lock(${KEY}::bigint) as locked`;
    while (!(await tryLock.execute(one)).rows[0]?.locked) await pause(POLL_MS);
    try {
      await sql`select set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, false),
        set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, false)`.execute(one);
      return await work(one);
    } finally {
      // A connection that broke took its settings and locks with it.
      await sql`reset lock_timeout`.execute(one).catch(() => {});
      await sql`reset statement_timeout`.execute(one).catch(() => {});
      await sql`select pg_advisory_unlock(${KEY}::bigint)`.execute(one).catch(() => {});
    }
  });
