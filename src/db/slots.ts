/** Gives a place back. */
export type Leave = () => void;

/**
 * So many places, and two queues before them in which nobody waits longer than he said: places go
 * first to those who have something to lose.
 */
export class Slots {
  readonly #most: number;
  readonly #waitingMax: number;
  #taken = 0;
  /** Those who wait and may be too many: neither urgent nor for as long as it takes. */
  #counted = 0;
  readonly #urgent = new Set<() => void>();
  readonly #others = new Set<() => void>();

  constructor(most: number, waitingMax: number) {
    this.#most = most;
    this.#waitingMax = waitingMax;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#urgent.size + this.#others.size;
  }

  /**
   * A place, at once or when one comes free; null when none did in the time given, which may be
   * Infinity, and at once where the time has an end and too many such wait already.
   * @throws what the signal was aborted with
   */
  async enter(waitMs: number, signal: AbortSignal, isUrgent = false): Promise<Leave | null> {
    signal.throwIfAborted();
    if (this.#taken < this.#most) return this.#take();
    const queue = isUrgent ? this.#urgent : this.#others;
    const isCounted = !isUrgent && waitMs !== Number.POSITIVE_INFINITY;
    if (isCounted && this.#counted >= this.#waitingMax) return null;
    if (isCounted) this.#counted += 1;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        if (queue.delete(enter) && isCounted) this.#counted -= 1;
      };
      const enter = (): void => {
        end();
        resolve(this.#take());
      };
      const abort = (): void => {
        end();
        reject(signal.reason);
      };
      const late = (): void => {
        end();
        resolve(null);
      };
      const timer = waitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(late, waitMs);
      signal.addEventListener('abort', abort, { once: true });
      queue.add(enter);
    });
  }

  #take(): Leave {
    this.#taken += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#taken -= 1;
      const [next] = this.#urgent.size > 0 ? this.#urgent : this.#others;
      next?.();
    };
  }
}
