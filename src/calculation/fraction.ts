import {
  commonDivisor,
  compare,
  type Rational,
  rationalOf,
  reduced,
  ZERO,
} from '../conversion/rational.ts';
import { type Decimal, decimalText, powerOf10, trimmed } from '../std/decimal.ts';

/*
 * The rules of calculations, without knowledge of requests or the database: exact fractions (this
 * file), `period.ts` (the days of a period), `unit.ts` (products of currencies and units),
 * `formula.ts` (the parser), `evaluate.ts` (its unit and value), and `molar-mass.ts`.
 */

/** Most bits of a numerator or a denominator. */
const BITS_MAX = 65_536;

/** A number that has more than `BITS_MAX` bits, or takes too much work to compute. */
export class TooLongError extends Error {
  override readonly name = 'TooLongError';
}

/** Length of a number in bits, to the next multiple of 4. */
const bitsOf = (value: bigint): number => 4 * value.toString(16).length;

/** Bits of the longer part of a fraction. */
export const fractionBits = ({ numerator, denominator }: Rational): number =>
  Math.max(bitsOf(numerator), bitsOf(denominator));

/** @throws TooLongError */
function bounded(value: Rational): Rational {
  if (fractionBits(value) > BITS_MAX) throw new TooLongError('the number is too long');
  return value;
}

/**
 * a + b in lowest terms, for terms in lowest terms. Knuth, The Art of Computer Programming, 4.5.1:
 * the divisors are as small as the smaller denominator.
 * @throws TooLongError
 */
export function sum(a: Rational, b: Rational): Rational {
  const common = commonDivisor(a.denominator, b.denominator);
  const [ofA, ofB] = [a.denominator / common, b.denominator / common];
  const numerator = a.numerator * ofB + b.numerator * ofA;
  const divisor = commonDivisor(numerator, common);
  return bounded({
    numerator: numerator / divisor,
    denominator: ofA * (b.denominator / divisor),
  });
}

/** -a. */
export const negated = ({ numerator, denominator }: Rational): Rational => ({
  numerator: -numerator,
  denominator,
});

/** a × b in lowest terms, for factors in lowest terms. @throws TooLongError */
export function product(a: Rational, b: Rational): Rational {
  const one = commonDivisor(a.numerator, b.denominator);
  const other = commonDivisor(b.numerator, a.denominator);
  return bounded({
    numerator: (a.numerator / one) * (b.numerator / other),
    denominator: (a.denominator / other) * (b.denominator / one),
  });
}

/** 1 / a, for a ≠ 0. */
export const inverse = ({ numerator, denominator }: Rational): Rational =>
  numerator < 0n
    ? { numerator: -denominator, denominator: -numerator }
    : { numerator: denominator, denominator: numerator };

/** The sum of fractions in lowest terms. @throws TooLongError */
function total(values: readonly Rational[]): Rational {
  // Most prices have few different denominators, and integers add without a division.
  const byDenominator = new Map<bigint, bigint>();
  for (const { numerator, denominator } of values) {
    byDenominator.set(denominator, (byDenominator.get(denominator) ?? 0n) + numerator);
  }
  let result = ZERO;
  for (const [denominator, numerator] of byDenominator) {
    result = sum(result, reduced({ numerator, denominator }));
  }
  return result;
}

/** The mean of at least one fraction, in lowest terms. @throws TooLongError */
export const mean = (values: readonly Rational[]): Rational =>
  product(total(values), { numerator: 1n, denominator: BigInt(values.length) });

/** The least (`sign` 1) or greatest (`sign` -1) of at least one fraction. */
export const extreme = (values: readonly Rational[], sign: 1 | -1): Rational =>
  values.reduce((best, each) => (sign * compare(each, best) < 0 ? each : best));

/**
 * Rounding of a number between two neighbours. `half-even`: to the nearer, in a tie to the even
 * digit. `half-up`: to the nearer, in a tie away from zero. `down`: towards zero. `up`: away from
 * zero.
 */
export type RoundingMode = 'half-even' | 'half-up' | 'down' | 'up';

export interface FixedRounding {
  readonly decimals: number;
  readonly mode: RoundingMode;
}

function isRoundedAway(digits: bigint, rest: bigint, denominator: bigint, mode: RoundingMode) {
  if (mode === 'up' || mode === 'down') return mode === 'up' && rest > 0n;
  const twice = 2n * rest;
  if (twice !== denominator) return twice > denominator;
  return mode === 'half-up' || digits % 2n === 1n;
}

/** A fraction rounded to decimals; without trailing zeros. */
export function roundedTo(value: Rational, { decimals, mode }: FixedRounding): Decimal {
  const isNegative = value.numerator < 0n;
  const amount = isNegative ? -value.numerator : value.numerator;
  const scaled = amount * powerOf10(decimals);
  let digits = scaled / value.denominator;
  const rest = scaled - digits * value.denominator;
  if (isRoundedAway(digits, rest, value.denominator, mode)) digits += 1n;
  return trimmed({ digits: isNegative ? -digits : digits, scale: decimals });
}

/** A decimal as a fraction in lowest terms. */
const fractionOf = (decimal: Decimal): Rational => reduced(rationalOf(decimal));

/** A fraction rounded to decimals, as a fraction in lowest terms. */
export const roundedFraction = (value: Rational, rounding: FixedRounding): Rational =>
  fractionOf(roundedTo(value, rounding));

/** The multiplicity of a factor in a number, and the quotient without it. */
function withoutFactor(value: bigint, factor: bigint): readonly [times: number, rest: bigint] {
  let [times, rest] = [0, value];
  while (rest % factor === 0n) {
    rest /= factor;
    times += 1;
  }
  return [times, rest];
}

/** A fraction in lowest terms as a decimal if it ends, else `numerator/denominator`. */
export function exactText({ numerator, denominator }: Rational): string {
  const [fives, withoutFives] = withoutFactor(denominator, 5n);
  const [twos, rest] = withoutFactor(withoutFives, 2n);
  if (rest !== 1n) return `${numerator}/${denominator}`;
  const scale = Math.max(twos, fives);
  // Not `powerOf10`, which keeps every power up to the greatest.
  return decimalText({ digits: (numerator * 10n ** BigInt(scale)) / denominator, scale });
}
