import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Database } from './schema.ts';

const ROWS_AT_ONCE = 1_000;

/**
 * The rows of a query, some at a time, so that memory does not grow with their number. One at
 * once in a transaction; other statements may run between its rows.
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
