import type { Columns } from '../../conversion/columns.ts';
import { exactPower } from '../../std/decimal.ts';
import { Slice } from '../../std/turns.ts';
import { SeriesCollector } from './collector.ts';

/** Length of the signature, flags and extension length that begin a binary COPY. */
const HEADER_BYTES = 19;
/** Fields of a row. */
const FIELDS = 7;
const NUMERIC_NEGATIVE = 0x4000;
const NUMERIC_POSITIVE = 0x0000;

/**
 * Parses the stream of `copy (select price_id, date, low, mid, high, published_at, corrections …)
 * to stdout (format binary)`, in any order. It parses no text, so it loses no digit.
 */
export class SeriesReader {
  readonly #low = new NumericReader();
  readonly #mid = new NumericReader();
  readonly #high = new NumericReader();
  readonly #series = new SeriesCollector();
  /** The bytes of an incomplete row. */
  #rest = NOTHING;
  #hasHeader = false;
  #isEnded = false;

  /** Parses the next chunk. */
  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    if (!this.#hasHeader && bytes.length >= HEADER_BYTES) {
      this.#hasHeader = true;
      at = HEADER_BYTES;
    }
    while (this.#hasHeader && !this.#isEnded && at + 2 <= bytes.length) {
      if (bytes.readInt16BE(at) === -1) {
        this.#isEnded = true;
        break;
      }
      const length = rowLength(bytes, at);
      if (at + length > bytes.length) break;
      this.#row(bytes, at + 2);
      at += length;
    }
    // A copy, because the chunk may be a part of a larger buffer.
    this.#rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
  }

  /** All series, by price id. @throws Error if the stream is incomplete */
  async end(): Promise<ReadonlyMap<number, Columns>> {
    if (!this.#isEnded) throw new Error('the stream of the database is incomplete');
    const all = new Map<number, Columns>();
    const slice = new Slice();
    // Points that arrive in another order are sorted, which is long for many prices.
    for (const [priceId, columns] of this.#series.series()) {
      all.set(priceId, columns);
      if (slice.isOver) await slice.yieldIfOver();
    }
    return all;
  }

  #row(bytes: Buffer, start: number): void {
    const priceId = bytes.readInt32BE(start + 4);
    const day = bytes.readInt32BE(start + 12);
    let at = start + 16;
    const [low, mid, high] = [this.#low, this.#mid, this.#high];
    const lowBytes = bytes.readInt32BE(at);
    if (lowBytes >= 0) low.read(bytes, at + 4);
    at += 4 + Math.max(lowBytes, 0);
    mid.read(bytes, at + 4);
    at += 4 + bytes.readInt32BE(at);
    const highBytes = bytes.readInt32BE(at);
    if (highBytes >= 0) high.read(bytes, at + 4);
    at += 4 + Math.max(highBytes, 0);
    const micros = bytes.readInt32BE(at + 4) * 4_294_967_296 + bytes.readUInt32BE(at + 8);
    const corrections = bytes.readInt32BE(at + 16);
    const scale = Math.max(
      mid.scale,
      lowBytes >= 0 ? low.scale : 0,
      highBytes >= 0 ? high.scale : 0,
    );
    this.#series
      .of(priceId)
      .add(
        day,
        lowBytes >= 0 ? low.value * exactPower(scale - low.scale) : Number.NaN,
        mid.value * exactPower(scale - mid.scale),
        highBytes >= 0 ? high.value * exactPower(scale - high.scale) : Number.NaN,
        scale,
        micros,
        corrections,
      );
  }
}

/**
 * Parses the binary format of `NUMERIC`: base-10000 digits, the weight of the first digit, a sign
 * and the number of decimals. Sets `value` to the number times 10^`scale`. It is an exact integer:
 * the schema admits at most 15 significant digits.
 */
class NumericReader {
  value = 0;
  scale = 0;

  read(bytes: Buffer, at: number): void {
    const digits = bytes.readInt16BE(at);
    const weight = bytes.readInt16BE(at + 2);
    const sign = bytes.readUInt16BE(at + 4);
    const scale = bytes.readInt16BE(at + 6);
    if (sign !== NUMERIC_POSITIVE && sign !== NUMERIC_NEGATIVE) {
      throw new Error('a stored value is not a finite number');
    }
    let value = 0;
    // Decimals covered by the digits read so far; negative left of the decimal point.
    let decimals = -4 * (weight + 1);
    for (let index = 0; index < digits; index += 1) {
      const digit = bytes.readInt16BE(at + 8 + 2 * index);
      decimals += 4;
      // The last group may have zeros beyond the scale. Removing them first prevents an overflow.
      const surplus = decimals > scale ? decimals - scale : 0;
      value = value * exactPower(4 - surplus) + digit / exactPower(surplus);
      decimals -= surplus;
    }
    if (digits > 0) value *= exactPower(scale - decimals);
    if (!Number.isSafeInteger(value)) {
      throw new Error('a stored value has more digits than the schema admits');
    }
    this.value = sign === NUMERIC_NEGATIVE ? -value : value;
    this.scale = scale;
  }
}

/** The length of a row in bytes; Infinity if the row is not complete. */
function rowLength(bytes: Buffer, start: number): number {
  let at = start + 2;
  for (let field = 0; field < FIELDS; field += 1) {
    if (at + 4 > bytes.length) return Number.POSITIVE_INFINITY;
    at += 4 + Math.max(bytes.readInt32BE(at), 0);
  }
  return at <= bytes.length ? at - start : Number.POSITIVE_INFINITY;
}

const NOTHING = Buffer.alloc(0);

/** Reads series, by price id, from the chunks of such a stream. */
export async function columnsOf(
  chunks: AsyncIterable<Buffer>,
): Promise<ReadonlyMap<number, Columns>> {
  const reader = new SeriesReader();
  for await (const chunk of chunks) reader.push(chunk);
  return reader.end();
}
