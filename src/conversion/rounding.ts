import {
  type Decimal,
  decimalText,
  EXACT_POWER_MAX,
  POWERS,
  powerOf10,
  trimmed,
} from '../std/decimal.ts';
import type { DecimalColumn } from './columns.ts';
import type { Rational } from './rational.ts';

/** Rounding of computed numbers, half-even: to `decimals`, or by the rule below if null. */
export interface Rounding {
  readonly decimals: number | null;
}

/** Six significant digits, never fewer than two decimals. */
export const BY_RULE: Rounding = { decimals: null };

/** Decimals of a shown cross rate or mean rate. Conversions never round one. */
export const CROSS_DECIMALS = 10;

const SIGNIFICANT = 6;
const DECIMALS_LEAST = 2;

/** Most decimals: a smaller number is rounded to these. */
const DECIMALS_MOST = 100;

/** The description of a rounding in a receipt. */
export const roundingText = ({ decimals }: Rounding): string =>
  decimals === null
    ? `half-even, ${SIGNIFICANT} significant, at least ${DECIMALS_LEAST} decimals`
    : `half-even, ${decimals} decimals`;

/**
 * Decimals by the rule, for the unrounded number. If rounding carries into a new digit (9.999995
 * becomes 10), the last decimal is a zero, so the rounded number gives the same result.
 */
function decimalsByRule({ numerator, denominator }: Rational): number {
  if (numerator === 0n) return DECIMALS_LEAST;
  const least = denominator * powerOf10(SIGNIFICANT - 1 - DECIMALS_LEAST);
  let amount = numerator < 0n ? -numerator : numerator;
  let decimals = DECIMALS_LEAST;
  for (; amount < least && decimals < DECIMALS_MOST; decimals += 1) amount *= 10n;
  return decimals;
}

/** Rounds a fraction exactly and removes trailing zeros. */
export function roundExact(value: Rational, rounding: Rounding): Decimal {
  const scale = rounding.decimals ?? decimalsByRule(value);
  const negative = value.numerator < 0n;
  const scaled = (negative ? -value.numerator : value.numerator) * powerOf10(scale);
  let digits = scaled / value.denominator;
  const twice = 2n * (scaled - digits * value.denominator);
  if (twice > value.denominator || (twice === value.denominator && digits % 2n === 1n)) {
    digits += 1n;
  }
  return trimmed({ digits: negative ? -digits : digits, scale });
}

/** A rounded fraction as decimal text. */
export const roundedText = (value: Rational, rounding: Rounding): string =>
  decimalText(roundExact(value, rounding));

/** The least number with this many decimals by the rule, by decimals. */
const LEAST = Float64Array.from(
  { length: EXACT_POWER_MAX + 1 },
  (_, decimals) => 10 ** (SIGNIFICANT - 1 - Math.max(decimals, DECIMALS_LEAST)),
);

/** Decimals by the rule for a double; `EXACT_POWER_MAX` + 1 if it is too small. */
function decimalsOfDouble(amount: number): number {
  let decimals = DECIMALS_LEAST;
  while (decimals <= EXACT_POWER_MAX && amount < (LEAST[decimals] as number)) decimals += 1;
  return decimals;
}

/**
 * Above this error a double is too coarse for rounding. The error is far below one half. A number
 * near a power of ten may thus get the decimals of either side: both round to that power of ten.
 */
const GUARD_MOST = 0.02;

/** The least guard, for errors near 0. */
const GUARD_LEAST = 1e-12;

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * A column of rounded numbers. `tryRound` rounds a number in doubles if a double is precise enough,
 * without allocation. `roundExactly` rounds all others. Both give the same result.
 */
export class RoundedColumn implements DecimalColumn {
  readonly scaled: Float64Array;
  readonly scale: Uint8Array;
  readonly #rounding: Rounding;
  /** The requested decimals, or -1. */
  readonly #fixed: number;
  #wide: Map<number, string> | null = null;

  constructor(length: number, rounding: Rounding) {
    this.scaled = new Float64Array(length);
    this.scale = new Uint8Array(length);
    this.#rounding = rounding;
    this.#fixed = rounding.decimals ?? -1;
  }

  get wide(): ReadonlyMap<number, string> | null {
    return this.#wide;
  }

