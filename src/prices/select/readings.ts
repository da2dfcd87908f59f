import { Problem } from '../../errors.ts';
import { Places } from '../../std/places.ts';

/** Large readings that may wait; each holds a place of the gate, which has others to serve. */
export const LARGE_WAITING_MAX = 16;

/**
 * Runs readings of the database a few at a time: the driver parses megabytes of a large one without
 * a pause. The others wait in the order of their arrival, until their requests end.
 */
export class Readings {
  readonly #places: Places;

  constructor(atOnce: number, waitingMax: number) {
    this.#places = new Places(atOnce, { waitingMax, waitMs: Number.POSITIVE_INFINITY });
  }

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
