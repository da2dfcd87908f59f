import { ColumnsBuilder, type SeriesColumns } from './columns.ts';

/** Length of the signature, flags and extension length that begin a binary COPY. */
const HEADER_BYTES = 19;
/** Fields of a row. */
const FIELDS = 7;
const NUMERIC_NEGATIVE = 0x4000;
const NUMERIC_POSITIVE = 0x0000;

const POWERS = Float64Array.from({ length: 23 }, (_, power) => 10 ** power);
const powerOf10 = (exponent: number): number => POWERS[exponent] as number;

/**
 * Reads `NUMERIC` as PostgreSQL sends it: base-10000 digits, the weight of the first, a sign and
 * the number of decimals. Sets `value` to the number times 10^`scale`, an exact integer for the
 * at most 15 significant digits that the schema admits.
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
    // Decimals that the digits read so far reach to; negative left of the decimal point.
    let decimals = -4 * (weight + 1);
    for (let index = 0; index < digits; index += 1) {
      const digit = bytes.readInt16BE(at + 8 + 2 * index);
      decimals += 4;
      // The last group reaches past the scale with zeros: take them off before they overflow.
      const surplus = decimals > scale ? decimals - scale : 0;
      value = value * powerOf10(4 - surplus) + digit / powerOf10(surplus);
      decimals -= surplus;
    }
    if (digits > 0) value *= powerOf10(scale - decimals);
    if (!Number.isSafeInteger(value)) {
      throw new Error('a stored value has more digits than the schema admits');
    }
    this.value = sign === NUMERIC_NEGATIVE ? -value : value;
    this.scale = scale;
  }
}

/** The bytes of a row at some place; Infinity where it goes on in what is still to come. */
function rowLength(bytes: Buffer, start: number): number {
  let at = start + 2;
  for (let field = 0; field < FIELDS; field += 1) {
    if (at + 4 > bytes.length) return Number.POSITIVE_INFINITY;
    at += 4 + Math.max(bytes.readInt32BE(at), 0);
  }
  return at <= bytes.length ? at - start : Number.POSITIVE_INFINITY;
}

const NOTHING = Buffer.alloc(0);

/**
 * Reads the answer to `copy (select price_id, date, low, mid, high, published_at, corrections …)
 * to stdout (format binary)` while it comes, rows of a price together and in date order. Text is
 * never parsed, so no digit is lost.
 */
export class SeriesReader {
  readonly #low = new NumericReader();
  readonly #mid = new NumericReader();
  readonly #high = new NumericReader();
  readonly #series = new Map<number, SeriesColumns>();
  readonly #builder = new ColumnsBuilder();
  #current = Number.NaN;
  /** What came of a row that is not whole yet. */
  #rest = NOTHING;
  #isBegun = false;
  #isEnded = false;

  /** Takes what comes next. */
  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    if (!this.#isBegun && bytes.length >= HEADER_BYTES) {
      this.#isBegun = true;
      at = HEADER_BYTES;
    }
    while (this.#isBegun && !this.#isEnded && at + 2 <= bytes.length) {
      if (bytes.readInt16BE(at) === -1) {
        this.#isEnded = true;
        break;
      }
      const length = rowLength(bytes, at);
      if (at + length > bytes.length) break;
      this.#row(bytes, at + 2);
      at += length;
    }
    // A copy: the chunk may be a part of much more.
    this.#rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
  }

  /** All series. @throws when the answer was cut off */
  end(): Map<number, SeriesColumns> {
    if (!this.#isEnded) throw new Error('the answer of the database is not whole');
    this.#finish();
    return this.#series;
  }

  #finish(): void {
    if (!Number.isNaN(this.#current)) this.#series.set(this.#current, this.#builder.finish());
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
    if (priceId !== this.#current) {
      this.#finish();
      this.#current = priceId;
    }
    const scale = Math.max(
      mid.scale,
      lowBytes >= 0 ? low.scale : 0,
      highBytes >= 0 ? high.scale : 0,
    );
    this.#builder.add(
      day,
      lowBytes >= 0 ? low.value * powerOf10(scale - low.scale) : Number.NaN,
      mid.value * powerOf10(scale - mid.scale),
      highBytes >= 0 ? high.value * powerOf10(scale - high.scale) : Number.NaN,
      scale,
      micros,
      corrections,
    );
  }
}

/** Reads series from the chunks of such an answer. */
export async function columnsOf(
  chunks: AsyncIterable<Buffer>,
): Promise<ReadonlyMap<number, SeriesColumns>> {
  const reader = new SeriesReader();
  for await (const chunk of chunks) reader.push(chunk);
  return reader.end();
}
