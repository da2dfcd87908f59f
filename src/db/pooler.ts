import { withOneAnswered } from './failures.ts';
import { type SessionConfig, SocketClient } from './link/socket-client.ts';

async function sessionOf(client: SocketClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
}

/**
 * True if a pooler, such as PgBouncer with `pool_mode=transaction`, gives a session of the server
 * to one transaction at a time. Settings of sessions and LISTEN would then get lost. A busy pooler
 * may go unnoticed, since it seldom repeats a session.
 * @throws TooFewConnections, and the errors of the server
 */
export async function poolsTransactions(config: SessionConfig): Promise<boolean> {
  const [one, other] = [new SocketClient(config), new SocketClient(config)];
  for (const client of [one, other]) client.on('error', () => {});
  try {
    await one.connect();
    const first = await sessionOf(one);
    await other.connect().catch((error: unknown) => {
      throw withOneAnswered(error);
    });
    await other.query('begin');
    // A pooler gives the session that became idle last.
    if ((await sessionOf(other)) === first) return true;
    return (await sessionOf(one)) !== first;
  } finally {
    for (const client of [one, other]) client.destroySocket();
  }
}
