import fc from 'fast-check';

/** Exact text of `scaled` × 10^-`scale`, trailing zeros trimmed: BigInt and text, no double. */
export function decimalText(scaled: bigint, scale: number): string {
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  const text = fraction === '' ? whole : `${whole}.${fraction}`;
  return scaled < 0n ? `-${text}` : text;
}

/** The limit of a point's values: 15 digits including its decimals. */
const LIMIT = 10n ** 15n - 1n;

/** Scaled integers of every size, with a bias to edge cases. */
const scaled = fc.oneof(
  fc.bigInt({ min: -LIMIT, max: LIMIT }),
  fc.bigInt({ min: -1000n, max: 1000n }),
  fc
    .tuple(fc.integer({ min: 0, max: 14 }), fc.bigInt({ min: -9n, max: 9n }))
    .map(([power, digit]) => digit * 10n ** BigInt(power)),
  fc.constantFrom(0n, 1n, -1n, LIMIT, -LIMIT, 10n ** 14n, 9_999n, 10_000n, 99_999_999n),
);

/** Low, mid and high of one point as scaled integers in order, and their decimals. */
export const values = fc.record({
  scale: fc.integer({ min: 0, max: 10 }),
  three: fc
    .tuple(scaled, scaled, scaled)
    .map((each) => each.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))),
  hasLow: fc.boolean(),
  hasHigh: fc.boolean(),
});

const DAYS_TO_2000 = 10_957n;
const MICROS_PER_DAY = 86_400_000_000n;

/**
 * The calendar day of a number of days since 2000-01-01, by counting years and months: no Date.
 */
export function dayText(day: number): string {
  let rest = day;
  let year = 2000;
  const leap = () => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const length = () => (leap() ? 366 : 365);
  while (rest < 0) {
    year -= 1;
    rest += length();
  }
  while (rest >= length()) {
    rest -= length();
    year += 1;
  }
  const months = [31, leap() ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  let month = 0;
  while (rest >= (months[month] as number)) {
    rest -= months[month] as number;
    month += 1;
  }
  const two = (value: number) => String(value).padStart(2, '0');
  return `${year}-${two(month + 1)}-${two(rest + 1)}`;
}

/** RFC 3339 of microseconds since 2000-01-01, decimals of the second as far as there are any. */
export function instantText(micros: bigint): string {
  const shifted = micros + DAYS_TO_2000 * MICROS_PER_DAY * 100n;
  const day = shifted / MICROS_PER_DAY - DAYS_TO_2000 * 100n;
  const rest = shifted % MICROS_PER_DAY;
  const two = (value: bigint) => value.toString().padStart(2, '0');
  const seconds = rest / 1_000_000n;
  const fraction = (rest % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '');
  const time = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map(two).join(':');
  return `${dayText(Number(day))}T${time}${fraction === '' ? '' : `.${fraction}`}Z`;
}
