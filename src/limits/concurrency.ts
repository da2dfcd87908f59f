import type { Leave } from '../std/places.ts';

/** Requests under way of each name, so many at most. */
export class Concurrency {
  readonly #running = new Map<string, number>();

  get size(): number {
    return this.#running.size;
  }

  /** A place for one more request of a name; null when it has all of its places. 0 is no limit. */
  enter(name: string, most: number): Leave | null {
    const running = this.#running.get(name) ?? 0;
    if (most > 0 && running >= most) return null;
    this.#running.set(name, running + 1);
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      const left = (this.#running.get(name) ?? 1) - 1;
      if (left === 0) this.#running.delete(name);
      else this.#running.set(name, left);
    };
  }
}
