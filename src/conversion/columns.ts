import { NO_DAY } from './calendar.ts';
import type { RatePair } from './rate-table.ts';
import type { Rational } from './rational.ts';

/**
 * The stored observations of one price: columns of equal length, in date order. Values are integers
 * scaled by 10^scale of their point, with at most 15 digits. NaN is a missing low or high.
 */
export interface Columns {
  readonly length: number;
  /** Days since 2000-01-01. */
  readonly day: Int32Array;
  readonly low: Float64Array;
  readonly mid: Float64Array;
  readonly high: Float64Array;
  /** Decimals of the three values of a point, 0 to 10. */
  readonly scale: Uint8Array;
  /** Microseconds since 2000-01-01T00:00Z. */
  readonly publishedAt: Float64Array;
  readonly corrections: Int32Array;
}

/** The points from one index up to another, as views of the same memory. */
export const columnSlice = (columns: Columns, from: number, to: number): Columns => ({
  length: to - from,
  day: columns.day.subarray(from, to),
  low: columns.low.subarray(from, to),
  mid: columns.mid.subarray(from, to),
  high: columns.high.subarray(from, to),
  scale: columns.scale.subarray(from, to),
  publishedAt: columns.publishedAt.subarray(from, to),
  corrections: columns.corrections.subarray(from, to),
});

/** The three values of a point. */
export type ValueName = 'low' | 'mid' | 'high';
export const VALUE_NAMES = ['low', 'mid', 'high'] as const satisfies readonly ValueName[];

/**
 * A column of exact decimals, `scaled` / 10^`scale` each. NaN is null. Infinity is a number whose
 * scaled integer is not exact in a double: its text is in `wide`, by index.
 */
export interface DecimalColumn {
  readonly scaled: Float64Array;
  readonly scale: Uint8Array;
  readonly wide: ReadonlyMap<number, string> | null;
}

/**
 * The mean rate of the period of each point: the mean of to / from over its rate days. Without a
 * mean the numbers are 0, the fraction is null and the rate NaN.
 */
export interface MeanColumns {
  /** The first rate day, in days since 2000-01-01; `NO_DAY` without a mean. */
  readonly first: Int32Array;
  /** Number of rate days. */
  readonly days: Int32Array;
  /** The mean as shown, rounded to the decimals of cross rates. */
  readonly rate: DecimalColumn;
  /** The mean as it converts: exact, and the double nearest to it. */
  readonly exact: readonly (Rational | null)[];
  readonly nearest: Float64Array;
}

/**
 * The exchange rates of each point: both legs of one day and source, in units per `base` unit, or
 * the mean rate of a period.
 */
export interface FxColumns {
  readonly pair: RatePair;
  /**
   * The day of the rates, or the last rate day of a mean, in days since 2000-01-01; `NO_DAY`
   * without a rate.
   */
  readonly day: Int32Array;
  /** NaN with means. */
  readonly from: DecimalColumn;
  readonly to: DecimalColumn;
  /** Null with rates of days. */
  readonly means: MeanColumns | null;
}

/** The periods of aggregated points, in days since 2000-01-01. */
interface PeriodColumns {
  readonly start: Int32Array;
  readonly end: Int32Array;
  /** Number of observations that were aggregated. */
  readonly observations: Int32Array;
  /** Number of observations without a rate, and so without a converted value. */
  readonly leftOut: Int32Array;
  /** The rate that a point without a value lacks; null for other points. */
  readonly lacking: readonly (LackingRate | null)[];
}

/** The reason that a point has no value: no exchange rate, or no rate of VAT. */
export type LackingRate = 'no-rate' | 'no-vat-rate';

/** The points of an answer: stored, converted or aggregated, ready for a writer. */
export interface PointColumns {
  readonly length: number;
  readonly day: Int32Array;
  readonly low: DecimalColumn;
  readonly mid: DecimalColumn;
  readonly high: DecimalColumn;
  readonly publishedAt: Float64Array;
  readonly corrections: Int32Array;
  /** Null without exchange rates, and for aggregated points. */
  readonly fx: FxColumns | null;
  /** The rates of VAT in percent; null if none was excluded, and for aggregated points. */
  readonly vat: DecimalColumn | null;
  /** Null except for aggregated points. */
  readonly periods: PeriodColumns | null;
  /** Absent if not requested. */
  readonly movingAverage?: DecimalColumn;
}

/** A decimal column from one index on. The indexes of wide numbers are shifted with it. */
export const columnFrom = (
  { scaled, scale, wide }: DecimalColumn,
  from: number,
): DecimalColumn => ({
  scaled: scaled.subarray(from),
  scale: scale.subarray(from),
  wide: wide && new Map([...wide].map(([index, text]) => [index - from, text])),
});

/** The rates of points from one index on, as views of the same memory. */
export const ratesFrom = ({ pair, day, from, to, means }: FxColumns, index: number): FxColumns => ({
  pair,
  day: day.subarray(index),
  from: columnFrom(from, index),
  to: columnFrom(to, index),
  means: means && {
    first: means.first.subarray(index),
    days: means.days.subarray(index),
    rate: columnFrom(means.rate, index),
    exact: means.exact.slice(index),
    nearest: means.nearest.subarray(index),
  },
});

/** The last of aggregated points, as views of the same memory. */
export function lastPoints(points: PointColumns, count: number): PointColumns {
  const from = points.length - count;
  if (from <= 0) return points;
  const { periods } = points;
  return {
    length: count,
    day: points.day.subarray(from),
    low: columnFrom(points.low, from),
    mid: columnFrom(points.mid, from),
    high: columnFrom(points.high, from),
    publishedAt: points.publishedAt.subarray(from),
    corrections: points.corrections.subarray(from),
    fx: null,
    vat: null,
    periods: periods && {
      start: periods.start.subarray(from),
      end: periods.end.subarray(from),
      observations: periods.observations.subarray(from),
      leftOut: periods.leftOut.subarray(from),
      lacking: periods.lacking.slice(from),
    },
  };
}

/** True if a point could not be converted: its mid is null for no other reason. */
export const isUnconverted = ({ mid }: PointColumns, index: number): boolean =>
  Number.isNaN(mid.scaled[index] as number);

/** The reason that a point could not be converted. */
export function lackingAt({ fx, vat, periods }: PointColumns, index: number): LackingRate {
  if (periods !== null) return periods.lacking[index] ?? 'no-rate';
  return vat === null || fx?.day[index] === NO_DAY ? 'no-rate' : 'no-vat-rate';
}

/** The observations at ascending indexes. */
export const picked = (columns: Columns, indexes: readonly number[]): Columns => {
  const of = (values: ArrayLike<number>) => indexes.map((index) => values[index] as number);
  return {
    length: indexes.length,
    day: Int32Array.from(of(columns.day)),
    low: Float64Array.from(of(columns.low)),
    mid: Float64Array.from(of(columns.mid)),
    high: Float64Array.from(of(columns.high)),
    scale: Uint8Array.from(of(columns.scale)),
    publishedAt: Float64Array.from(of(columns.publishedAt)),
    corrections: Int32Array.from(of(columns.corrections)),
  };
};

/** Stored observations as points. The columns are shared, not copied. */
export function nativePoints(columns: Columns): PointColumns {
  const { length, day, scale, publishedAt, corrections } = columns;
  const column = (name: ValueName) => ({ scaled: columns[name], scale, wide: null });
  return {
    length,
    day,
    low: column('low'),
    mid: column('mid'),
    high: column('high'),
    publishedAt,
    corrections,
    fx: null,
    vat: null,
    periods: null,
  };
}
