import type { MeanPeriod } from '../catalog/analytics.ts';
import { POWERS, powerOf10 } from '../std/decimal.ts';
import { NO_DAY } from './calendar.ts';
import {
  type Columns,
  columnFrom,
  columnSlice,
  type DecimalColumn,
  type FxColumns,
  type LackingRate,
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
import { exactVatFactor, nearestVatFactor, type VatRates, vatColumn } from './vat.ts';

/*
 * Exact arithmetic on columns of points: this file converts currencies and units, `aggregate.ts`
 * forms periods, `summary.ts` finds changes, and `rounding.ts` rounds once, at the end. Nothing
 * here reads the database.
 */

/**
 * The conversion of a price. `pair` is null if the currency stays, `vat` if the price is not
 * divided by rates of VAT.
 */
export interface Conversion {
  readonly unit: UnitFactor;
  readonly pair: RatePair | null;
  readonly vat: VatRates | null;
}

/**
 * The observations of a price with the conversion of each, unrounded. Converted points, aggregates
 * and summaries are computed from them. Without a conversion the values are native.
 */
export interface Observations {
  readonly columns: Columns;
  readonly conversion: Conversion | null;
  readonly fx: FxColumns | null;
  /** The rates of VAT in percent; null if none is excluded. */
  readonly vat: DecimalColumn | null;
  /** The rate that observations lack, which so have no converted value; null if none does. */
  readonly lacking: LackingRate | null;
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
function meansOn(pair: RatePair, period: MeanPeriod, days: Int32Array): FxColumns {
  const found = Array.from(days, (day) => meanFor(pair, period, day));
  const none = nulls(days.length);
  const day = Int32Array.from(found, (mean) => mean?.last ?? NO_DAY);
  return { pair, day, from: none, to: none, means: meanColumns(found) };
}

/** The rates that apply to each day. */
function fxOf(pair: RatePair, days: Int32Array): FxColumns {
  if (pair.meanOf !== null) return meansOn(pair, pair.meanOf, days);
  const day = new Int32Array(days.length);
  for (let index = 0; index < days.length; index += 1) {
    day[index] = rateDay(pair, days[index] as number);
  }
  const from = legColumn(pair.from, day);
  const to = legColumn(pair.to, day);
  return { pair, day, from, to, means: null };
}

/** The rate that an observation lacks, the exchange rate first; null if it has all. */
export function lackingOf(
  { fx, vat }: Pick<Observations, 'fx' | 'vat'>,
  index: number,
): LackingRate | null {
  if (fx?.day[index] === NO_DAY) return 'no-rate';
  return vat !== null && Number.isNaN(vat.scaled[index]) ? 'no-vat-rate' : null;
}

/** True if an observation has all rates that its conversion needs. */
export const hasRates = (found: Pick<Observations, 'fx' | 'vat'>, index: number): boolean =>
  lackingOf(found, index) === null;

/** Finds the rates of every observation. Without a conversion the values stay native. */
export function observe(columns: Columns, conversion: Conversion | null): Observations {
  const { pair, vat: rates } = conversion ?? NO_RATES;
  if (pair === null && rates === null) {
    return { columns, conversion, fx: null, vat: null, lacking: null };
  }
  const found = {
    fx: pair && fxOf(pair, columns.day),
    vat: rates && vatColumn(rates, columns.day),
  };
  let lacking: LackingRate | null = null;
  for (let index = 0; index < columns.length; index += 1) {
    lacking = firstLacking(lacking, lackingOf(found, index));
  }
  return { columns, conversion, ...found, lacking };
}

const NO_RATES = { pair: null, vat: null };

/** The reason of several observations: an exchange rate, if any of them lacks one. */
export const firstLacking = (
  one: LackingRate | null,
  other: LackingRate | null,
): LackingRate | null => (one === 'no-rate' ? one : (other ?? one));

/** The last observations with their rates, as views of the same memory. */
export function lastOf(observations: Observations, count: number): Observations {
  const { columns, fx, vat } = observations;
  const from = columns.length - count;
  if (from <= 0) return observations;
  return {
    ...observations,
    columns: columnSlice(columns, from, columns.length),
    fx: fx && ratesFrom(fx, from),
    vat: vat && columnFrom(vat, from),
  };
}

/**
 * A bound on the relative error of a stored integer times its factor, in doubles. Nine roundings
 * contribute, each of at most 2^-53, less than 1.111e-16. Seven are those of the factor: the
 * quotient of the legs, its decimals, the unit, the product of both, the factor of VAT, its
 * product, and the decimals of the point. The others are the product with the integer and a power
 * of ten. A mean rate is rounded once, in place of the first two.
 */
export const FACTOR_ERROR = 1e-15;

const scaledBy = (value: number, exponent: number): number =>
  exponent >= 0 ? value * (POWERS[exponent] as number) : value / (POWERS[-exponent] as number);

/**
 * The factor from each stored integer to its number: to / from × unit / (1 + VAT) / 10^scale, as a
 * double with a relative error of at most `FACTOR_ERROR`. NaN without a rate.
 */
export function factorsOf(observations: Observations): Float64Array {
  const { columns, conversion, fx, vat } = observations;
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
    if (vat !== null) factor *= nearestVatFactor(vat, index);
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
  const { columns, conversion, fx, vat } = observations;
  const scaled = columns[name][index] as number;
  if (Number.isNaN(scaled) || !hasRates(observations, index)) return null;
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
  if (vat !== null) {
    const factor = exactVatFactor(vat, index);
    numerator *= factor.numerator;
    denominator *= factor.denominator;
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
 * The converted points: each value is stored × unit × to / from / (1 + VAT), rounded once. A
 * missing value stays null. All three values of a point without a rate are null.
 */
export function convertedPoints(observations: Observations, rounding: Rounding): PointColumns {
  const { columns, fx, vat } = observations;
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
    vat,
    periods: null,
  };
}
