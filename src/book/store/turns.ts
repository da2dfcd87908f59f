import { Slice, turn } from '../../std/turns.ts';

/** Points of work between two turns of the event loop: some milliseconds. */
const POINTS_PER_TURN = 20_000;

/** How often the event loop was given back, by all who share it. */
export interface TurnCounts {
  turns: number;
  /** Most points of work between two turns. */
  longest: number;
  /** Points that were encoded, converted or compressed. */
  points: number;
}

/**
 * Keeps account of work that holds the event loop, so that nobody else waits long for it. Work is
 * counted in points encoded; what costs more counts as more.
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

  /** Whether it is time to let others run, by the account: the same on every machine. */
  get isDue(): boolean {
    return this.#spent >= POINTS_PER_TURN;
  }

  /** The same by the clock as well, where a slow machine needs more turns. */
  get isLong(): boolean {
    return this.isDue || this.#slice.isOver;
  }

  /** Lets others run. */
  async pass(): Promise<void> {
    this.#spent = 0;
    this.#counts.turns += 1;
    await turn();
    this.#slice.begin();
  }
}
