import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from '../schema.ts';
import {
  ANY_LOCK,
  advisoryLock,
  holdersText,
  LockedOutError,
  lockHolders,
  lockTimeoutOf,
  TELL_MS,
} from './lock-holders.ts';

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

/** Those that still hold one after a while, which the short statements of readers do not. */
async function suspects(db: Kysely<Database>): Promise<string> {
  const before = await lockHolders(db, ANY_LOCK);
  await pause(LOCK_TIMEOUT_MS);
  const after = await lockHolders(db, ANY_LOCK);
  return [...before].flatMap(([each, who]) => (after.has(each) ? [who] : [])).join(', ');
}

/** How often what is locked is tried, and who wants to hear of it. */
export interface Patience {
  /** Told when something is locked and will be tried again. */
  readonly onWait?: ((tries: number) => void) | undefined;
  readonly triesMax?: number | undefined;
  /** Called once with the sessions that hold the lock of the only runner. */
  readonly onHeld?: ((holders: string) => void) | undefined;
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
 * Waits for the lock of the only runner, for as long as the session waits for locks.
 * @throws LockedOutError when another session held it all the time
 */
async function lockOut(one: Kysely<Database>, { onHeld = () => {} }: Patience): Promise<void> {
  const timeoutMs = await lockTimeoutOf(one);
  const begun = performance.now();
  let isTold = false;
  // Polled: a session that waits inside a statement holds up CREATE INDEX CONCURRENTLY.
  for (;;) {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_lock(${KEY}::bigint) as locked`.execute(one);
    if (rows[0]?.locked) return;
    const waitedMs = performance.now() - begun;
    if (timeoutMs > 0 && waitedMs >= timeoutMs) {
      const holders = await holdersText(one, advisoryLock(KEY));
      throw new LockedOutError(
        `the lock for changes of schema and accounts is held by ${holders}; nothing was changed: ` +
          'run it again, or end that session',
      );
    }
    if (!isTold && waitedMs > TELL_MS) {
      isTold = true;
      onHeld(await holdersText(one, advisoryLock(KEY)));
    }
    await pause(POLL_MS);
  }
}

/**
 * Runs work on one connection, on which locks are waited for shortly, while nobody else changes
 * the schema or the rights; others wait for their turn.
 * @throws LockedOutError when another session holds the lock for longer than `lock_timeout`
 */
export const asOnlyRunner = <T>(
  db: Kysely<Database>,
  work: (one: Kysely<Database>) => Promise<T>,
  patience: Patience = {},
): Promise<T> =>
  db.connection().execute(async (one) => {
    await lockOut(one, patience);
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
