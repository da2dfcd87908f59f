import type { MeanPeriod } from '../catalog/analytics.ts';
import { POWERS, powerOf10 } from '../std/decimal.ts';
import { NO_DAY } from './calendar.ts';
import {
  type Columns,
  columnSlice,
  type DecimalColumn,
  type FxColumns,
  type MeanColumns,
  type PointColumns,
  ratesFrom,
  type ValueName,
} from './columns.ts';
import { meanFor, type PeriodMean } from './period-means.ts';
import { type CurrencyRates, type RatePair, rateDay, rateScale, scaledRate } from './rate-table.ts';
import type { Rational } from './rational.ts';
import { CROSS_DECIMALS, RoundedColumn, type Rounding } from './rounding.ts';
import type { UnitFactor } from './units.ts';

/*
 * Exact arithmetic on columns of points: this file converts currencies and units, `aggregate.ts`
 * forms periods, `summary.ts` finds changes, and `rounding.ts` rounds once, at the end. Nothing
 * here reads the database.
 */

/** The conversion of a price; `pair` is null if the currency stays. */
export interface Conversion {
  readonly unit: UnitFactor;
  readonly pair: RatePair | null;
}

/**
 * The observations of a price with the conversion of each, unrounded. Converted points, aggregates
 * and summaries are computed from them. Without a conversion the values are native.
 */
export interface Observations {
  readonly columns: Columns;
  readonly conversion: Conversion | null;
  readonly fx: FxColumns | null;
  /** Number of observations without a rate, and so without a converted value. */
  readonly withoutRate: number;
}

/** The published rates of one leg on some days; null for `NO_DAY`. */
function legColumn(leg: CurrencyRates | null, days: Int32Array): DecimalColumn {
  const { length } = days;
  const scaled = new Float64Array(length);
  const scale = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) {
    const day = days[index] as number;
    if (day === NO_DAY) scaled[index] = Number.NaN;
    else {
      scaled[index] = scaledRate(leg, day);
      scale[index] = rateScale(leg, day);
    }
  }
  return { scaled, scale, wide: null };
}

/** The rates of points, and the number of points without one. */
interface RatesOfPoints {
  readonly fx: FxColumns;
  readonly withoutRate: number;
}

/** A column of nulls. */
const nulls = (length: number): DecimalColumn => ({
  scaled: new Float64Array(length).fill(Number.NaN),
  scale: new Uint8Array(length),
  wide: null,
});

/** Means as columns. */
function meanColumns(found: readonly (PeriodMean | null)[]): MeanColumns {
  const rate = new RoundedColumn(found.length, { decimals: CROSS_DECIMALS });
  for (const [index, mean] of found.entries()) {
    if (mean === null) rate.clear(index);
    else rate.roundExactly(index, mean.exact);
  }
  return {
    first: Int32Array.from(found, (mean) => mean?.first ?? NO_DAY),
    days: Int32Array.from(found, (mean) => mean?.days ?? 0),
    rate,
    exact: found.map((mean) => mean?.exact ?? null),
    nearest: Float64Array.from(found, (mean) => mean?.nearest ?? Number.NaN),
  };
}

/** The mean rates of the periods of some days. */
function meansOn(pair: RatePair, period: MeanPeriod, days: Int32Array): RatesOfPoints {
  const found = Array.from(days, (day) => meanFor(pair, period, day));
  const none = nulls(days.length);
  const day = Int32Array.from(found, (mean) => mean?.last ?? NO_DAY);
  const withoutRate = found.filter((mean) => mean === null).length;
  return { fx: { pair, day, from: none, to: none, means: meanColumns(found) }, withoutRate };
}

/** The rates that apply to each day. */
function fxOf(pair: RatePair, days: Int32Array): RatesOfPoints {
  if (pair.meanOf !== null) return meansOn(pair, pair.meanOf, days);
  const day = new Int32Array(days.length);
  let withoutRate = 0;
  for (let index = 0; index < days.length; index += 1) {
    const found = rateDay(pair, days[index] as number);
    day[index] = found;
    if (found === NO_DAY) withoutRate += 1;
  }
  const from = legColumn(pair.from, day);
  const to = legColumn(pair.to, day);
  return { fx: { pair, day, from, to, means: null }, withoutRate };
}

