/* Exact decimals: powers of ten as doubles and as bigints, and decimals of any length. */

/** Powers of ten that a double holds exactly, by exponent: 10^0 to 10^22. */
export const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);

/** Greatest exponent of `POWERS`. */
export const EXACT_POWER_MAX = 22;

/** 10^`exponent` as a double, exactly. @param exponent from 0 to `EXACT_POWER_MAX` */
export const exactPower = (exponent: number): number => POWERS[exponent] as number;

const bigPowers: bigint[] = [1n];

/** 10^`exponent` as a bigint. @param exponent an integer of at least 0 */
export function powerOf10(exponent: number): bigint {
  for (let next = bigPowers.length; next <= exponent; next += 1) {
    bigPowers.push(10n ** BigInt(next));
  }
  return bigPowers[exponent] as bigint;
}

/** An exact decimal: `digits` / 10^`scale`. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const PLAIN = /^-?\d+(?:\.\d+)?$/;

/**
 * Parses a plain decimal such as `-0.45359237`.
 * @throws Error for any other text
 */
export function decimalOf(text: string): Decimal {
  if (!PLAIN.test(text)) throw new Error('not a plain decimal');
  const point = text.indexOf('.');
  if (point < 0) return { digits: BigInt(text), scale: 0 };
  const digits = BigInt(text.slice(0, point) + text.slice(point + 1));
  return { digits, scale: text.length - point - 1 };
}

/** The same number with the fewest decimals. */
export function trimmed(decimal: Decimal): Decimal {
  let { digits, scale } = decimal;
  while (scale > 0 && digits % 10n === 0n) {
    digits /= 10n;
    scale -= 1;
  }
  return { digits, scale };
}

/** A decimal as text: no exponent, no trailing zeros, no `-0`. */
export function decimalText(decimal: Decimal): string {
  const { digits, scale } = trimmed(decimal);
  if (scale === 0) return String(digits);
  const amount = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0');
  const sign = digits < 0n ? '-' : '';
  return `${sign}${amount.slice(0, -scale)}.${amount.slice(-scale)}`;
}