  /** Writes null. */
  clear(at: number): void {
    this.scaled[at] = Number.NaN;
  }

  /** Writes a number without rounding. */
  copy(at: number, scaled: number, scale: number): void {
    this.scaled[at] = scaled;
    this.scale[at] = scale;
  }

  /**
   * Rounds a number that differs from `value` by at most `error`, with the error of the product
   * with a power of ten included. Writes nothing and returns false if only exact arithmetic can
   * decide: near a tie, for large numbers, for 0 and for very small numbers.
   */
  tryRound(at: number, value: number, error: number): boolean {
    const amount = value < 0 ? -value : value;
    const decimals = this.#fixed < 0 ? decimalsOfDouble(amount) : this.#fixed;
    if (decimals > EXACT_POWER_MAX) return false;
    const power = POWERS[decimals] as number;
    const guard = error * power + GUARD_LEAST;
    if (guard >= GUARD_MOST) return false;
    const product = amount * power;
    const whole = Math.floor(product);
    const fraction = product - whole;
    // The negation also catches NaN and infinities.
    if (!(Math.abs(fraction - 0.5) > guard)) return false;
    const rounded = fraction > 0.5 ? whole + 1 : whole;
    // 0 - 0 is 0; -0 would be another value.
    this.scaled[at] = value < 0 ? 0 - rounded : rounded;
    this.scale[at] = decimals;
    return true;
  }

  /**
   * Rounds a column of products like `tryRound`. The code is inlined because conversions spend most
   * of their time in this loop.
   * @param error bound on the relative error of a product
   * @param exactly the exact number at an index, called if doubles cannot decide
   */
  roundProducts(
    stored: Float64Array,
    factors: Float64Array,
    error: number,
    exactly: (index: number) => Rational | null,
  ): void {
    const { scaled, scale } = this;
    const byRule = this.#fixed < 0;
    let decimals = byRule ? DECIMALS_LEAST : this.#fixed;
    let power = POWERS[decimals] as number;
    // Numbers from `least` up to `below` have the same decimals as the previous number.
    let least = byRule ? Number.POSITIVE_INFINITY : 0;
    let below = Number.POSITIVE_INFINITY;
    for (let index = 0; index < stored.length; index += 1) {
      const value = (stored[index] as number) * (factors[index] as number);
      const amount = Math.abs(value);
      if (byRule && !(amount >= least && amount < below)) {
        decimals = decimalsOfDouble(amount);
        // Beyond the table these are NaN, which fails every comparison below.
        power = POWERS[decimals] ?? Number.NaN;
        least = LEAST[decimals] ?? Number.NaN;
        below = decimals > DECIMALS_LEAST ? least * 10 : Number.POSITIVE_INFINITY;
      }
      const product = amount * power;
      const guard = product * error + GUARD_LEAST;
      const whole = Math.floor(product);
      const fraction = product - whole;
      // The negation also catches NaN and a guard above one half.
      if (!(Math.abs(fraction - 0.5) > guard)) {
        const exact = exactly(index);
        if (exact === null) this.clear(index);
        else this.roundExactly(index, exact);
        continue;
      }
      const rounded = fraction > 0.5 ? whole + 1 : whole;
      scaled[index] = value < 0 ? 0 - rounded : rounded;
      scale[index] = decimals;
    }
  }

  /**
   * Rounds a number between two others. Writes nothing and returns false if they round differently:
   * rounding keeps the order, so that it decides otherwise.
   */
  tryRoundBetween(at: number, least: Rational, most: Rational): boolean {
    const [low, high] = [roundExact(least, this.#rounding), roundExact(most, this.#rounding)];
    if (low.digits !== high.digits || low.scale !== high.scale) return false;
    this.#write(at, low);
    return true;
  }

  /** Rounds a fraction exactly. */
  roundExactly(at: number, value: Rational): void {
    this.#write(at, roundExact(value, this.#rounding));
  }

  #write(at: number, decimal: Decimal): void {
    if (decimal.digits <= SAFE && decimal.digits >= -SAFE) {
      this.scaled[at] = Number(decimal.digits);
      this.scale[at] = decimal.scale;
      return;
    }
    this.#wide ??= new Map();
    this.#wide.set(at, decimalText(decimal));
    this.scaled[at] = Number.POSITIVE_INFINITY;
  }
}
