import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
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

/**
 * One transaction that writes data: nobody else does before it ends, and no statement of it is
 * cut off. It opens a revision itself once it knows that there is something to write.
 */
export const inApplyTransaction = <T>(
  db: Kysely<Database>,
  work: (trx: Transaction<Database>) => Promise<T>,
): Promise<T> =>
  db
    .transaction()
    .setAccessMode('read write')
    .setIsolationLevel('read committed')
    .execute(async (trx) => {
      await sql`select set_config('statement_timeout', '0', true), lock_revisions()`.execute(trx);
      return work(trx);
    });

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
