import { databaseProblem } from '../../db/failures.ts';
import type { Link } from '../../db/link/link.ts';
import { sharedReading } from '../../db/shared-work.ts';
import { LARGE_WAITING_MAX, ReadLimit } from '../select/select.ts';
import { type ChangeSources, type ChangesAsked, type Page, readPage } from './page.ts';

/** Wakes followers of the feed. */
class Bell {
  readonly #sleepers = new Set<() => void>();
  #rung = 0;

  /** Number of rings so far. */
  get rung(): number {
    return this.#rung;
  }

  /** Number of waiters. */
  get sleepers(): number {
    return this.#sleepers.size;
  }

  /** Wakes everyone who sleeps. */
  ring(): void {
    this.#rung += 1;
    for (const wake of this.#sleepers) wake();
  }

  /**
   * Sleeps until it rings or the time is over. A shared promise of the next ring would keep a
   * callback of each sleeper until then, which may be tomorrow; here nothing of a sleeper is left.
   * @throws what the signal was aborted with
   */
  sleep(timeMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
        this.#sleepers.delete(wake);
      };
      const wake = (): void => {
        end();
        resolve();
      };
      const leave = (): void => {
        end();
        reject(signal.reason);
      };
      const timer = setTimeout(wake, timeMs);
      this.#sleepers.add(wake);
      signal.addEventListener('abort', leave);
      if (signal.aborted) leave();
    });
  }
}

/** How often those who wait look by themselves while the link does not hear of commits. */
const POLL_MS = 2_000;
/** How many of those who may wait read at the same time: they come all at once, in hundreds. */
const READERS = 2;

/** Changes beyond which a page is a large one, of which one is read at a time. */
const LARGE = 1_000;

/** The feed, and those who wait for what comes next. */
export interface Feed {
  /** The next changes that there are. @throws what `readPage` throws */
  read(asked: ChangesAsked, signal: AbortSignal): Promise<Page>;
  /**
   * The next changes. When there are none yet, it waits for some up to the time given, without a
   * connection to the database; then the page is empty.
   * @throws what `readPage` throws, and what the signal was aborted with
   */
  follow(asked: ChangesAsked, waitMs: number, signal: AbortSignal): Promise<Page>;
  /** How many requests wait at the moment. */
  waiting(): number;
  /** Sends everyone who waits home with an empty page; from now on nobody waits. */
  stop(): void;
}

/** A reading that several requests share ends with none of them. */
const NEVER = new AbortController().signal;

/** A page, and how often the bell had rung before it was read. */
interface Heard {
  readonly page: Page;
  readonly rung: number;
}

/**
 * Reads for those who were woken: one commit may wake hundreds, and those who stand at the same
 * place share one reading. It began after the ring that woke them, so it shows what rang.
 */
function sharedReader(sources: ChangeSources, readings: ReadLimit) {
  const once = sharedReading<Page>();
  return (asked: ChangesAsked, rung: number): Promise<Page> => {
    const { after, limit, markets } = asked;
    const key = `${rung} ${after} ${limit} ${markets.join()}`;
    return once(key, () => readings.run(() => readPage(sources, asked), NEVER));
  };
}

/** A failure of the database is waited out by those who wait; any other is one of ours. */
function checkPassing(error: unknown): void {
  if (databaseProblem(error) === null) throw error;
}

/** The feed over a database whose commits the link tells. */
export function feedOf(sources: ChangeSources, link: Link): Feed {
  const bell = new Bell();
  const readings = new ReadLimit(READERS, Number.POSITIVE_INFINITY);
  const large = new ReadLimit(1, LARGE_WAITING_MAX);
  const readShared = sharedReader(sources, readings);
  let unsubscribe: (() => void) | null = null;
  let isStopped = false;

  /** What is left of the time given, and until when to sleep at most. */
  const napOf = (leftMs: number, hasFailed: boolean): number =>
    link.hears && !hasFailed ? leftMs : Math.min(leftMs, POLL_MS);

  /** Goes on from an empty page, read when it had rung so often, until something comes. */
  async function wait(asked: ChangesAsked, empty: Heard, untilMs: number, signal: AbortSignal) {
    let { page, rung } = empty;
    let failure: { readonly error: unknown } | null = null;
    for (;;) {
      const leftMs = untilMs - performance.now();
      if (isStopped || leftMs <= 0) break;
      if (rung === bell.rung) await bell.sleep(napOf(leftMs, failure !== null), signal);
      signal.throwIfAborted();
      if (isStopped || untilMs <= performance.now()) break;
      rung = bell.rung;
      try {
        page = await readShared({ ...asked, after: page.next }, rung);
        failure = null;
      } catch (error) {
        checkPassing(error);
        failure = { error };
      }
      if (page.changes.length > 0) return page;
    }
    if (failure) throw failure.error;
    return page;
  }

  return {
    read: (asked, signal) => {
      const read = () => readPage(sources, asked, signal);
      return asked.limit > LARGE ? large.run(read, signal) : read();
    },
    follow: async (asked, waitMs, signal) => {
      const untilMs = performance.now() + waitMs;
      // Before the first look, so that nothing that comes after it is missed.
      if (!isStopped) unsubscribe ??= link.onCommit(() => bell.ring());
      const { rung } = bell;
      const page = await readings.run(() => readPage(sources, asked, signal), signal);
      if (page.changes.length > 0) return page;
      return wait(asked, { page, rung }, untilMs, signal);
    },
    waiting: () => bell.sleepers,
    stop: () => {
      isStopped = true;
      unsubscribe?.();
      unsubscribe = null;
      bell.ring();
    },
  };
}
