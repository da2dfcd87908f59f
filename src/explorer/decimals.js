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

/** The ratio of two decimals, rounded to some places; null without a decimal or by zero. */
export function ratio(first, second, places) {
  const [a, b] = [parsed(first), parsed(second)];
  if (a === null || b === null || b.digits === 0n) return null;
  const most = Math.max(a.places, b.places);
  return written(divided(scaled(a, most) * 10n ** BigInt(places), scaled(b, most)), places);
}

/** The mean of decimals, rounded to two places more than they have; null for none. */
export function mean(texts) {
  const all = texts.map(parsed).filter((each) => each !== null);
  if (all.length === 0) return null;
  const places = Math.max(...all.map((each) => each.places)) + 2;
  const sum = all.reduce((total, each) => total + scaled(each, places), 0n);
  return written(divided(sum, BigInt(all.length)), places);
}
