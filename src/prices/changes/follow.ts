import { databaseFailureOf } from '../../db/failures.ts';
import type { Link } from '../../db/link/link.ts';
import { sharedLoad } from '../../db/shared-work.ts';
import { LARGE_WAITING_MAX, ReadLimit } from '../market/select.ts';
import { type ChangeReaders, type ChangesPage, type ChangesRequest, readPage } from './page.ts';

/** The feed of a database. @param link reports commits */
export function feedOf(readers: ChangeReaders, link: Link): Feed {
  const commits = new CommitSignal();
  const readLimit = new ReadLimit(READERS, Number.POSITIVE_INFINITY);
  const largeReads = new ReadLimit(1, LARGE_WAITING_MAX);
  const readShared = sharedReader(readers, readLimit);
  let unsubscribe: (() => void) | null = null;
  let isStopped = false;

  /** Waits after an empty page until a page has changes or the time ends. */
  async function wait(request: ChangesRequest, last: PageRead, endMs: number, signal: AbortSignal) {
    let { page, count } = last;
    let failure: { readonly error: unknown } | null = null;
    for (;;) {
      const leftMs = endMs - performance.now();
      if (isStopped || leftMs <= 0) break;
      const pauseMs = pauseOf(link, leftMs, failure !== null);
      if (count === commits.count) await commits.wait(pauseMs, signal);
      signal.throwIfAborted();
      if (isStopped || endMs <= performance.now()) break;
      count = commits.count;
      try {
        page = await readShared({ ...request, start: { after: page.next } }, count);
        failure = null;
      } catch (error) {
        checkDatabaseFailure(error);
        failure = { error };
      }
      if (page.changes.length > 0 || page.hasMore) return page;
    }
    if (failure) throw failure.error;
    return page;
  }

  return {
    read: (request, signal) => {
      const read = () => readPage(readers, request, signal);
      const isLarge = request.limit > LARGE || request.operations !== null;
      return isLarge ? largeReads.run(read, signal) : read();
    },
    follow: async (request, waitMs, signal) => {
      const endMs = performance.now() + waitMs;
      // Subscribed before the first read, so that no later commit is missed.
      if (!isStopped) unsubscribe ??= link.onCommit(() => commits.notify());
      const { count } = commits;
      const page = await readLimit.run(() => readPage(readers, request, signal), signal);
      if (page.changes.length > 0 || page.hasMore) return page;
      return wait(request, { page, count }, endMs, signal);
    },
    waiting: () => commits.waiters,
    stop: () => {
      isStopped = true;
      unsubscribe?.();
      unsubscribe = null;
      commits.notify();
    },
  };
}

/** Wakes waiting followers after a commit. */
class CommitSignal {
  readonly #waiters = new Set<() => void>();
  #count = 0;

  /** Number of notifications so far. */
  get count(): number {
    return this.#count;
  }

  /** Number of waiting followers. */
  get waiters(): number {
    return this.#waiters.size;
  }

  /** Wakes all waiting followers. */
  notify(): void {
    this.#count += 1;
    for (const wake of this.#waiters) wake();
  }

  /**
   * Waits for the next notification or the end of the time. It does not share one promise: that
   * would retain a callback of each follower until the next commit, which may be a day later.
   * @throws the reason of the signal
   */
  wait(timeMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#waiters.delete(wake);
      };
      const wake = (): void => {
        end();
        resolve();
      };
      const abort = (): void => {
        end();
        reject(signal.reason);
      };
      const timer = setTimeout(wake, timeMs);
      this.#waiters.add(wake);
      signal.addEventListener('abort', abort);
      if (signal.aborted) abort();
    });
  }
}

/** Interval at which followers poll while the link receives no notifications. */
const POLL_MS = 2_000;
/** Concurrent reads of followers: hundreds may wake at once. */
const READERS = 2;

/**
 * A page of more changes is large, and one of some kinds of changes may read as much. Large pages
 * are read one at a time.
 */
const LARGE = 1_000;

/** The change feed and its followers. */
export interface Feed {
  /** Reads the next changes. @throws errors of `readPage` */
  read(request: ChangesRequest, signal: AbortSignal): Promise<ChangesPage>;
  /**
   * Reads the next changes. If there are none, it waits for a commit without a database connection.
   * If none comes within `waitMs`, the page is empty.
   * @throws errors of `readPage`, and the reason of the signal
   */
  follow(request: ChangesRequest, waitMs: number, signal: AbortSignal): Promise<ChangesPage>;
  /** Number of waiting requests. */
  waiting(): number;
  /** Ends all waits with an empty page. Later requests do not wait. */
  stop(): void;
}

/** The signal of shared reads, which no single request cancels. */
const NEVER = new AbortController().signal;

/** A page, and the number of notifications before it was read. */
interface PageRead {
  readonly page: ChangesPage;
  readonly count: number;
}

/**
 * Reads for woken followers. One commit may wake hundreds; followers at the same position share one
 * read. The read starts after the notification, so it includes the commit.
 */
function sharedReader(readers: ChangeReaders, readLimit: ReadLimit) {
  const once = sharedLoad<ChangesPage>();
  return (request: ChangesRequest, count: number): Promise<ChangesPage> => {
    const key = `${count} ${JSON.stringify(request)}`;
    return once(key, () => readLimit.run(() => readPage(readers, request), NEVER));
  };
}

/** A database failure does not end the wait of a follower. Any other error is a bug. */
function checkDatabaseFailure(error: unknown): void {
  if (databaseFailureOf(error) === null) throw error;
}

/** The time of one wait. Without notifications, or after a failure, it ends with a poll. */
const pauseOf = ({ reportsCommits }: Link, leftMs: number, hasFailed: boolean): number =>
  reportsCommits && !hasFailed ? leftMs : Math.min(leftMs, POLL_MS);
