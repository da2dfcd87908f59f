/**
 * An object that a budget may evict. `older` and `newer` are the links of the budget's LRU list.
 */
export abstract class CacheEntry {
  /** An estimate of its memory in bytes. */
  abstract bytes: number;
  /** Removes it from the collection that holds it; the budget calls this when it evicts. */
  abstract detach(): void;
  older: CacheEntry | null = null;
  newer: CacheEntry | null = null;
  /** The budget that it counts towards. */
  budget: Budget | null = null;
}

interface BudgetState {
  readonly bytes: number;
  readonly limit: number;
  readonly entries: number;
  readonly evictions: number;
}

/** Bytes of the objects around the bytes of one entry. */
export const OVERHEAD_BYTES = 256;

/** Bounds the memory of all entries by bytes. Evicts the least recently used entry first. */
export class Budget {
  readonly #limit: number;
  #bytes = 0;
  #entries = 0;
  #evictions = 0;
  #oldest: CacheEntry | null = null;
  #newest: CacheEntry | null = null;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get state(): BudgetState {
    return {
      bytes: this.#bytes,
      limit: this.#limit,
      entries: this.#entries,
      evictions: this.#evictions,
    };
  }

  /** Adds an entry. Returns false, and evicts nothing, if the entry alone exceeds the limit. */
  add(entry: CacheEntry): boolean {
    if (entry.bytes > this.#limit) return false;
    entry.budget = this;
    this.#link(entry);
    this.#bytes += entry.bytes;
    this.#entries += 1;
    this.#makeRoom(entry);
    return true;
  }

  /** Evicts entries until the limit holds, except the entry that needs the room. */
  #makeRoom(entry: CacheEntry): void {
    while (this.#bytes > this.#limit && this.#oldest !== null && this.#oldest !== entry) {
      this.#evict(this.#oldest);
    }
  }

  #evict(entry: CacheEntry): void {
    this.#evictions += 1;
    this.remove(entry);
    entry.detach();
  }

  /** Changes the size of an entry. */
  resize(entry: CacheEntry, bytes: number): void {
    if (entry.budget === this) this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    this.#makeRoom(entry);
  }

  /** Marks an entry as the most recently used. */
  use(entry: CacheEntry): void {
    if (entry.budget !== this || this.#newest === entry) return;
    this.#unlink(entry);
    this.#link(entry);
  }

  /** Removes an entry that its owner no longer needs. */
  remove(entry: CacheEntry): void {
    if (entry.budget !== this) return;
    entry.budget = null;
    this.#unlink(entry);
    this.#bytes -= entry.bytes;
    this.#entries -= 1;
  }

  #link(entry: CacheEntry): void {
    entry.older = this.#newest;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  #unlink(entry: CacheEntry): void {
    const { older, newer } = entry;
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
    entry.older = null;
    entry.newer = null;
  }
}
