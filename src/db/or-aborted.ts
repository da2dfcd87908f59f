/**
 * Waits for work that others may wait for as well: whoever's signal aborts stops waiting, and the
 * work goes on.
 * @throws what the work throws, and what the signal was aborted with
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    const end = (): void => signal.removeEventListener('abort', leave);
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(end);
    if (signal.aborted) leave();
  });
}
