import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';

/** A server that says nothing at all: it stands still, or the line does. */
export class Silence extends Error {
  readonly code = 'ETIMEDOUT';
}

/** Lets the process take in what has arrived: one that was busy itself must not blame others. */
const takenIn = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/**
 * Waits for an answer of the database no longer than it may be silent.
 * @throws Silence, and what the answer fails with
 */
export async function answered<T>(answer: Promise<T>, silenceMs: number): Promise<T> {
  const silent = Promise.withResolvers<never>();
  const timer = setTimeout(async () => {
    await takenIn();
    silent.reject(new Silence(`the database said nothing for ${silenceMs} ms`));
  }, silenceMs);
  try {
    return await Promise.race([answer, silent.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const GOODBYE_MS = 1_000;

/** Closes the socket at once: the server may never answer again. */
export function destroy(client: pg.Client): void {
  (
    client as unknown as { connection: { stream: { destroy(): void } } }
  ).connection.stream.destroy();
}

/**
 * Ends a connection, and waits up to a second for the server to close it: a server that has stopped
 * never does, and the driver would wait without end.
 */
export async function goodbye(client: pg.Client): Promise<void> {
  const patience = new AbortController();
  const waited = pause(GOODBYE_MS, undefined, { signal: patience.signal });
  await Promise.race([client.end(), waited]).catch(() => {});
  patience.abort();
  waited.catch(() => {});
  destroy(client);
}
