import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';

const GOODBYE_MS = 1_000;

/** Ends a connection: nothing is owed to a server that may never answer again. */
export function destroy(client: pg.Client): void {
  (
    client as unknown as { connection: { stream: { destroy(): void } } }
  ).connection.stream.destroy();
}

/**
 * Says goodbye, and waits a second for the server to close the connection: one that stands still
 * never does, and the driver would wait for it without end.
 */
export async function goodbye(client: pg.Client): Promise<void> {
  const patience = new AbortController();
  const waited = pause(GOODBYE_MS, undefined, { signal: patience.signal });
  await Promise.race([client.end(), waited]).catch(() => {});
  patience.abort();
  waited.catch(() => {});
  destroy(client);
}
