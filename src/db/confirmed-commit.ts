import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { type Connection, withSession } from './connection.ts';
import { destroySocket } from './link/timeout.ts';
import type { Database } from './schema.ts';

/** The bounds of the wait of a commit for standbys. */
export interface CommitConfirmation {
  /**
   * True if the synchronous standbys of the server must show the commit. If false, the settings of
   * the server decide: without `synchronous_standby_names` a commit waits for no standby.
   */
  readonly standbys: boolean;
  /** Longest wait after the commit has begun, in milliseconds. */
  readonly timeoutMs: number;
}

/** True if the standbys show the commit, false if not in time, null if none had to. */
export type Confirmed = boolean | null;

/** The server has not answered the commit: it may be lost, or committed. */
class CommitUnknownError extends ExpectedError {
  override readonly name = 'CommitUnknownError';
  override readonly exitCode = EXIT.failed;
}

/** Called as the last step of a transaction, with its result. Returns the result. */
export type BeforeCommit<T> = (trx: Kysely<Database>, result: T) => Promise<T>;

/** Interval of attempts to end the wait. */
const CANCEL_INTERVAL_MS = 250;
/** Attempts without a response of the server after which the connection is closed. */
const SILENT_ATTEMPTS_MAX = 20;

/** Ends only the wait for standbys, never a commit that is still running. */
const CANCEL_WAIT = `select pg_cancel_backend(pid) from pg_stat_activity
  where pid = $1 and wait_event = 'SyncRep'`;

/** SQLSTATE of the warnings that a commit is local only: its wait or its session was ended. */
const LOCAL_ONLY = /^(01|57P01)/;

const hasStandbys = async (db: Kysely<Database>): Promise<boolean> => {
  const { rows } = await sql<{ names: string }>`
    select current_setting('synchronous_standby_names') as names`.execute(db);
  return rows[0]?.names !== '';
};

/**
 * Cancels the wait of a session for standbys, repeatedly until the commit has returned. A running
 * commit has no timeout: the connection is closed only if the server no longer responds.
 */
async function endWait(
  pool: pg.Pool,
  driver: pg.PoolClient,
  pid: number,
  isOver: () => boolean,
): Promise<void> {
  let isQuerying = false;
  let silentAttempts = 0;
  const cancel = async (): Promise<void> => {
    isQuerying = true;
    try {
      await pool.query(CANCEL_WAIT, [pid]);
      silentAttempts = 0;
    } catch {
      // The next attempt may succeed.
    } finally {
      isQuerying = false;
    }
  };
  while (silentAttempts < SILENT_ATTEMPTS_MAX && !isOver()) {
    silentAttempts += 1;
    if (!isQuerying) void cancel();
    await pause(CANCEL_INTERVAL_MS, undefined, { ref: false });
  }
  if (!isOver()) destroySocket(driver as unknown as pg.Client);
}

/**
 * Runs a transaction whose commit waits for standbys at most for a time. Without a standby such a
 * wait never ends, and `statement_timeout` does not apply to it. Cancelling it leaves the
 * transaction committed on this server; PostgreSQL reports that by a warning.
 * @param work calls its argument as the last step of the transaction
 * @throws CommitUnknownError if the server does not answer the commit, and the errors of the work
 */
export async function withConfirmedCommit<T>(
  { db, driver, pool }: Connection,
  { standbys, timeoutMs }: CommitConfirmation,
  work: (beforeCommit: BeforeCommit<T>) => Promise<T>,
): Promise<{ readonly result: T; readonly confirmed: Confirmed }> {
  let isLocalOnly = false;
  let isOver = false;
  let isLost = false;
  let canConfirm = true;
  let timer: NodeJS.Timeout | undefined;
  const onNotice = ({ code = '' }: { code?: string | undefined }): void => {
    if (committing !== null && LOCAL_ONLY.test(code)) isLocalOnly = true;
  };
  let committing: { readonly result: T } | null = null;
  const beforeCommit: BeforeCommit<T> = async (trx, result) => {
    const { rows } = await sql<{ pid: number }>`
      select pg_backend_pid() as pid,
        set_config('synchronous_commit', ${standbys ? 'remote_apply' : 'on'}, true),
        set_config('client_min_messages', 'warning', true)`.execute(trx);
    canConfirm = !standbys || (await hasStandbys(trx));
    committing = { result };
    timer = setTimeout(() => {
      void endWait(pool, driver, rows[0]?.pid ?? 0, () => isOver).then(() => {
        isLost = !isOver;
      });
    }, timeoutMs);
    return result;
  };
  driver.on('notice', onNotice);
  let result: T;
  try {
    result = await work(beforeCommit);
  } catch (error) {
    const { result: committed } = (isLocalOnly && committing) || { result: undefined };
    // The session ended while it waited, after it had committed.
    if (committed !== undefined) return { result: committed, confirmed: false };
    if (!isLost) throw error;
    throw new CommitUnknownError(
      'the database did not respond to the commit, and it is not known whether it was made; run ' +
        'the command again: a file that was loaded is not loaded twice',
      { cause: error },
    );
  } finally {
    isOver = true;
    clearTimeout(timer);
    driver.off('notice', onNotice);
  }
  if (isLocalOnly) return { result, confirmed: false };
  if (committing === null || !standbys) return { result, confirmed: null };
  // If the list of standbys was emptied meanwhile, the server has ended the wait without a warning.
  return { result, confirmed: canConfirm && (await hasStandbys(db).catch(() => false)) };
}

/**
 * Runs a load on one connection. Its other transactions, such as those that make and drop staging
 * tables, never wait for standbys.
 * @throws the reason of the signal, or the errors of the work
 */
export const withLoadSession = <T>(
  client: { readonly pool: pg.Pool },
  signal: AbortSignal | undefined,
  work: (connection: Connection) => Promise<T>,
): Promise<T> =>
  withSession(client, signal, async (connection) => {
    await connection.driver.query('set synchronous_commit = local');
    const result = await work(connection);
    await connection.driver.query('reset synchronous_commit').catch(() => {});
    return result;
  });
