import type pg from 'pg';

/** What the service reads in the background, for nobody's request. */
const IN_THE_BACKGROUND = '%max((select published_at from series%';

/** How many statements of requests wait for a lock in the database of a pool. */
export async function lockWaits(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query not like $1`,
    [IN_THE_BACKGROUND],
  );
  return rows[0].sessions;
}