/** Finds the rates of every observation. Without a conversion the values stay native. */
export function observe(columns: Columns, conversion: Conversion | null): Observations {
  const pair = conversion?.pair ?? null;
  if (pair === null) return { columns, conversion, fx: null, withoutRate: 0 };
  return { columns, conversion, ...fxOf(pair, columns.day) };
}

/** The last observations with their rates, as views of the same memory. */
export function lastOf(observations: Observations, count: number): Observations {
  const { columns, fx } = observations;
  const from = columns.length - count;
  if (from <= 0) return observations;
  return {
    ...observations,
    columns: columnSlice(columns, from, columns.length),
    fx: fx && ratesFrom(fx, from),
  };
}

/**
 * A bound on the relative error of a stored integer times its factor, in doubles. Seven roundings
 * contribute, each of at most 2^-53, less than 1.2e-16. Five are those of the factor: the quotient
 * of the legs, its decimals, the unit, the product of both, and the decimals of the point. The
 * others are the product with the integer and a power of ten. A mean rate is rounded once, in place
 * of the first two.
 */
export const FACTOR_ERROR = 1e-15;

const scaledBy = (value: number, exponent: number): number =>
  exponent >= 0 ? value * (POWERS[exponent] as number) : value / (POWERS[-exponent] as number);

/**
 * The factor from each stored integer to its number: to / from × unit / 10^scale, as a double with
 * a relative error of at most `FACTOR_ERROR`. NaN without a rate.
 */
export function factorsOf(observations: Observations): Float64Array {
  const { columns, conversion, fx } = observations;
  const factors = new Float64Array(columns.length);
  const unit = conversion?.unit.nearest ?? 1;
  for (let index = 0; index < columns.length; index += 1) {
    let factor = unit;
    if (fx?.means) factor *= fx.means.nearest[index] as number;
    else if (fx !== null) {
      const ratio = (fx.to.scaled[index] as number) / (fx.from.scaled[index] as number);
      const decimals = (fx.from.scale[index] as number) - (fx.to.scale[index] as number);
      factor *= scaledBy(ratio, decimals);
    }
    factors[index] = factor / (POWERS[columns.scale[index] as number] as number);
  }
  return factors;
}

/** The exact number of one observation; null if it is missing or has no rate. */
export function exactValue(
  observations: Observations,
  name: ValueName,
  index: number,
): Rational | null {
  const { columns, conversion, fx } = observations;
  const scaled = columns[name][index] as number;
  if (Number.isNaN(scaled) || fx?.day[index] === NO_DAY) return null;
  let numerator = BigInt(scaled);
  let denominator = powerOf10(columns.scale[index] as number);
  if (conversion !== null) {
    numerator *= conversion.unit.exact.numerator;
    denominator *= conversion.unit.exact.denominator;
  }
  if (fx?.means) {
    const mean = fx.means.exact[index] as Rational;
    numerator *= mean.numerator;
    denominator *= mean.denominator;
  } else if (fx !== null) {
    numerator *= BigInt(fx.to.scaled[index] as number);
    numerator *= powerOf10(fx.from.scale[index] as number);
    denominator *= BigInt(fx.from.scaled[index] as number);
    denominator *= powerOf10(fx.to.scale[index] as number);
  }
  return { numerator, denominator };
}

function convertColumn(
  observations: Observations,
  name: ValueName,
  factors: Float64Array,
  rounding: Rounding,
): DecimalColumn {
  const stored = observations.columns[name];
  const rounded = new RoundedColumn(stored.length, rounding);
  rounded.roundProducts(stored, factors, FACTOR_ERROR, (index) =>
    exactValue(observations, name, index),
  );
  return rounded;
}

/**
 * The converted points: each value is stored × unit × to / from, rounded once. A missing value
 * stays null. All three values of a point without a rate are null.
 */
export function convertedPoints(observations: Observations, rounding: Rounding): PointColumns {
  const { columns, fx } = observations;
  const factors = factorsOf(observations);
  const column = (name: ValueName) => convertColumn(observations, name, factors, rounding);
  return {
    length: columns.length,
    day: columns.day,
    low: column('low'),
    mid: column('mid'),
    high: column('high'),
    publishedAt: columns.publishedAt,
    corrections: columns.corrections,
    fx,
    periods: null,
  };
}
