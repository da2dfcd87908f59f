/** What sleepers wait for. */
export class Bell {
  readonly #sleepers = new Set<() => void>();
  #rung = 0;

  /** How often it has rung. */
  get rung(): number {
    return this.#rung;
  }

  /** How many wait for it. */
  get sleepers(): number {
    return this.#sleepers.size;
  }

  /** Wakes everyone who sleeps. */
  ring(): void {
    this.#rung += 1;
    for (const wake of this.#sleepers) wake();
  }

  /**
   * Sleeps until it rings or the time is over. Nothing is left of a sleeper that woke: a promise
   * of the next ring would keep a trace of each of them until then, which may be tomorrow.
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
