import type pg from 'pg';
import type { TestDatabase } from './database.ts';
import { inTransaction } from './world.ts';

/** What the service reads in the background, for nobody's request. */
const IN_THE_BACKGROUND = '%max((select published_at from series%';

/** How many statements of requests wait for a lock in the database, of those that are like this. */
export async function lockWaits(pool: pg.Pool, like = '%'): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query not like $1
        and query like $2`,
    [IN_THE_BACKGROUND, like],
  );
  return rows[0].sessions;
}

/** Locks prices and their points against readers while work runs. */
export const whileLocked = <T>(database: TestDatabase, work: () => Promise<T>): Promise<T> =>
  inTransaction(database.pool, async (client) => {
    await client.query('lock table price, series in access exclusive mode');
    return work();
  });
