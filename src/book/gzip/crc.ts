/*
 * CRC-32 of bytes that lie one after the other, from the CRC of each part: what zlib calls
 * crc32_combine. Polynomials over GF(2) with their bits reversed, so that bit 31 is x^0; as signed
 * integers, which are several times as fast.
 */
const POLYNOMIAL = 0xed_b8_83_20 | 0;
const ONE = 0x80_00_00_00 | 0;

/** The product of two polynomials, modulo the one of CRC-32. */
function times(a: number, b: number): number {
  let product = 0;
  let power = b | 0;
  // The bits of a from the highest on: the sign is the next of them.
  for (let rest = a | 0; rest !== 0; rest <<= 1) {
    if (rest < 0) product ^= power;
    power = (power >>> 1) ^ (-(power & 1) & POLYNOMIAL);
  }
  return product;
}

/** x^(8 · 2^n), by n. */
const BYTES: number[] = [];
for (let power = 0x00_80_00_00; BYTES.length < 48; power = times(power, power)) BYTES.push(power);

/** What the CRC of some bytes is multiplied by when so many others come after them. */
export function shiftOf(bytes: number): number {
  let shift = ONE;
  let rest = bytes;
  for (let n = 0; rest > 0; n += 1) {
    if (rest % 2 === 1) shift = times(BYTES[n] as number, shift);
    rest = Math.floor(rest / 2);
  }
  return shift;
}

/** The CRC of some bytes and others after them. @param shift `shiftOf` the number of the others */
export const joinedCrc = (before: number, after: number, shift: number): number =>
  times(shift, before) ^ after;

/** `shiftOf` the number of some bytes and others together, from that of each. */
export const joinedShift = times;
