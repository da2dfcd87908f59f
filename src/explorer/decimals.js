// Exact arithmetic with decimals as text: a difference or mean has no digit that the prices lack.

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/** A decimal as a whole number of `10^-places`; null for another notation. */
function parsed(text) {
  const [, sign, whole, fraction = ''] = DECIMAL.exec(text ?? '') ?? [];
  if (whole === undefined) return null;
  return { digits: BigInt(`${sign}${whole}${fraction}`), places: fraction.length };
}

const scaled = ({ digits, places }, wanted) => digits * 10n ** BigInt(wanted - places);

function written(digits, places) {
  const sign = digits < 0n ? '-' : '';
  const text = (digits < 0n ? -digits : digits).toString().padStart(places + 1, '0');
  const at = text.length - places;
  return places === 0 ? `${sign}${text}` : `${sign}${text.slice(0, at)}.${text.slice(at)}`;
}

/** The quotient of two whole numbers, rounded half away from zero. */
function divided(dividend, divisor) {
  const isNegative = dividend < 0n !== divisor < 0n;
  const [a, b] = [dividend, divisor].map((each) => (each < 0n ? -each : each));
  const rounded = (2n * a + b) / (2n * b);
  return isNegative ? -rounded : rounded;
}

/** The exact difference of two decimals; null if one is no decimal. */
export function difference(first, second) {
  const [a, b] = [parsed(first), parsed(second)];
  if (a === null || b === null) return null;
  const places = Math.max(a.places, b.places);
  return written(scaled(a, places) - scaled(b, places), places);
}

const SIGNIFICANT = 6;
const PLACES_LEAST = 2;
const PLACES_MOST = 100;

/**
 * A fraction, rounded as the service rounds a computed number: half to even, to six significant
 * digits and at least two decimals, without trailing zeros.
 */
function rounded(dividend, divisor) {
  const isNegative = dividend < 0n !== divisor < 0n;
  const [a, b] = [dividend, divisor].map((each) => (each < 0n ? -each : each));
  const least = b * 10n ** BigInt(SIGNIFICANT - 1 - PLACES_LEAST);
  let places = PLACES_LEAST;
  for (let amount = a; a > 0n && amount < least && places < PLACES_MOST; places += 1) amount *= 10n;
  const shifted = a * 10n ** BigInt(places);
  const [digits, twice] = [shifted / b, 2n * (shifted % b)];
  const isUp = twice > b || (twice === b && digits % 2n === 1n);
  const text = written((isNegative ? -1n : 1n) * (isUp ? digits + 1n : digits), places);
  return text.replace(/\.?0+$/, '');
}

/** The ratio of two decimals, rounded like a computed number; null without a decimal or by zero. */
export function ratio(first, second) {
  const [a, b] = [parsed(first), parsed(second)];
  if (a === null || b === null || b.digits === 0n) return null;
  const most = Math.max(a.places, b.places);
  return rounded(scaled(a, most), scaled(b, most));
}

/** The change between two decimals in percent, rounded like a computed number; null without one. */
export function percentChange(before, after) {
  const [base, change] = [parsed(before), parsed(difference(after, before))];
  if (change === null || base.digits <= 0n) return null;
  return rounded(100n * change.digits, scaled(base, change.places));
}

/** The mean of decimals, rounded to two places more than they have; null for none. */
export function mean(texts) {
  const all = texts.map(parsed).filter((each) => each !== null);
  if (all.length === 0) return null;
  const places = Math.max(...all.map((each) => each.places)) + 2;
  const sum = all.reduce((total, each) => total + scaled(each, places), 0n);
  return written(divided(sum, BigInt(all.length)), places);
}
