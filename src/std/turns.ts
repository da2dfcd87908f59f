/*
 * Long work runs in slices, so that it never blocks the event loop for long. Each turn of the event
 * loop resumes one piece of waiting work: short requests wait for one slice, however many long
 * requests there are.
 */

/** Longest slice, in milliseconds. Slices of one turn share it. */
const SLICE_MS = 4;

/** Length of a slice, in milliseconds, if others have used up the time of the turn. */
const LATE_SLICE_MS = 1;

/** A turn of the event loop in which slices run. */
interface Turn {
  readonly begun: number;
}

let current: Turn | null = null;

/** Begins the turn of the slices that run before the next immediates. */
function beginTurn(): Turn {
  const begun: Turn = { begun: performance.now() };
  current = begun;
  setImmediate(() => {
    // A resumed slice may have begun the next turn.
    if (current === begun) current = null;
  });
  return begun;
}

const resumes: (() => void)[] = [];

function resumeOne(): void {
  const resume = resumes.shift();
  if (resumes.length > 0) setImmediate(resumeOne);
  beginTurn();
  resume?.();
}

/** Waits for a turn of the event loop, after all work that waits already. */
export const turn = (): Promise<void> =>
  new Promise((resolve) => {
    resumes.push(resolve);
    if (resumes.length === 1) setImmediate(resumeOne);
  });

/**
 * The current slice of some work. Its time starts with its construction. Many requests may arrive
 * in one turn: the first takes its slice, and each other a short one, which is enough for a short
 * request.
 */
export class Slice {
  #turn = current ?? beginTurn();
  #begun = performance.now();

  get isOver(): boolean {
    const now = performance.now();
    const own = now - this.#begun;
    return own >= SLICE_MS || (own >= LATE_SLICE_MS && now - this.#turn.begun >= SLICE_MS);
  }

  /** Restarts the time, after a wait for something else. */
  restart(): void {
    this.#turn = current ?? beginTurn();
    this.#begun = performance.now();
  }

  /** Waits for a turn if the slice is over. */
  async yieldIfOver(): Promise<void> {
    if (!this.isOver) return;
    await turn();
    this.restart();
  }
}

/** Items between two reads of the clock. */
const ITEMS = 64;

/** Calls a function with each item of a list that may be long, in slices. */
export async function visited<T>(items: readonly T[], visit: (item: T) => void): Promise<void> {
  const slice = new Slice();
  for (let start = 0; start < items.length; start += ITEMS) {
    for (const item of items.slice(start, start + ITEMS)) visit(item);
    if (slice.isOver) await slice.yieldIfOver();
  }
}

/** Maps a list that may be long, in slices. */
export async function mapped<T, U>(items: readonly T[], of: (item: T) => U): Promise<U[]> {
  const results: U[] = [];
  await visited(items, (item) => results.push(of(item)));
  return results;
}
