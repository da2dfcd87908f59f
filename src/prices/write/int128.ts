import type { DecimalColumn } from '../../conversion/columns.ts';
import { POWERS } from '../../std/decimal.ts';

/** Digits of a number of 128 bits at most, as Parquet and Arrow allow them. */
export const PRECISION = 38;

/** Bytes of a number. */
export const INT128_BYTES = 16;

const LIMBS = 8;
const LIMB_BITS = 16;
const LIMB_MASK = 0xffff;
const LIMB = 65_536;

/** Powers of ten that one step multiplies by: a limb times the last of them fits 31 bits. */
const STEPS = [1, 10, 100, 1_000, 10_000] as const;
const STEP = STEPS.length - 1;

const BEYOND = 10n ** BigInt(PRECISION);

/**
 * A decimal as a whole number of its last decimal.
 * @returns null for more decimals than the scale, or more digits than 38
 */
export function scaledText(text: string, scale: number): bigint | null {
  const [whole = '', decimals = ''] = text.split('.');
  if (decimals.length > scale) return null;
  const value = BigInt(whole + decimals.padEnd(scale, '0'));
  return value < BEYOND && value > -BEYOND ? value : null;
}

/**
 * A whole number of 128 bits in two's complement, as limbs of 16 bits, the lowest first. Exact:
 * limbs are multiplied as integers of 32 bits, ten times as fast as a BigInt.
 */
export class Int128 {
  readonly #limbs = new Int32Array(LIMBS);

  /** Sets `whole` × 10^`power`. @param whole a safe integer @param power 0 to 18 */
  #set(whole: number, power: number): void {
    const limbs = this.#limbs;
    const product = whole * (POWERS[power] as number);
    // Up to 2^53 the product of two doubles that are whole is exact.
    const isExact = Math.abs(product) <= Number.MAX_SAFE_INTEGER;
    let rest = Math.abs(isExact ? product : whole);
    for (let at = 0; at < LIMBS; at += 1) {
      const above = Math.floor(rest / LIMB);
      limbs[at] = rest - above * LIMB;
      rest = above;
    }
    for (let left = isExact ? 0 : power; left > 0; left -= STEP) {
      const factor = STEPS[Math.min(left, STEP)] as number;
      let carry = 0;
      for (let at = 0; at < LIMBS; at += 1) {
        const product = (limbs[at] as number) * factor + carry;
        limbs[at] = product & LIMB_MASK;
        carry = product >>> LIMB_BITS;
      }
    }
    if (whole < 0) this.#negate();
  }

  #negate(): void {
    const limbs = this.#limbs;
    let carry = 1;
    for (let at = 0; at < LIMBS; at += 1) {
      const sum = (~(limbs[at] as number) & LIMB_MASK) + carry;
      limbs[at] = sum & LIMB_MASK;
      carry = sum >>> LIMB_BITS;
    }
  }

  /** Sets a decimal as a whole number of its last decimal; false if it does not fit. */
  setDecimal(text: string, scale: number): boolean {
    let rest = scaledText(text, scale);
    if (rest === null) return false;
    for (let at = 0; at < LIMBS; at += 1) {
      this.#limbs[at] = Number(rest & 0xffffn);
      rest >>= 16n;
    }
    return true;
  }

  /** Sets a number of a column that is not null; false if it does not fit. */
  setPoint(column: DecimalColumn, index: number, scale: number): boolean {
    let whole = column.scaled[index] as number;
    if (whole === Number.POSITIVE_INFINITY) {
      const text = column.wide?.get(index);
      return text !== undefined && this.setDecimal(text, scale);
    }
    let decimals = column.scale[index] as number;
    for (; decimals > scale && whole % 10 === 0; decimals -= 1) whole /= 10;
    if (decimals > scale) return false;
    this.#set(whole, scale - decimals);
    return true;
  }

  /** Writes the number with its highest byte first. */
  writeBigEndian(bytes: Buffer, offset: number): void {
    for (let at = 0; at < LIMBS; at += 1) {
      const limb = this.#limbs[LIMBS - 1 - at] as number;
      bytes[offset + 2 * at] = limb >>> 8;
      bytes[offset + 2 * at + 1] = limb;
    }
  }

  /** Writes the number with its lowest byte first. */
  writeLittleEndian(bytes: Buffer, offset: number): void {
    for (let at = 0; at < LIMBS; at += 1) {
      const limb = this.#limbs[at] as number;
      bytes[offset + 2 * at] = limb;
      bytes[offset + 2 * at + 1] = limb >>> 8;
    }
  }
}
