import type { MeanPeriod } from '../catalog/analytics.ts';
import { NO_DAY } from './calendar.ts';

/**
 * Most days from a rate to the point that uses it, and most days in a row without a rate in the
 * period of a mean: a domain rule for the ECB calendar.
 */
export const RATE_DAYS_BACK = 7;

/** The published rates of one currency, with one slot for each day from `firstDay` on. */
export interface CurrencyRates {
  readonly iso: string;
  /** Days since 2000-01-01, both with a rate. Without any rate they are ∞ and -∞. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** Units per base unit, scaled by 10^scale, at most 15 digits. 0 is a day without a rate. */
  readonly scaled: Float64Array;
  readonly scale: Uint8Array;
}

/** All rates of one source at one revision. */
export interface RateTable {
  readonly source: string;
  /**
   * `sample`: invented rates, which convert sample prices only. `withheld`: the same source without
   * its rates, for all other prices.
   */
  readonly kind: 'published' | 'sample' | 'withheld';
  /** The currency that the source quotes against. Its rate is 1 on every day. */
  readonly base: { readonly id: number; readonly iso: string };
  /** By id of the currency, without the base. */
  readonly currencies: ReadonlyMap<number, CurrencyRates>;
}

/** A sample source for prices that are not samples: it has no rate for them. */
export const withheld = (table: RateTable): RateTable => ({
  ...table,
  kind: 'withheld',
  currencies: new Map(),
});

/** The two legs of a conversion; null for the base itself. */
export interface RatePair {
  readonly source: string;
  /** ISO 4217 code of the currency that the source quotes against. */
  readonly base: string;
  readonly from: CurrencyRates | null;
  readonly to: CurrencyRates | null;
  /** The period whose mean rate converts a value; null for the rate of its day. */
  readonly meanOf: MeanPeriod | null;
}

/**
 * The legs from one currency to another, by id. Null if the source has no rate at all of one of
 * them.
 */
export function pairOf(
  table: RateTable,
  from: number,
  to: number,
  meanOf: MeanPeriod | null = null,
): RatePair | null {
  const legOf = (currency: number) =>
    currency === table.base.id ? null : table.currencies.get(currency);
  const fromLeg = legOf(from);
  const toLeg = legOf(to);
  if (fromLeg === undefined || toLeg === undefined) return null;
  return { source: table.source, base: table.base.iso, from: fromLeg, to: toLeg, meanOf };
}

/** A currency without any rate. */
export const withoutRates = (iso: string): CurrencyRates => ({
  iso,
  firstDay: Number.POSITIVE_INFINITY,
  lastDay: Number.NEGATIVE_INFINITY,
  scaled: new Float64Array(0),
  scale: new Uint8Array(0),
});

/** True if a source has any rate of a currency. */
export const hasAnyRate = ({ firstDay, lastDay }: CurrencyRates): boolean => firstDay <= lastDay;

/** True if a leg has a rate on a day. The base always has one. */
export const hasRate = (leg: CurrencyRates | null, day: number): boolean =>
  leg === null ||
  (day >= leg.firstDay && day <= leg.lastDay && (leg.scaled[day - leg.firstDay] as number) > 0);

/**
 * The day whose rates apply to a day: the day itself or the latest before it, at most
 * `RATE_DAYS_BACK` days back, on which both legs have a rate. `NO_DAY` if there is none.
 */
export function rateDay(pair: RatePair, day: number): number {
  for (let candidate = day; candidate >= day - RATE_DAYS_BACK; candidate -= 1) {
    if (hasRate(pair.from, candidate) && hasRate(pair.to, candidate)) return candidate;
  }
  return NO_DAY;
}

/** The scaled rate of a leg on a day that has one. */
export const scaledRate = (leg: CurrencyRates | null, day: number): number =>
  leg === null ? 1 : (leg.scaled[day - leg.firstDay] as number);

/** The decimals of the rate of a leg on a day that has one. */
export const rateScale = (leg: CurrencyRates | null, day: number): number =>
  leg === null ? 0 : (leg.scale[day - leg.firstDay] as number);

const ZERO = 0x30;
const POINT = 0x2e;
const COMMA = 0x2c;

/**
 * Parses the rates of a currency.
 * @param days ascending days since 2000-01-01, separated by commas
 * @param rates the rates of these days as plain decimals, separated by commas
 */
export function currencyRates(iso: string, days: string, rates: string): CurrencyRates {
  const dayNumbers = Int32Array.from(days.split(','), Number);
  const firstDay = dayNumbers[0] as number;
  const lastDay = dayNumbers[dayNumbers.length - 1] as number;
  const scaled = new Float64Array(lastDay - firstDay + 1);
  const scale = new Uint8Array(lastDay - firstDay + 1);
  let at = 0;
  for (const day of dayNumbers) {
    let value = 0;
    let decimals = 0;
    let step = 0;
    for (; at < rates.length && rates.charCodeAt(at) !== COMMA; at += 1) {
      const code = rates.charCodeAt(at);
      if (code === POINT) step = 1;
      else {
        value = value * 10 + (code - ZERO);
        decimals += step;
      }
    }
    at += 1;
    scaled[day - firstDay] = value;
    scale[day - firstDay] = decimals;
  }
  return { iso, firstDay, lastDay, scaled, scale };
}

/** The two currencies of a conversion, with or without rates; null for the base. */
export type Legs = Pick<RatePair, 'from' | 'to'>;

/** The same, and the rates that apply to a day: those of it, or the mean of its period. */
export type AppliedLegs = Pick<RatePair, 'from' | 'to' | 'meanOf'>;
