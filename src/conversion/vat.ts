import { powerOf10 } from '../std/decimal.ts';
import type { DecimalColumn } from './columns.ts';
import type { Rational } from './rational.ts';

/** A rate of VAT in percent: `scaled` / 10^`scale`. */
interface VatRate {
  /** Its first day, in days since 2000-01-01. */
  readonly from: number;
  readonly scaled: number;
  readonly scale: number;
}

/** The rates of VAT of a country, by their first days. Each is valid until the next one. */
export interface VatRates {
  /** ISO 3166 code. */
  readonly country: string;
  readonly rates: readonly VatRate[];
}

/** The rate of a day; undefined on the days before the first rate. */
const vatRateOn = ({ rates }: VatRates, day: number): VatRate | undefined =>
  rates.findLast(({ from }) => from <= day);

/** The rates of some days in percent; null on the days before the first rate. */
export function vatColumn(vat: VatRates, days: Int32Array): DecimalColumn {
  const scaled = new Float64Array(days.length);
  const scale = new Uint8Array(days.length);
  for (let index = 0; index < days.length; index += 1) {
    const rate = vatRateOn(vat, days[index] as number);
    scaled[index] = rate?.scaled ?? Number.NaN;
    scale[index] = rate?.scale ?? 0;
  }
  return { scaled, scale, wide: null };
}

/** The factor to a price without VAT, 100 / (100 + rate), exactly. The point has a rate. */
export function exactVatFactor({ scaled, scale }: DecimalColumn, index: number): Rational {
  const hundred = 100n * powerOf10(scale[index] as number);
  return { numerator: hundred, denominator: hundred + BigInt(scaled[index] as number) };
}

/**
 * The same as the double nearest to it; NaN without a rate. Rates have few digits, so that the
 * numerator and the denominator are exact.
 */
export function nearestVatFactor({ scaled, scale }: DecimalColumn, index: number): number {
  const hundred = 100 * 10 ** (scale[index] as number);
  return hundred / (hundred + (scaled[index] as number));
}
