import { ColumnsBuilder, type SeriesColumns } from './columns.ts';

/** Length of the signature, flags and extension length that begin a binary COPY. */
const HEADER_BYTES = 19;
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

/**
 * Reads the answer to `copy (select price_id, date, low, mid, high, published_at, corrections …)
 * to stdout (format binary)`, rows of a price together and in date order.
 * @param bytes the whole answer; text is never parsed, so no digit is lost
 */
export function columnsOf(bytes: Buffer): Map<number, SeriesColumns> {
  const builders = new Map<number, ColumnsBuilder>();
  const low = new NumericReader();
  const mid = new NumericReader();
  const high = new NumericReader();
  let at = HEADER_BYTES;
  let builder: ColumnsBuilder | undefined;
  let current = Number.NaN;
  for (let fields = bytes.readInt16BE(at); fields !== -1; fields = bytes.readInt16BE(at)) {
    const priceId = bytes.readInt32BE(at + 6);
    const day = bytes.readInt32BE(at + 14);
    at += 18;
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
    at += 20;
    if (priceId !== current) {
      builder = new ColumnsBuilder();
      builders.set(priceId, builder);
      current = priceId;
    }
    const scale = Math.max(
      mid.scale,
      lowBytes >= 0 ? low.scale : 0,
      highBytes >= 0 ? high.scale : 0,
    );
    builder?.add(
      day,
      lowBytes >= 0 ? low.value * powerOf10(scale - low.scale) : Number.NaN,
      mid.value * powerOf10(scale - mid.scale),
      highBytes >= 0 ? high.value * powerOf10(scale - high.scale) : Number.NaN,
      scale,
      micros,
      corrections,
    );
  }
  return new Map([...builders].map(([id, each]) => [id, each.finish()]));
}
