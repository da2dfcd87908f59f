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
const CHECK_MS = 1_000;
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

/** Transactions that hold a lock on one of our tables, as a person would name them. */
async function holders(db: Kysely<Database>): Promise<Map<string, string>> {
  const { rows } = await sql<{ transaction: string; who: string }>`
    select distinct virtualtransaction as transaction, format('process %s (%s, %s)', pid,
      usename, coalesce(nullif(application_name, ''), 'unnamed')) as who
    from pg_locks join pg_stat_activity using (pid)
    where granted and pid <> pg_backend_pid() and relation in (
      select oid from pg_class where relnamespace = 'public'::regnamespace)`.execute(db);
  return new Map(rows.map(({ transaction, who }) => [transaction, who]));
}

/** Those that still hold one after a while, which the short statements of readers do not. */
async function suspects(db: Kysely<Database>): Promise<string> {
  const before = await holders(db);
  await pause(LOCK_TIMEOUT_MS);
  const after = await holders(db);
  return [...before].flatMap(([each, who]) => (after.has(each) ? [who] : [])).join(', ');
}

/** How often what is locked is tried, and who wants to hear of it. */
export interface Patience {
  /** Told when something is locked and will be tried again. */
  readonly onWait?: ((tries: number) => void) | undefined;
  readonly triesMax?: number | undefined;
}

/**
 * Does something that takes strong locks for a moment, again and again until it gets them. It must
 * be one transaction, or else not mind being done twice.
 * @throws LockedOutError when somebody held one of them all the time
 */
export async function untilUnlocked<T>(
  db: Kysely<Database>,
  attempt: () => Promise<T>,
  { onWait = () => {}, triesMax = TRIES_MAX }: Patience = {},
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!PASSING.has((error as { code?: string }).code ?? '')) throw error;
      if (tries === triesMax) {
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
 * Says how long statements wait for locks: in this session, or this transaction alone. Unless it
 * is said otherwise, no longer than readers can wait behind them.
 */
export const waits = (
  db: Kysely<Database> | Kysely<unknown>,
  lockTimeoutMs: number = LOCK_TIMEOUT_MS,
  isLocal = false,
): Promise<unknown> =>
  sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, ${isLocal}),
    set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, ${isLocal})`.execute(db);

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
      // A runner that is killed leaves its last statement behind: it ends, with its locks, soon.
      await sql`set client_connection_check_interval = ${sql.lit(CHECK_MS)}`
        .execute(one)
        .catch(() => 'not every system can tell');
      await waits(one);
      return await work(one);
    } finally {
      // A connection that broke took its settings and locks with it.
      await sql`reset lock_timeout`.execute(one).catch(() => {});
      await sql`reset statement_timeout`.execute(one).catch(() => {});
      await sql`reset client_connection_check_interval`.execute(one).catch(() => {});
      await sql`select pg_advisory_unlock(${KEY}::bigint)`.execute(one).catch(() => {});
    }
  });
