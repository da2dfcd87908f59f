/** Something remembered: its size, and how it is forgotten. The links are those of the budget. */
export abstract class Remembered {
  /** Bytes that it holds, as well as they can be known. */
  abstract bytes: number;
  /** Takes it from where it is found; called when the budget gives it up. */
  abstract forget(): void;
  /** Whether it holds parts of others, which are not freed before it goes. */
  readonly holdsOthers: boolean = false;
  older: Remembered | null = null;
  newer: Remembered | null = null;
  /** The budget that holds it. */
  in: Budget | null = null;
}

/** What a budget tells of itself. */
interface BudgetState {
  readonly bytes: number;
  readonly limit: number;
  readonly things: number;
  readonly evictions: number;
}

/** Bytes of the objects around the bytes of one remembered thing. */
export const OVERHEAD_BYTES = 256;

/**
 * Bounds everything that is remembered by bytes: what was used longest ago is forgotten first,
 * whatever it is.
 */
export class Budget {
  readonly #limit: number;
  #bytes = 0;
  #things = 0;
  #evictions = 0;
  readonly #holders = new Set<Remembered>();
  #oldest: Remembered | null = null;
  #newest: Remembered | null = null;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get state(): BudgetState {
    const [bytes, limit, things, evictions] = [
      this.#bytes,
      this.#limit,
      this.#things,
      this.#evictions,
    ];
    return { bytes, limit, things, evictions };
  }

  /** Takes a thing in; false, and nothing is forgotten for it, where it alone is too much. */
  add(thing: Remembered): boolean {
    if (thing.bytes > this.#limit) return false;
    thing.in = this;
    this.#link(thing);
    if (thing.holdsOthers) this.#holders.add(thing);
    this.#bytes += thing.bytes;
    this.#things += 1;
    this.#makeRoom(thing);
    return true;
  }

  /** Forgets what was used longest ago, but the thing that needs the room. */
  #makeRoom(thing: Remembered): void {
    if (this.#bytes <= this.#limit) return;
    for (const holder of this.#holders) if (holder !== thing) this.#evict(holder);
    while (this.#bytes > this.#limit && this.#oldest !== null && this.#oldest !== thing) {
      this.#evict(this.#oldest);
    }
  }

  #evict(thing: Remembered): void {
    this.#evictions += 1;
    this.remove(thing);
    thing.forget();
  }

  /** Takes note that a thing holds more or fewer bytes than before. */
  resize(thing: Remembered, bytes: number): void {
    if (thing.in === this) this.#bytes += bytes - thing.bytes;
    thing.bytes = bytes;
    this.#makeRoom(thing);
  }

  /** Notes that a thing was used. */
  use(thing: Remembered): void {
    if (thing.in !== this || this.#newest === thing) return;
    this.#unlink(thing);
    this.#link(thing);
  }

  /** Gives a thing up that is not needed any more. */
  remove(thing: Remembered): void {
    if (thing.in !== this) return;
    thing.in = null;
    if (thing.holdsOthers) this.#holders.delete(thing);
    this.#unlink(thing);
    this.#bytes -= thing.bytes;
    this.#things -= 1;
  }

  #link(thing: Remembered): void {
    thing.older = this.#newest;
    if (this.#newest) this.#newest.newer = thing;
    else this.#oldest = thing;
    this.#newest = thing;
  }

  #unlink(thing: Remembered): void {
    const { older, newer } = thing;
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
    thing.older = null;
    thing.newer = null;
  }
}
