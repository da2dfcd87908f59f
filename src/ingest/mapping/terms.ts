import { didYouMean } from '../../catalog/nearest.ts';
import type { StatedTerms } from '../load/records.ts';

/** Exactly digits / 10^scale. */
interface Factor {
  readonly digits: bigint;
  readonly scale: number;
}

/**
 * Hundredths in which prices are published, by the signs of markets and data vendors: the
 * currency and how many decimals lie between.
 */
const MINOR: ReadonlyMap<string, readonly [currency: string, decimals: number]> = new Map([
  ['USc', ['USD', 2]],
  ['USX', ['USD', 2]],
  ['EUc', ['EUR', 2]],
  ['GBp', ['GBP', 2]],
  ['GBX', ['GBP', 2]],
  ['AUc', ['AUD', 2]],
  ['CAc', ['CAD', 2]],
  ['INp', ['INR', 2]],
]);
/** The names of the hundredths that a mapping may use. */
export const MINOR_NAMES: readonly string[] = [...MINOR.keys()];

/** What the values of a file are in, and how they become values of their price. */
export interface Terms extends StatedTerms {
  /** What each number is multiplied by; null for 1. */
  readonly factor: Factor | null;
}

/** Whether values of a unit are percentages, which may carry their sign. */
export const isPercent = ({ unit }: Terms): boolean => unit === '%' || unit === 'Percent';

/** Why currency and unit are none; null when they are right as far as one can see. */
export function termsProblem(currency: string | null, unit: string | null): string | null {
  if (currency !== null && !MINOR.has(currency) && !/^[A-Z]{3}$/.test(currency)) {
    const iso = /^[a-z]{3}$/i.test(currency) ? [currency.toUpperCase()] : [];
    const hint = didYouMean(currency, [...iso, ...MINOR_NAMES]);
    const names = MINOR_NAMES.join(', ');
    return `A currency is an ISO 4217 code, or hundredths of one: ${names}${hint}`;
  }
  if (currency !== null && (unit === '%' || unit === 'Percent'))
    return 'Percentages have no currency';
  return null;
}

/**
 * The terms of values published in a currency and a unit. Hundredths become their currency,
 * exactly: that moves the decimal point. Units are never converted here: the service does so when
 * it is asked, with one rounding.
 */
export function termsOf(currency: string | null, unit: string | null): Terms {
  const [major, decimals] = MINOR.get(currency ?? '') ?? [currency, 0];
  const published = [currency, unit].filter((each) => each !== null).join(' per ');
  const factor = decimals === 0 ? null : { digits: 1n, scale: decimals };
  return { currency: major, unit, published, factor };
}

/** A plain decimal times a factor, exactly; not shortened. */
export function multiplied(decimal: string, { digits, scale }: Factor): string {
  const point = decimal.indexOf('.');
  const decimals = scale + (point < 0 ? 0 : decimal.length - point - 1);
  const product = BigInt(point < 0 ? decimal : decimal.replace('.', '')) * digits;
  const text = (product < 0n ? -product : product).toString().padStart(decimals + 1, '0');
  const at = text.length - decimals;
  const whole = `${product < 0n ? '-' : ''}${text.slice(0, at)}`;
  return decimals === 0 ? whole : `${whole}.${text.slice(at)}`;
}
