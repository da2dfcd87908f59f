/*
 * Long work runs in slices, so that it never blocks the event loop for long. Each turn of the event
 * loop resumes one piece of waiting work: short requests wait for one slice, however many long
 * requests there are.
 */

/** Longest slice, in milliseconds. */
const SLICE_MS = 4;

const resumes: (() => void)[] = [];

function resumeOne(): void {
  const resume = resumes.shift();
  if (resumes.length > 0) setImmediate(resumeOne);
  resume?.();
}

/** Waits for a turn of the event loop, after all work that waits already. */
export const turn = (): Promise<void> =>
  new Promise((resolve) => {
    resumes.push(resolve);
    if (resumes.length === 1) setImmediate(resumeOne);
  });

/** The current slice of some work. Its time starts with its construction. */
export class Slice {
  #begun = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#begun >= SLICE_MS;
  }

  /** Restarts the time, after a wait for something else. */
  restart(): void {
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
