import type { Test } from 'tap';

/** Turns of the event loop since the start of a count. */
interface Turns {
  readonly count: number;
  /** Ends the count, which keeps the process running until then. */
  end(): void;
}

/**
 * Counts turns of the event loop. Each read of the clock takes a millisecond until the end of the
 * test, so that slices of work end by their steps, on any machine.
 */
export function countTurns(t: Test): Turns {
  let [isOver, count] = [false, 0];
  const next = (): void => {
    count += 1;
    if (!isOver) setImmediate(next);
  };
  let nowMs = performance.now();
  t.intercept(performance, 'now', {
    value: () => {
      nowMs += 1;
      return nowMs;
    },
  });
  setImmediate(next);
  return {
    get count() {
      return count;
    },
    end: () => {
      isOver = true;
    },
  };
}
