import { LRUCache } from 'lru-cache';

/**
 * LRU cache of results that depend on one revision and never change. Concurrent calls share one
 * load; failures are not cached.
 * @param entriesMax size of the cache
 * @param keyOf returns the key of a call, which contains the revision
 */
export function cachedByRevision<Args extends readonly unknown[], T>(
  entriesMax: number,
  keyOf: (...args: Args) => string,
  load: (...args: Args) => Promise<T>,
): (...args: Args) => Promise<T> {
  const cache = new LRUCache<string, Promise<T>>({ max: entriesMax });
  return (...args) => {
    const key = keyOf(...args);
    const cached = cache.get(key);
    if (cached) return cached;
    const loading = load(...args);
    cache.set(key, loading);
    loading.catch(() => {
      if (cache.peek(key) === loading) cache.delete(key);
    });
    return loading;
  };
}

/** Concurrent calls with the same key share one load; its result is not cached. */
export function sharedLoad<T>(): (key: string, load: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  return (key, load) => {
    const shared = running.get(key);
    if (shared) return shared;
    const loading = load().finally(() => running.delete(key));
    running.set(key, loading);
    return loading;
  };
}

/**
 * Calls share the next run of some work. Each run begins after the calls that share it, so a result
 * is never older than the call. At most one run is active and one is pending.
 */
export function sharedNextRun<T>(work: () => Promise<T>): () => Promise<T> {
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
 * Refreshes a state in the background. Concurrent calls share one read. A failed read keeps the
 * last state, because the link reports whether the database is up.
 * @returns a function that never rejects
 */
export function sharedRefresh(read: () => Promise<void>): () => Promise<void> {
  const share = sharedLoad<void>();
  return () => share('', () => read().catch(() => {}));
}

/**
 * Waits for work. The first aborted signal ends the wait, not the work.
 * @throws the errors of the work, and the reason of the signal
 */
export function untilAborted<T>(work: Promise<T>, ...signals: AbortSignal[]): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signals.find((each) => each.aborted)?.reason);
    const end = (): void => {
      for (const each of signals) each.removeEventListener('abort', abort);
    };
    for (const each of signals) each.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(end);
    if (signals.some((each) => each.aborted)) abort();
  });
}
