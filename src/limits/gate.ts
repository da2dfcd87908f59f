/** A place in the gate: given back once, when the answer is out. */
export type Leave = () => void;

export interface GateLimits {
  /** Requests that are worked on at the same time; 0 for no limit. */
  readonly runningMax: number;
  /** Requests that may wait for a place. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

interface Waiting {
  readonly enter: () => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Lets so many requests in at a time. A few more wait for a moment, in their order; the rest is
 * turned away at once, which keeps the answers of those inside fast.
 */
export class Gate {
  #running = 0;
  readonly #waiting = new Set<Waiting>();
  readonly #limits: GateLimits;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** Whether whoever comes now is turned away. */
  get isFull(): boolean {
    const { runningMax, waitingMax } = this.#limits;
    return runningMax > 0 && this.#running >= runningMax && this.#waiting.size >= waitingMax;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** A place, at once or after a short wait; null when there is none. */
  enter(): Leave | null | Promise<Leave | null> {
    const { runningMax, waitMsMax } = this.#limits;
    if (this.isFull) return null;
    if (runningMax === 0 || this.#running < runningMax) return this.#admit();
    return new Promise((resolve) => {
      const waiting: Waiting = {
        enter: () => {
          clearTimeout(waiting.timer);
          this.#waiting.delete(waiting);
          resolve(this.#admit());
        },
        timer: setTimeout(() => {
          this.#waiting.delete(waiting);
          resolve(null);
        }, waitMsMax),
      };
      this.#waiting.add(waiting);
    });
  }

  #admit(): Leave {
    this.#running += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#running -= 1;
      const [next] = this.#waiting;
      next?.enter();
    };
  }
}

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
