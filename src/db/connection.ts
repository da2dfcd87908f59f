import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Kysely, PostgresDialect, type RawBuilder, sql, type Transaction } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import {
  holdersText,
  isLockTimeout,
  LockedOutError,
  lockTimeoutOf,
  REPORT_HOLDERS_MS,
  WRITE_LOCK,
} from './migrate/lock-holders.ts';
import type { Database } from './schema.ts';

/** One connection, as a Kysely handle and as a client of the driver, which COPY needs. */
export interface Connection {
  readonly db: Kysely<Database>;
  readonly driver: pg.PoolClient;
  /** Its pool. */
  readonly pool: pg.Pool;
}

/** A Kysely handle whose statements a function runs. */
export function kyselyOver(query: pg.PoolClient['query']): Kysely<Database> {
  const connect = async () => ({ query, release: () => {} });
  const pool = { options: {}, connect, end: async () => {} };
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
}

/** Runs work on one connection. It is closed if the work fails, since it may be inside a COPY. */
export async function withConnection<T>(
  pool: pg.Pool,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const driver = await pool.connect();
  const db = kyselyOver(driver.query.bind(driver));
  let hasFailed = true;
  try {
    const result = await work({ db, driver, pool });
    hasFailed = false;
    return result;
  } finally {
    driver.release(hasFailed);
  }
}

/** Called with the sessions that hold the write lock, if it is not free at once. */
export type OnHeld = (holders: string) => void;

/** The write lock was not free before the timeout. */
class WriteLockTimeout extends Error {}

/** Makes one attempt. @param lockTimeoutMs timeout for the write lock; 0 for no limit */
const attemptIn = <T>(
  db: Kysely<Database>,
  lockTimeoutMs: number,
  work: (trx: Transaction<Database>) => Promise<T>,
): Promise<T> =>
  db
    .transaction()
    .setAccessMode('read write')
    .setIsolationLevel('read committed')
    .execute(async (trx) => {
      const setLockTimeout = (ms: number) => sql`select set_config('statement_timeout', '0', true),
        set_config('lock_timeout', ${String(ms)}, true)`;
      await setLockTimeout(lockTimeoutMs).execute(trx);
      await sql`select lock_revisions()`.execute(trx).catch((error) => {
        throw isLockTimeout(error) ? new WriteLockTimeout() : error;
      });
      await setLockTimeout(0).execute(trx);
      return work(trx);
    });

/**
 * Runs a transaction that writes data, under the write lock and without statement timeout. The work
 * opens a revision if it has something to write. Waits for the lock for `lock_timeout` of the
 * session.
 * @throws LockedOutError if another session holds the lock for longer
 */
export async function withWriteLock<T>(
  db: Kysely<Database>,
  work: (trx: Transaction<Database>) => Promise<T>,
  onHeld: OnHeld = () => {},
): Promise<T> {
  const timeoutMs = await lockTimeoutOf(db);
  const atOnceMs = timeoutMs === 0 ? REPORT_HOLDERS_MS : Math.min(REPORT_HOLDERS_MS, timeoutMs);
  try {
    return await attemptIn(db, atOnceMs, work);
  } catch (error) {
    if (!(error instanceof WriteLockTimeout)) throw error;
  }
  if (timeoutMs !== atOnceMs) {
    onHeld(await holdersText(db, WRITE_LOCK));
    try {
      return await attemptIn(db, timeoutMs === 0 ? 0 : timeoutMs - atOnceMs, work);
    } catch (error) {
      if (!(error instanceof WriteLockTimeout)) throw error;
    }
  }
  throw new LockedOutError(
    `another writer did not end within ${timeoutMs / 1_000} s: ` +
      `${await holdersText(db, WRITE_LOCK)}; nothing was changed: run the command again later`,
  );
}

/** Opens the revision of this transaction, unless it is open. Returns its number. */
export async function openRevision(trx: Transaction<Database>, why: string): Promise<string> {
  const { rows } = await sql<{ number: string }>`select open_revision(${why}) as number`.execute(
    trx,
  );
  const [row] = rows;
  if (!row) throw new Error('open_revision returned no number');
  return row.number;
}

/** Streams lines of PostgreSQL's text format into a table. */
export const copyInto = (
  driver: pg.PoolClient,
  table: string,
  lines: Iterable<string>,
): Promise<void> =>
  pipeline(Readable.from(lines), driver.query(copyFrom(`copy ${table} from stdin`)));

const UNLIMITED = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];

/** Removes the timeouts of requests from the current transaction. */
export const liftLimits = (driver: pg.ClientBase): Promise<unknown> =>
  driver.query(UNLIMITED.map((each) => `set local ${each} = 0`).join('; '));

/**
 * Cancels the statement of a session, unless it waits for a standby: that would leave its commit on
 * this server alone, although it is visible and a repeated load reports it as loaded.
 */
const CANCEL = `select pg_cancel_backend(pid) from pg_stat_activity
  where pid = $1 and wait_event is distinct from 'SyncRep'`;

/**
 * Runs work on one connection. An aborted signal also cancels the running statement on the server.
 * @throws the reason of the signal, or the errors of the work
 */
export async function withSession<T>(
  client: { readonly pool: pg.Pool },
  signal: AbortSignal | undefined,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await withConnection(client.pool, async (connection) => {
      const { rows } = await connection.driver.query<{ pid: number }>(
        'select pg_backend_pid() as pid',
      );
      const cancel = (): void => {
        client.pool.query(CANCEL, [rows[0]?.pid]).catch(() => {});
      };
      signal?.addEventListener('abort', cancel);
      try {
        return await work(connection);
      } finally {
        signal?.removeEventListener('abort', cancel);
      }
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

const ROWS_AT_ONCE = 1_000;

/**
 * Reads the rows of a query through a cursor, so that memory does not grow with their number. A
 * transaction can read one such query at a time, and run other statements between its rows.
 */
export async function* rowsOf<T>(
  trx: Transaction<Database>,
  query: RawBuilder<T>,
): AsyncGenerator<T> {
  await sql`declare rows_of_a_query no scroll cursor for ${query}`.execute(trx);
  for (;;) {
    const { rows } = await sql<T>`
      fetch forward ${sql.lit(ROWS_AT_ONCE)} from rows_of_a_query`.execute(trx);
    yield* rows;
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await sql`close rows_of_a_query`.execute(trx);
}
