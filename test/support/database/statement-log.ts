import type pg from 'pg';
import type t from 'tap';
import { serviceOn } from '../http/service.ts';
import type { TestSettings } from '../http/test-config.ts';
import { testDatabase } from './database.ts';

/**
 * Logs the statements of a pool from its first connection on.
 * @returns a growing list of statement texts
 */
export function logStatements(pool: pg.Pool): string[] {
  if (pool.totalCount > 0) throw new Error('the pool has connections already');
  const seen: string[] = [];
  pool.on('connect', (client) => {
    const ask = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: [unknown, ...unknown[]]) => {
      const [what] = args;
      const text = (what as { text?: string }).text ?? what;
      seen.push(String(text));
      return ask(...args);
    }) as typeof client.query;
  });
  return seen;
}

/** A service over sample prices, with a log of its statements. */
export async function serviceWithStatementLog(test: typeof t, settings: TestSettings = {}) {
  const database = await testDatabase(test, { seeded: true });
  const statements = logStatements(database.pool);
  return { database, statements, service: await serviceOn(test, database, settings) };
}
