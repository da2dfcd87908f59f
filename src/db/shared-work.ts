import { LRUCache } from 'lru-cache';

/**
 * Caches what a load returns for the data of one revision, which never changes. Concurrent callers
 * share one load; failures are not cached.
 * @param keep how many results the LRU cache holds
 * @param keyOf names the revision, and what of it a call asks for
 */
export function keptAt<Args extends readonly unknown[], T>(
  keep: number,
  keyOf: (...args: Args) => string,
  load: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  const kept = new LRUCache<string, Promise<T>>({ max: keep });
  return (...args) => {
    const key = keyOf(...args);
    const known = kept.get(key);
    if (known) return known;
    const loading = load(...args);
    kept.set(key, loading);
    loading.catch(() => {
      if (kept.peek(key) === loading) kept.delete(key);
    });
    return loading;
  };
}

/** Concurrent callers with the same key share one load; nothing is cached after it. */
export function sharedReading<T>(): (key: string, read: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  return (key, read) => {
    const known = running.get(key);
    if (known) return known;
    const reading = read().finally(() => running.delete(key));
    running.set(key, reading);
    return reading;
  };
}

/**
 * Has each call share the run that begins after it: one runs, and one is next. A result is then
 * never older than the call.
 */
export function sharedNext<T>(work: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    next = null;
    const run = work().finally(() => {
      if (current === run) current = null;
    });
    current = run;
    return run;
  };
  return () => {
    if (current === null) return begin();
    next ??= current.then(begin, begin);
    return next;
  };
}

/**
 * Waits for work that other callers may share: an aborted signal ends this wait, not the work.
 * @throws what the work throws, and the reason of the signal
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
