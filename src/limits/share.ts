/** What is left of what is known after each turn: half of it after about seven. */
const KEPT = 0.9;

/** Which part of the requests came to other instances, going by what was told of the last ones. */
export class Share {
  #here = 0;
  #elsewhere = 0;

  /** Whether anything is known of it: requests came here, and others had the time to tell. */
  get isKnown(): boolean {
    return this.#here > 0;
  }

  /** Counts what others told. */
  addElsewhere(count: number): void {
    this.#elsewhere += count;
  }

  /** Counts what came here, of which others had the time to tell, and ends a turn. */
  endTurn(here: number): void {
    this.#here = this.#here * KEPT + here;
    this.#elsewhere *= KEPT;
  }

  /** How many came elsewhere, at the most that is likely, while so many came here. */
  elsewhere(here: number): number {
    if (this.#elsewhere < 1 || !this.isKnown) return 0;
    return Math.ceil((here * this.#elsewhere) / this.#here) + 1;
  }
}
