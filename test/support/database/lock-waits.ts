import type pg from 'pg';
import type { TestDatabase } from './database.ts';
import { inTransaction } from './minimal-data.ts';

/** A background query of the service. */
const IN_THE_BACKGROUND = '%max((select published_at from series%';

/** Counts the statements of requests that wait for a lock and match a LIKE pattern. */
export async function lockWaits(pool: pg.Pool, like = '%'): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query not like $1
        and query like $2`,
    [IN_THE_BACKGROUND, like],
  );
  return rows[0].sessions;
}

const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Locks prices and points exclusively, both or neither: a background query of the service that
 * holds one and waits for the other would be a deadlock.
 */
async function lockBoth(client: pg.PoolClient): Promise<void> {
  for (;;) {
    await client.query('savepoint unlocked');
    try {
      await client.query('lock table price, series in access exclusive mode nowait');
      return;
    } catch (error) {
      if ((error as pg.DatabaseError).code !== LOCK_NOT_AVAILABLE) throw error;
      await client.query('rollback to savepoint unlocked');
    }
  }
}

/** Holds an exclusive lock on prices and points while work runs. */
export const whileLocked = <T>(database: TestDatabase, work: () => Promise<T>): Promise<T> =>
  inTransaction(database.pool, async (client) => {
    await lockBoth(client);
    return work();
  });
