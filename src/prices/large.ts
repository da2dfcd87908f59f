import { Problem } from '../errors.ts';
import { Places } from '../std/places.ts';

/** Large readings that may wait; each holds a place of the gate, which has others to serve. */
const WAITING_MAX = 16;

/**
 * Runs large readings of the database one at a time: the driver parses megabytes of each without a
 * pause. The others wait in the order of their arrival, up to the deadlines of their requests.
 */
export class LargeReadings {
  readonly #places = new Places(1, { waitingMax: WAITING_MAX, waitMs: Number.POSITIVE_INFINITY });

  /**
   * @throws Problem `overloaded` where too many wait, the reason of the signal, and what `read`
   *   throws
   */
  async run<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const leave = await this.#places.enter({ signal });
    if (leave === null) {
      throw new Problem(
        'overloaded',
        'Too many large readings wait; ask for fewer records at once, or try again shortly',
      );
    }
    try {
      return await read();
    } finally {
      leave();
    }
  }
}
