/** Bytes that an answer may hold without a grant: a slice, which the system takes at once. */
export const UNHELD_BYTES = 65_536;

/** Share of the budget for one holder, so that none can take it from the others. */
const SHARE = 1 / 4;

/** The memory that one holder has for an object, and how often it was granted. */
interface Held {
  readonly bytes: number;
  count: number;
}

/** Gives held memory back. Call it once. */
type GiveBack = () => void;

/**
 * Budget of the memory that answers hold until their clients have read them: everything beyond the
 * slices that are being written.
 */
export class HeldBytes {
  readonly #bytesMax: number;
  readonly #holders = new Map<string, { bytes: number; readonly objects: Map<object, Held> }>();
  #bytes = 0;

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

  /**
   * Grants memory to a holder; null beyond the budget or the holder's share.
   * @param of the object in this memory, which counts once for each holder
   */
  hold(name: string, bytes: number, of: object = {}): GiveBack | null {
    const holder = this.#holders.get(name) ?? { bytes: 0, objects: new Map<object, Held>() };
    const held = holder.objects.get(of) ?? { bytes, count: 0 };
    if (held.count === 0) {
      if (this.#bytes + bytes > this.#bytesMax || holder.bytes + bytes > this.shareMax) return null;
      holder.objects.set(of, held);
      this.#holders.set(name, holder);
      holder.bytes += bytes;
      this.#bytes += bytes;
    }
    held.count += 1;
    return () => {
      held.count -= 1;
      if (held.count > 0) return;
      holder.objects.delete(of);
      holder.bytes -= held.bytes;
      this.#bytes -= held.bytes;
      if (holder.objects.size === 0) this.#holders.delete(name);
    };
  }
}
