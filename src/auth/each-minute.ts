export const MINUTE_MS = 60_000;

/**
 * Does something once a minute, never twice at a time.
 * @param work never fails
 * @returns what stops it, after it was done once more
 */
export function eachMinute(work: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(work);
  }, MINUTE_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await work();
  };
}
