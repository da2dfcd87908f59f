import type { Client } from '../db/client.ts';
import { type Connection, withConnection } from '../db/connection.ts';

/**
 * Works on one connection until a signal stops it: a statement that runs on the server does not
 * hear the signal by itself, so it is cancelled.
 * @throws the reason of the signal, or what the work throws
 */
export async function interruptible<T>(
  { pool }: Client,
  signal: AbortSignal | undefined,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await withConnection(pool, async (connection) => {
      const { rows } = await connection.driver.query<{ pid: number }>(
        'select pg_backend_pid() as pid',
      );
      const cancel = () => {
        pool.query('select pg_cancel_backend($1)', [rows[0]?.pid]).catch(() => {});
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
