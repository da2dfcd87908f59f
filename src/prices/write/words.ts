/*
 * ASCII text as words of eight bytes. Most bytes of a point are text that many points share, and
 * storing a word takes as long as storing a byte. A word is a double whose bytes are the
 * characters, because a double may be stored at any offset. No ASCII text is a NaN, whose bits may
 * change.
 *
 * Words end after the text: the buffer has room for seven more bytes, which the next text replaces.
 */

const WORD_BYTES = 8;

/** A text as words. The last one is filled up with spaces. */
export class Words {
  readonly words: Float64Array;
  /** Bytes of the text. */
  readonly length: number;

  /** @param text in ASCII */
  constructor(text: string) {
    const words = Math.ceil(text.length / WORD_BYTES);
    const bytes = Buffer.from(text.padEnd(words * WORD_BYTES), 'latin1');
    this.words = Float64Array.from({ length: words }, (_, index) =>
      bytes.readDoubleLE(index * WORD_BYTES),
    );
    this.length = text.length;
  }
}

/** At most eight letters as one word. */
export const wordOf = (text: string): number => new Words(text).words[0] as number;

const SPACES = wordOf(' ');

/** Writes a text. Returns the offset after it, as all functions here. */
export function putWords(view: DataView, at: number, { words, length }: Words): number {
  for (let index = 0; index < words.length; index += 1) {
    view.setFloat64(at + index * WORD_BYTES, words[index] as number, true);
  }
  return at + length;
}

/** Slots of a cache of texts: days of eleven years. */
const SLOTS = 4_096;

/** Texts by a number that recurs in many series, such as a day. */
export class CachedWords {
  readonly #wordsEach: number;
  readonly #write: (out: Buffer, at: number, key: number) => number;
  readonly #keys = new Float64Array(SLOTS).fill(Number.NaN);
  readonly #words: Float64Array;
  readonly #lengths = new Uint8Array(SLOTS);

  /**
   * @param bytesMax most bytes of a text
   * @param write writes the text of a key, and returns the offset after it
   */
  constructor(bytesMax: number, write: (out: Buffer, at: number, key: number) => number) {
    this.#wordsEach = Math.ceil(bytesMax / WORD_BYTES);
    this.#write = write;
    this.#words = new Float64Array(SLOTS * this.#wordsEach);
  }

  /**
   * Writes the text of a key.
   * @param out the buffer of the view
   * @param day days that differ by less than `SLOTS` have different slots
   */
  put(view: DataView, out: Buffer, at: number, day: number, key: number): number {
    const slot = day & (SLOTS - 1);
    const from = slot * this.#wordsEach;
    if (this.#keys[slot] !== key) return this.#add(view, out, at, slot, key);
    const words = this.#words;
    const end = from + this.#wordsEach;
    for (let index = from, to = at; index < end; index += 1, to += WORD_BYTES) {
      view.setFloat64(to, words[index] as number, true);
    }
    return at + (this.#lengths[slot] as number);
  }

  /** Writes the text of a new key, and reads its words back. */
  #add(view: DataView, out: Buffer, at: number, slot: number, key: number): number {
    const end = this.#write(out, at, key);
    const from = slot * this.#wordsEach;
    // Bytes after the text might make the last word a NaN.
    view.setFloat64(end, SPACES, true);
    for (let index = 0; index < this.#wordsEach; index += 1) {
      const isText = at + index * WORD_BYTES < end;
      this.#words[from + index] = isText ? view.getFloat64(at + index * WORD_BYTES, true) : SPACES;
    }
    this.#keys[slot] = key;
    this.#lengths[slot] = end - at;
    return end;
  }
}
