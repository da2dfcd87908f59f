import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { holdersText, LockedOutError, lockTimeoutOf, TELL_MS, WRITE_LOCK } from './lock-holders.ts';
import type { Database } from './schema.ts';

/** One connection, as Kysely and as the driver see it: COPY needs the driver's. */
export interface Connection {
  readonly db: Kysely<Database>;
  readonly driver: pg.PoolClient;
}

/** Borrows one connection; it is thrown away when the work fails, since it may be inside a COPY. */
export async function withConnection<T>(
  pool: pg.Pool,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const driver = await pool.connect();
  const query: pg.PoolClient['query'] = driver.query.bind(driver);
  const single = {
    options: {},
    connect: async () => ({ query, release: () => {} }),
    end: async () => {},
  };
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: single }) });
  let failure: unknown = true;
  try {
    const result = await work({ db, driver });
    failure = undefined;
    return result;
  } finally {
    driver.release(failure !== undefined);
  }
}

/** Called with the sessions that hold the lock of writers, when it is not free at once. */
export type OnHeld = (holders: string) => void;

/** The lock of writers was not free for so long. */
class NotFree extends Error {}

/** A PostgreSQL error: a lock was not free for `lock_timeout`. */
const isLockTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '55P03';

/** One attempt, which waits so long for the lock of writers; 0 for no limit. */
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
      const waitFor = (ms: number) => sql`select set_config('statement_timeout', '0', true),
        set_config('lock_timeout', ${String(ms)}, true)`;
      await waitFor(lockTimeoutMs).execute(trx);
      await sql`select lock_revisions()`.execute(trx).catch((error) => {
        throw isLockTimeout(error) ? new NotFree() : error;
      });
      await waitFor(0).execute(trx);
      return work(trx);
    });

/**
 * One transaction that writes data: nobody else does before it ends, and no statement of it is
 * cut off. It opens a revision itself once it knows that there is something to write. Waits for
 * the writer before it as long as the session waits for locks.
 * @throws LockedOutError when another session holds the lock for longer
 */
export async function inApplyTransaction<T>(
  db: Kysely<Database>,
  work: (trx: Transaction<Database>) => Promise<T>,
  onHeld: OnHeld = () => {},
): Promise<T> {
  const timeoutMs = await lockTimeoutOf(db);
  const atOnceMs = timeoutMs === 0 ? TELL_MS : Math.min(TELL_MS, timeoutMs);
  try {
    return await attemptIn(db, atOnceMs, work);
  } catch (error) {
    if (!(error instanceof NotFree)) throw error;
  }
  if (timeoutMs !== atOnceMs) {
    onHeld(await holdersText(db, WRITE_LOCK));
    try {
      return await attemptIn(db, timeoutMs === 0 ? 0 : timeoutMs - atOnceMs, work);
    } catch (error) {
      if (!(error instanceof NotFree)) throw error;
    }
  }
  throw new LockedOutError(
    `another writer did not end within ${timeoutMs / 1_000} s: ` +
      `${await holdersText(db, WRITE_LOCK)}; nothing was changed: run it again after it has ended`,
  );
}

/** Opens the revision of this transaction, or returns the one that it has opened already. */
export async function openRevision(trx: Transaction<Database>, why: string): Promise<string> {
  const { rows } = await sql<{ number: string }>`select open_revision(${why}) as number`.execute(
    trx,
  );
  const [row] = rows;
  if (!row) throw new Error('open_revision gave no number');
  return row.number;
}

/** Streams lines of PostgreSQL's text format into a table. */
export const copyInto = (
  driver: pg.PoolClient,
  table: string,
  lines: Iterable<string>,
): Promise<void> =>
  pipeline(Readable.from(lines), driver.query(copyFrom(`copy ${table} from stdin`)));
