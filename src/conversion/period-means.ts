import type { MeanPeriod } from '../catalog/analytics.ts';
import { powerOf10 } from '../std/decimal.ts';
import { periodOf } from './calendar.ts';
import { hasRate, type Legs, RATE_DAYS_BACK, rateScale, scaledRate } from './rate-table.ts';
import { over, plus, quotientOf, type Rational, ZERO } from './rational.ts';

/** The mean rate of a pair over a month or a year. */
export interface PeriodMean {
  /** The first and the last rate day of the period, in days since 2000-01-01. */
  readonly first: number;
  readonly last: number;
  /** Number of rate days. */
  readonly days: number;
  /** The mean of to / from over the rate days: exact, and the double nearest to it. */
  readonly exact: Rational;
  readonly nearest: number;
}

/** The days of a period on which all legs have a rate, in order; null if they do not cover it. */
function rateDaysOf(legs: Legs, start: number, end: number): number[] | null {
  // A period counts as over for a currency once a rate of its last day or a later one is known.
  if ([legs.from, legs.to].some((leg) => leg !== null && leg.lastDay < end)) return null;
  const days: number[] = [];
  let covered = start - 1;
  for (let day = start; day <= end; day += 1) {
    if (!hasRate(legs.from, day) || !hasRate(legs.to, day)) continue;
    if (day - covered - 1 > RATE_DAYS_BACK) return null;
    days.push(day);
    covered = day;
  }
  return end - covered > RATE_DAYS_BACK ? null : days;
}

/** True if a period has a mean rate: see `periodMean`. */
export const hasMean = (legs: Legs, start: number, end: number): boolean =>
  rateDaysOf(legs, start, end) !== null;

/** The cross rate of a day that has one: units of `to` for one unit of `from`. */
const crossRate = ({ from, to }: Legs, day: number): Rational =>
  over(
    { numerator: BigInt(scaledRate(to, day)), denominator: powerOf10(rateScale(to, day)) },
    { numerator: BigInt(scaledRate(from, day)), denominator: powerOf10(rateScale(from, day)) },
  );

/** The sum of some fractions, by halves: the denominators of the parts stay short. */
function sumOf(values: readonly Rational[]): Rational {
  if (values.length <= 1) return values[0] ?? ZERO;
  const middle = values.length >>> 1;
  return plus(sumOf(values.slice(0, middle)), sumOf(values.slice(middle)));
}

/**
 * The mean of the cross rates of all rate days from `start` to `end`: of to / from of each day, not
 * the quotient of two means. A rate day is one on which both legs were published. Null without a
 * mean: one exists if both legs have a rate of the last day of the period or of a later one, and no
 * more than `RATE_DAYS_BACK` days in a row of the period have no rate. So a mean is never that of a
 * part of its period.
 */
function periodMean(legs: Legs, start: number, end: number): PeriodMean | null {
  const days = rateDaysOf(legs, start, end);
  if (days === null) return null;
  const sum = sumOf(days.map((day) => crossRate(legs, day)));
  const exact = {
    numerator: sum.numerator,
    denominator: sum.denominator * BigInt(days.length),
  };
  return {
    first: days[0] as number,
    last: days[days.length - 1] as number,
    days: days.length,
    exact,
    nearest: quotientOf(exact),
  };
}

/** The means of a pair by the first day of their periods. */
type Means = Map<number, PeriodMean | null>;

/** Means by the legs of their pairs. They are freed with their rate table. */
const known = new WeakMap<object, Map<object | null, Record<MeanPeriod, Means>>>();

function meansOf({ from, to }: Legs, period: MeanPeriod): Means {
  // A pair whose legs are both the base is never converted. The mean of a pair is not that of its
  // inverse, so the key keeps the sides apart.
  const key = from ?? to;
  if (key === null) return new Map();
  const ofKey = known.get(key) ?? new Map<object | null, Record<MeanPeriod, Means>>();
  known.set(key, ofKey);
  const side = from === null ? TO_ONLY : to;
  const found = ofKey.get(side) ?? { month: new Map(), year: new Map() };
  ofKey.set(side, found);
  return found[period];
}

/** Stands for a pair from the base, whose key is the other leg. */
const TO_ONLY = {};

/** The mean rate for a day: that of the month or year that contains it. Null without a mean. */
export function meanFor(legs: Legs, period: MeanPeriod, day: number): PeriodMean | null {
  const means = meansOf(legs, period);
  const { start, end } = periodOf(day, period);
  const found = means.get(start);
  if (found !== undefined) return found;
  const mean = periodMean(legs, start, end);
  means.set(start, mean);
  return mean;
}
