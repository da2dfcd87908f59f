import { withOneAnswered } from './failures.ts';
import { type SessionConfig, SocketClient } from './link/socket-client.ts';

async function sessionOf(client: SocketClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
}

/** Number of tries to see a session that serves both connections. */
const TRIES = 10;

/**
 * True if a pooler, such as PgBouncer with `pool_mode=transaction`, gives a session of the server
 * to one transaction at a time. Settings of sessions and LISTEN would then get lost. A busy pooler
 * may go unnoticed, since it seldom repeats a session.
 * @param isUp tells whether the server answers on other connections
 * @throws TooFewConnections, and the errors of the server
 */
export async function poolsTransactions(
  config: SessionConfig,
  isUp: () => boolean,
): Promise<boolean> {
  const [one, other] = [new SocketClient(config), new SocketClient(config)];
  for (const client of [one, other]) client.on('error', () => {});
  try {
    await one.connect().catch((error: unknown) => {
      throw isUp() ? withOneAnswered(error) : error;
    });
    const first = await sessionOf(one);
    await other.connect().catch((error: unknown) => {
      throw withOneAnswered(error);
    });
    for (let tries = 0; tries < TRIES; tries += 1) {
      // A pooler gives the session that became idle last. Another client may have released it, such
      // as a command that has just ended.
      const last = await sessionOf(one);
      if (last !== first || (await sessionOf(other)) === last) return true;
    }
    return false;
  } finally {
    for (const client of [one, other]) client.destroySocket();
  }
}
