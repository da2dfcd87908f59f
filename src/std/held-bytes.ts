/** Bytes that an answer may hold without a grant: a slice, which the system takes at once. */
export const UNHELD_BYTES = 65_536;

/** Share of the budget for one holder, so that none can take it from the others. */
const SHARE = 1 / 4;

/** Budget of bytes, of which one holder has at most a share. */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #held = new Map<string, number>();
  #bytes = 0;

  /** @param bytesMax bytes of all holders */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Most bytes of one holder. */
  get shareMax(): number {
    return this.#bytesMax * SHARE;
  }

  /** Takes bytes for a holder; false if there are too few left for it. */
  take(holder: string, bytes: number): boolean {
    const held = (this.#held.get(holder) ?? 0) + bytes;
    if (this.#bytes + bytes > this.#bytesMax || held > this.shareMax) return false;
    this.#held.set(holder, held);
    this.#bytes += bytes;
    return true;
  }

  giveBack(holder: string, bytes: number): void {
    const left = (this.#held.get(holder) ?? 0) - bytes;
    if (left > 0) this.#held.set(holder, left);
    else this.#held.delete(holder);
    this.#bytes -= bytes;
  }
}

/** Gives held memory back. Call it once. */
type GiveBack = () => void;

/**
 * Budget of the memory that answers hold until their clients have read them: everything beyond the
 * slices that are being written.
 */
export class HeldBytes extends ByteBudget {
  /** The objects of each holder, and how often it holds them. */
  readonly #holders = new Map<string, Map<object, number>>();

  /**
   * Grants memory to a holder; null beyond the budget or the holder's share.
   * @param of the object in this memory, which counts once for each holder
   */
  hold(name: string, bytes: number, of: object = {}): GiveBack | null {
    const counts = this.#holders.get(name) ?? new Map<object, number>();
    const count = counts.get(of) ?? 0;
    if (count === 0 && !this.take(name, bytes)) return null;
    this.#holders.set(name, counts.set(of, count + 1));
    return () => {
      const left = (counts.get(of) ?? 0) - 1;
      if (left > 0) {
        counts.set(of, left);
        return;
      }
      counts.delete(of);
      if (counts.size === 0) this.#holders.delete(name);
      this.giveBack(name, bytes);
    };
  }
}
