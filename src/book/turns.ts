import { Slice, turn } from '../std/turns.ts';

/** Points of work between two turns of the event loop: some milliseconds. */
const POINTS_PER_TURN = 20_000;

/** Work of all requests. */
export interface TurnCounts {
  turns: number;
  /** Most points of work between two turns. */
  longest: number;
  /** Points that were encoded, converted or compressed. */
  points: number;
}

/**
 * Counts the synchronous work of one request, so that it yields to the event loop in time. The unit
 * of work is one encoded point; more expensive work counts as more points.
 */
export class Turns {
  readonly #counts: TurnCounts;
  #spent = 0;
  readonly #slice = new Slice();

  constructor(counts: TurnCounts) {
    this.#counts = counts;
  }

  spend(points: number): void {
    this.#spent += points;
    this.#counts.points += points;
    this.#counts.longest = Math.max(this.#counts.longest, this.#spent);
  }

  /** True if the counted work is due for a turn: the same on every machine. */
  get isDue(): boolean {
    return this.#spent >= POINTS_PER_TURN;
  }

  /** True if a turn is due by the count or by the clock: slow machines need more turns. */
  get isLong(): boolean {
    return this.isDue || this.#slice.isOver;
  }

  /** Yields to the event loop. */
  async pass(): Promise<void> {
    this.#spent = 0;
    this.#counts.turns += 1;
    await turn();
    this.#slice.restart();
  }
}
