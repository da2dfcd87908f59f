import { type Decimal, decimalOf, powerOf10 } from '../std/decimal.ts';

/** An exact fraction; the denominator is greater than 0. Not necessarily in lowest terms. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

export const ZERO: Rational = { numerator: 0n, denominator: 1n };

/** A decimal as a fraction. */
export const rationalOf = (decimal: Decimal): Rational => ({
  numerator: decimal.digits,
  denominator: powerOf10(decimal.scale),
});

/** The fraction of a plain decimal text. @throws Error for any other text */
export const rationalText = (text: string): Rational => rationalOf(decimalOf(text));

/** a + b. */
export function plus(a: Rational, b: Rational): Rational {
  if (a.denominator === b.denominator) {
    return { numerator: a.numerator + b.numerator, denominator: a.denominator };
  }
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  };
}

/** a - b. */
export const minus = (a: Rational, b: Rational): Rational =>
  plus(a, { numerator: -b.numerator, denominator: b.denominator });

/** a × b. */
export const times = (a: Rational, b: Rational): Rational => ({
  numerator: a.numerator * b.numerator,
  denominator: a.denominator * b.denominator,
});

/** a / b, for b ≠ 0. */
export const over = (a: Rational, b: Rational): Rational => {
  const sign = b.numerator < 0n ? -1n : 1n;
  return {
    numerator: a.numerator * b.denominator * sign,
    denominator: a.denominator * b.numerator * sign,
  };
};

/** Less than 0 if a < b, greater than 0 if a > b. */
export function compare(a: Rational, b: Rational): number {
  const difference = a.numerator * b.denominator - b.numerator * a.denominator;
  if (difference === 0n) return 0;
  return difference < 0n ? -1 : 1;
}

/** The greatest common divisor of a and b > 0, by Euclid's algorithm. */
export function commonDivisor(a: bigint, b: bigint): bigint {
  let [divisor, rest] = [b, a < 0n ? -a % b : a % b];
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest];
  return divisor;
}

/** In lowest terms. */
export function reduced(value: Rational): Rational {
  const divisor = commonDivisor(value.numerator, value.denominator);
  return { numerator: value.numerator / divisor, denominator: value.denominator / divisor };
}

const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER);

/** Bits of the quotient: more than the 53 of a double. */
const QUOTIENT_BITS = 80;

const bitsOf = (value: bigint): number => value.toString(2).length;

/** The double nearest to a positive fraction. */
export const nearestDouble = (value: Rational): number => quotientOf(reduced(value));

/**
 * The double nearest to a positive fraction, which may be in any terms. The quotient is cut to 80
 * bits and then rounded, so its relative error is at most 2^-53 + 2^-79.
 */
export function quotientOf({ numerator, denominator }: Rational): number {
  if (numerator <= EXACT_MAX && denominator <= EXACT_MAX) {
    return Number(numerator) / Number(denominator);
  }
  const shift = QUOTIENT_BITS + bitsOf(denominator) - bitsOf(numerator);
  const quotient =
    shift >= 0
      ? (numerator << BigInt(shift)) / denominator
      : numerator / (denominator << BigInt(-shift));
  return Number(quotient) * 2 ** -shift;
}
