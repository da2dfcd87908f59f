/**
 * A second way to the same numbers: decimal digits as text, long division, no code of the
 * service. Slow, and simple enough to be trusted.
 */

/** An integer and how many of its digits are decimals. */
const parts = (text: string): [bigint, number] => {
  const [whole = '', fraction = ''] = text.split('.');
  return [BigInt(whole + fraction), fraction.length];
};

/** Digits after the decimal point that the division is carried to before it is cut. */
const DEPTH = 80;

/** A numerator over a denominator. */
type Fraction = readonly [numerator: bigint, denominator: bigint];

/** Product of some decimals divided by the product of others. */
function quotient(factors: readonly string[], divisors: readonly string[]): Fraction {
  let numerator = 1n;
  let denominator = 1n;
  let exponent = 0;
  for (const text of factors) {
    const [digits, scale] = parts(text);
    numerator *= digits;
    exponent -= scale;
  }
  for (const text of divisors) {
    const [digits, scale] = parts(text);
    denominator *= digits;
    exponent += scale;
  }
  if (exponent >= 0) numerator *= 10n ** BigInt(exponent);
  else denominator *= 10n ** BigInt(-exponent);
  return [numerator, denominator];
}

/** A fraction as exact digits and a rest or none. */
function divided([top, denominator]: Fraction) {
  const numerator = top * 10n ** BigInt(DEPTH);
  const negative = numerator < 0n !== denominator < 0n && numerator !== 0n;
  const amount = numerator < 0n ? -numerator : numerator;
  const by = denominator < 0n ? -denominator : denominator;
  const digits = String(amount / by).padStart(DEPTH + 1, '0');
  return { negative, digits, rest: amount % by !== 0n };
}

const tidy = (sign: string, whole: string, fraction: string): string => {
  const decimals = fraction.replace(/0+$/, '');
  const integer = whole.replace(/^0+(?=\d)/, '');
  if (integer === '0' && decimals === '') return '0';
  return decimals === '' ? sign + integer : `${sign}${integer}.${decimals}`;
};

/** A fraction on the wire, by the contract. */
function rounded(fraction: Fraction, decimals: number | null): string {
  const { negative, digits, rest } = divided(fraction);
  const wholeDigits = digits.length - DEPTH;
  const first = digits.search(/[1-9]/);
  const sixth = first < 0 ? 0 : first + 6 - wholeDigits;
  const keep = wholeDigits + (decimals ?? Math.max(2, sixth));
  const kept = digits.slice(0, keep);
  const next = digits[keep] ?? '0';
  const beyond = rest || /[1-9]/.test(digits.slice(keep + 1));
  const odd = Number(kept.at(-1)) % 2 === 1;
  const up = next > '5' || (next === '5' && (beyond || odd));
  const text = String(BigInt(kept) + (up ? 1n : 0n)).padStart(keep, '0');
  const point = text.length - (keep - wholeDigits);
  return tidy(negative ? '-' : '', text.slice(0, point), text.slice(point));
}

/** The quotient of two products on the wire, by the contract. */
export const expected = (
  factors: readonly string[],
  divisors: readonly string[],
  decimals: number | null,
): string => rounded(quotient(factors, divisors), decimals);

/** A product over a product. */
export type Quotient = readonly [factors: readonly string[], divisors: readonly string[]];

/** The mean of quotients of products on the wire, by the contract. */
export function expectedMean(quotients: readonly Quotient[], decimals: number | null): string {
  let sum: Fraction = [0n, 1n];
  for (const [factors, divisors] of quotients) {
    const [numerator, denominator] = quotient(factors, divisors);
    sum = [sum[0] * denominator + numerator * sum[1], sum[1] * denominator];
  }
  return rounded([sum[0], sum[1] * BigInt(quotients.length)], decimals);
}

/** The least or greatest of quotients of products on the wire, by the contract. */
export function expectedExtreme(
  quotients: readonly Quotient[],
  sign: 1 | -1,
  decimals: number | null,
): string {
  const fractions = quotients.map((each) => quotient(...each));
  const isBefore = (a: Fraction, b: Fraction) =>
    sign === 1 ? a[0] * b[1] < b[0] * a[1] : a[0] * b[1] > b[0] * a[1];
  return rounded(
    fractions.reduce((best, each) => (isBefore(each, best) ? each : best)),
    decimals,
  );
}
