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

/** Closes the socket at once: the server may never answer again. */
export function destroy(client: pg.Client): void {
  (
    client as unknown as { connection: { stream: { destroy(): void } } }
  ).connection.stream.destroy();
}
