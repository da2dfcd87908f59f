/** A server did not respond in time: its process or the network hangs. */
export class AnswerTimeout extends Error {
  readonly code = 'ETIMEDOUT';
}

/** Processes pending input first: this process may have been busy itself. */
const pendingInput = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/**
 * Waits for an answer of the database.
 * @throws AnswerTimeout after `silenceMs`, and the errors of the answer
 */
export async function withTimeout<T>(answer: Promise<T>, silenceMs: number): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(async () => {
    await pendingInput();
    timeout.reject(new AnswerTimeout(`the database did not respond for ${silenceMs} ms`));
  }, silenceMs);
  try {
    return await Promise.race([answer, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
