/*
 * Long work runs in slices, so that it never holds the event loop for long. Of all the work that
 * waits for its next slice one resumes in each turn of the event loop: however many requests are
 * long, the others wait for one slice, not for one of each.
 */

/** Longest slice, in milliseconds. */
const SLICE_MS = 4;

const waiting: (() => void)[] = [];

function resumeOne(): void {
  const resume = waiting.shift();
  if (waiting.length > 0) setImmediate(resumeOne);
  resume?.();
}

/** Waits until the event loop has served the others and the work before. */
export const turn = (): Promise<void> =>
  new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(resumeOne);
  });

/** The slice of some work that runs now. It begins when it is made. */
export class Slice {
  #begun = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#begun >= SLICE_MS;
  }

  /** Begins the slice anew, after a wait for something else. */
  begin(): void {
    this.#begun = performance.now();
  }

  /** Lets others run where the slice is over. */
  async pass(): Promise<void> {
    if (!this.isOver) return;
    await turn();
    this.begin();
  }
}

/** Items between two looks at the clock. */
const ITEMS = 64;

/** Maps a list that may be long, in slices. */
export async function mapped<T, U>(items: readonly T[], of: (item: T) => U): Promise<U[]> {
  const slice = new Slice();
  const results: U[] = [];
  for (let start = 0; start < items.length; start += ITEMS) {
    for (const item of items.slice(start, start + ITEMS)) results.push(of(item));
    if (slice.isOver) await slice.pass();
  }
  return results;
}
