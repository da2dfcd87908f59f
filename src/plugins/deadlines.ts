import type { Work } from './work.ts';

/**
 * Ends work that takes too long. All of it may take the same time, so what began first ends first,
 * and one timer is enough for all.
 */
export class Deadlines {
  readonly #ms: number;
  readonly #end: (late: Work) => void;
  /** When the time of each is over, in the order in which that comes. */
  readonly #due = new Map<Work, number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number, end: (late: Work) => void) {
    this.#ms = ms;
    this.#end = end;
  }

  /** Its time begins now, once more if it had begun before. */
  add(work: Work): void {
    this.#due.delete(work);
    this.#due.set(work, performance.now() + this.#ms);
    if (this.#timer === null) this.#wait(this.#ms);
  }

  remove(work: Work): void {
    this.#due.delete(work);
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#timer = null;
    for (const [work, due] of this.#due) {
      const left = due - performance.now();
      if (left > 0) {
        this.#wait(Math.ceil(left));
        return;
      }
      this.#due.delete(work);
      this.#end(work);
    }
  }
}
