import type pg from 'pg';
import type { Client } from './client.ts';
import { type Connection, withConnection } from './connection.ts';

const UNLIMITED = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];

/** Frees the transaction that is under way of limits that are meant for requests. */
export const liftLimits = (driver: pg.ClientBase): Promise<unknown> =>
  driver.query(UNLIMITED.map((each) => `set local ${each} = 0`).join('; '));

/**
 * Works on one connection; the signal also ends the statement that runs on the server, which does
 * not hear it by itself.
 * @throws the reason of the signal, or what the work throws
 */
export async function withSession<T>(
  client: Client,
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
        client.pool.query('select pg_cancel_backend($1)', [rows[0]?.pid]).catch(() => {});
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
