import type { Rational } from './rational.ts';

/** Bits behind the binary point: more than any number of decimals that is rounded to needs. */
const BITS = 192n;

/**
 * Sums of consecutive numbers with a bound on their error, from one division for each number. An
 * exact sum of fractions multiplies their denominators: with 250 mean rates it has tens of
 * thousands of digits.
 */
export class FixedSums {
  readonly #valueAt: (index: number) => Rational | null;
  /** The sums of all numbers before each index, times 2^`BITS`, each number cut to an integer. */
  readonly #before: bigint[] = [0n];

  /** @param valueAt the number at an index; null for none, which no sum may contain */
  constructor(valueAt: (index: number) => Rational | null) {
    this.#valueAt = valueAt;
  }

  #sumBefore(end: number): bigint {
    const before = this.#before;
    for (let index = before.length - 1; index < end; index += 1) {
      const value = this.#valueAt(index);
      const cut = value === null ? 0n : (value.numerator << BITS) / value.denominator;
      before.push((before[index] as bigint) + cut);
    }
    return before[end] as bigint;
  }

  /** Two numbers around the mean of the numbers from one index up to another. */
  meanBetween(from: number, to: number): readonly [least: Rational, most: Rational] {
    const sum = this.#sumBefore(to) - this.#sumBefore(from);
    // Each number was cut by less than 1.
    const count = BigInt(to - from);
    const denominator = count << BITS;
    return [
      { numerator: sum - count, denominator },
      { numerator: sum + count, denominator },
    ];
  }
}
