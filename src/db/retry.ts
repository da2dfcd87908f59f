import { setTimeout as pause } from 'node:timers/promises';
import { isTransient } from './failures.ts';

const ATTEMPTS = 4;
/** The first wait; it doubles. */
const WAIT_MS = 50;
/** After this nothing is tried once more, unless somebody has more patience. */
const RETRY_FOR_MS = 2_500;

/** Retries that may be spent at once, and what each answer adds: a fifth of one. */
const BUDGET = 40;
const EARNED = 0.2;

/**
 * Tries what failed in passing once more, a few times. All statements together have one budget for
 * it, so that a database in trouble is not asked several times as much.
 */
export class Retries {
  #budget = BUDGET;
  #count = 0;
  readonly #forMs: number;

  constructor(forMs = RETRY_FOR_MS) {
    this.#forMs = forMs;
  }

  /** How often something was tried once more. */
  get count(): number {
    return this.#count;
  }

  /**
   * Does work until it succeeds, fails for good, or was tried often or long enough.
   * @throws what the work throws, and what the signal was aborted with
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, patienceMs = 0): Promise<T> {
    const forMs = Math.max(this.#forMs, patienceMs);
    const begun = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const result = await work();
        this.#budget = Math.min(BUDGET, this.#budget + EARNED);
        return result;
      } catch (error) {
        const isLate = attempt === ATTEMPTS || performance.now() - begun > forMs;
        if (isLate || signal.aborted || !isTransient(error) || this.#budget < 1) throw error;
        this.#budget -= 1;
        this.#count += 1;
        const waitMs = WAIT_MS * 2 ** (attempt - 1) * (1 + Math.random() / 2);
        await pause(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }
}
