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
  REPORT_HOLDERS_MS,
} from './lock-holders.ts';

/** Key of the advisory lock for changes of the schema and of the rights of accounts. */
const LOCK_KEY = '7130541504';

/**
 * Lock timeout of a schema change. Readers queue behind the waiting change and time out after a
 * second, so the change must time out first.
 */
const LOCK_TIMEOUT_MS = 500;
const STATEMENT_TIMEOUT_MS = 600_000;
const CHECK_MS = 1_000;
const POLL_MS = 100;
/** With the pauses between them, the attempts take somewhat more than half a minute. */
const ATTEMPTS_MAX = 30;
const PAUSE_MS = 500;

/** SQLSTATE of a lock timeout and of a deadlock, which are retried. */
const TRANSIENT = new Set(['55P03', '40P01']);

/** Sessions that hold a lock for longer than the short statements of readers do. */
async function lastingHolders(db: Kysely<Database>): Promise<string> {
  const before = await lockHolders(db, ANY_LOCK);
  await pause(LOCK_TIMEOUT_MS);
  const after = await lockHolders(db, ANY_LOCK);
  return [...before]
    .flatMap(([transaction, name]) => (after.has(transaction) ? [name] : []))
    .join(', ');
}

/** Options for waiting for locks. */
export interface LockWaitOptions {
  /** Called before each retry. */
  readonly onWait?: ((attempts: number) => void) | undefined;
  readonly attemptsMax?: number | undefined;
  /** Called once with the sessions that hold the advisory lock. */
  readonly onHeld?: ((holders: string) => void) | undefined;
}

/**
 * Retries an attempt that needs strong locks, until it acquires them. The attempt must be one
 * transaction, or be repeatable.
 * @throws LockedOutError if another session held a lock during all attempts
 */
export async function retryLocked<T>(
  db: Kysely<Database>,
  attempt: () => Promise<T>,
  { onWait = () => {}, attemptsMax = ATTEMPTS_MAX }: LockWaitOptions = {},
): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!TRANSIENT.has((error as { code?: string }).code ?? '')) throw error;
      if (attempts === attemptsMax) {
        const holders = await lastingHolders(db);
        const holdersNote = holders === '' ? '' : `, perhaps by ${holders}`;
        throw new LockedOutError(
          `a table was locked each of ${attempts} times${holdersNote}; ` +
            'nothing was changed by this step: run the command again',
          { cause: error },
        );
      }
      onWait(attempts);
    }
    // Jitter, so that two statements do not deadlock with each other repeatedly.
    await pause(PAUSE_MS * (0.5 + Math.random()));
  }
}

/**
 * Sets `lock_timeout` and `statement_timeout`, for the session or for the transaction. By default
 * the lock timeout is shorter than the one of readers, which queue behind the statement.
 */
export const setTimeouts = (
  db: Kysely<Database> | Kysely<unknown>,
  lockTimeoutMs: number = LOCK_TIMEOUT_MS,
  isLocal = false,
): Promise<unknown> =>
  sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, ${isLocal}),
    set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, ${isLocal})`.execute(db);

/**
 * Acquires the advisory lock, within `lock_timeout` of the session.
 * @throws LockedOutError after the timeout
 */
async function acquireMigrationLock(
  session: Kysely<Database>,
  { onHeld = () => {} }: LockWaitOptions,
): Promise<void> {
  const timeoutMs = await lockTimeoutOf(session);
  const begun = performance.now();
  let isReported = false;
  // Polled, because a session that waits inside a statement blocks CREATE INDEX CONCURRENTLY.
  for (;;) {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_lock(${LOCK_KEY}::bigint) as locked`.execute(session);
    if (rows[0]?.locked) return;
    const waitedMs = performance.now() - begun;
    if (timeoutMs > 0 && waitedMs >= timeoutMs) {
      const holders = await holdersText(session, advisoryLock(LOCK_KEY));
      throw new LockedOutError(
        `the lock for changes of schema and accounts is held by ${holders}; nothing was changed: ` +
          'run the command again, or end that session',
      );
    }
    if (!isReported && waitedMs > REPORT_HOLDERS_MS) {
      isReported = true;
      onHeld(await holdersText(session, advisoryLock(LOCK_KEY)));
    }
    await pause(POLL_MS);
  }
}

/**
 * Runs work on one connection under the advisory lock for changes of the schema and rights, with a
 * short lock timeout.
 * @throws LockedOutError if another session holds the lock for longer than `lock_timeout`
 */
export const withMigrationLock = <T>(
  db: Kysely<Database>,
  work: (session: Kysely<Database>) => Promise<T>,
  waitOptions: LockWaitOptions = {},
): Promise<T> =>
  db.connection().execute(async (session) => {
    await acquireMigrationLock(session, waitOptions);
    try {
      // If this process is killed, the server cancels its last statement and releases its locks.
      await sql`set client_connection_check_interval = ${sql.lit(CHECK_MS)}`
        .execute(session)
        // Not supported on every system.
        .catch(() => {});
      await setTimeouts(session);
      return await work(session);
    } finally {
      // A broken connection has lost its settings and locks anyway.
      await sql`reset lock_timeout`.execute(session).catch(() => {});
      await sql`reset statement_timeout`.execute(session).catch(() => {});
      await sql`reset client_connection_check_interval`.execute(session).catch(() => {});
      await sql`select pg_advisory_unlock(${LOCK_KEY}::bigint)`.execute(session).catch(() => {});
    }
  });
