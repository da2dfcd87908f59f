import { setTimeout as pause } from 'node:timers/promises';
import { isTransient } from './failures.ts';

const ATTEMPTS = 4;
/** Wait before the first retry; it doubles with each further one. */
const WAIT_MS = 50;
/** Default time after which nothing is retried. */
const RETRY_PERIOD_MS = 2_500;

/** Most retries in a burst, and the retries that each success adds (a token bucket). */
const BUDGET = 40;
const EARNED_PER_SUCCESS = 0.2;

/**
 * Retries transient failures a few times, with exponential backoff. All statements share one retry
 * budget, so that retries do not multiply the load of a database in trouble.
 */
export class Retries {
  #budget = BUDGET;
  #count = 0;
  readonly #periodMs: number;

  constructor(periodMs = RETRY_PERIOD_MS) {
    this.#periodMs = periodMs;
  }

  /** Number of retries so far. */
  get count(): number {
    return this.#count;
  }

  /**
   * Runs work, and retries it until it succeeds, fails permanently, or a limit is reached.
   * @param minimumMs retries at least for this time
   * @throws the errors of the work, and the reason of the signal
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, minimumMs = 0): Promise<T> {
    const periodMs = Math.max(this.#periodMs, minimumMs);
    const begun = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const result = await work();
        this.#budget = Math.min(BUDGET, this.#budget + EARNED_PER_SUCCESS);
        return result;
      } catch (error) {
        const isLate = attempt === ATTEMPTS || performance.now() - begun > periodMs;
        if (isLate || signal.aborted || !isTransient(error) || this.#budget < 1) throw error;
        this.#budget -= 1;
        this.#count += 1;
        const waitMs = WAIT_MS * 2 ** (attempt - 1) * (1 + Math.random() / 2);
        await pause(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }
}
