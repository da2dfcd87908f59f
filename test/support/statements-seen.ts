import type pg from 'pg';

/**
 * Listens to what the connections of a pool are asked, from its first connection on.
 * @returns the texts of the statements, in a list that grows
 */
export function statementsSeen(pool: pg.Pool): string[] {
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
