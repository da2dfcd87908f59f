/** Beyond so many requests the older half of what is known counts less and less. */
const REQUESTS_MAX = 400;

/** Which part of the requests came to other instances, going by what was told of the last ones. */
export class Share {
  #here = 0;
  #elsewhere = 0;

  /** Whether anything is known of it: requests came here, and others had the time to tell. */
  get isKnown(): boolean {
    return this.#here > 0;
  }

  add(here: number, elsewhere: number): void {
    this.#here += here;
    this.#elsewhere += elsewhere;
    if (this.#here + this.#elsewhere < REQUESTS_MAX) return;
    this.#here /= 2;
    this.#elsewhere /= 2;
  }

  /** How many came elsewhere, at the most that is likely, while so many came here. */
  elsewhere(here: number): number {
    if (this.#elsewhere < 1 || !this.isKnown) return 0;
    return Math.ceil((here * this.#elsewhere) / this.#here) + 1;
  }
}
