import type { Method, Period } from '../catalog/analytics.ts';
import { POWERS } from '../std/decimal.ts';
import { periodOf } from './calendar.ts';
import {
  type Columns,
  type DecimalColumn,
  type LackingRate,
  type PointColumns,
  picked,
  type ValueName,
} from './columns.ts';
import {
  exactValue,
  FACTOR_ERROR,
  factorsOf,
  firstLacking,
  hasRates,
  lackingOf,
  type Observations,
  observe,
} from './convert.ts';
import { FixedSums } from './fixed-sums.ts';
import { compare, plus, type Rational, ZERO } from './rational.ts';
import { RoundedColumn, type Rounding } from './rounding.ts';

interface Aggregation {
  readonly period: Period;
  readonly method: Method;
}

/** The observations of each aggregated point, from one index up to another. */
interface Groups {
  readonly length: number;
  /** The first index of each group, and the end of the last: `length` + 1 values. */
  readonly from: Int32Array;
  readonly start: Int32Array;
  readonly end: Int32Array;
}

function groupsOf(columns: Columns, period: Period): Groups {
  const { length: count, day } = columns;
  const from = new Int32Array(count + 1);
  const start = new Int32Array(count);
  const end = new Int32Array(count);
  let length = 0;
  for (let index = 0; index < count; index += 1) {
    const today = day[index] as number;
    if (length > 0 && today <= (end[length - 1] as number)) continue;
    const found = periodOf(today, period);
    from[length] = index;
    start[length] = found.start;
    end[length] = found.end;
    length += 1;
  }
  from[length] = count;
  return {
    length,
    from: from.slice(0, length + 1),
    start: start.slice(0, length),
    end: end.slice(0, length),
  };
}

/** The observations with a rate, grouped. */
interface RatedGroups {
  readonly observations: Observations;
  /** The same shape as in `Groups`. */
  readonly from: Int32Array;
}

/** Removes the observations without a rate. */
function ratedOf(observations: Observations, groups: Groups): RatedGroups {
  if (observations.lacking === null) return { observations, from: groups.from };
  const { columns, conversion } = observations;
  const kept: number[] = [];
  const from = new Int32Array(groups.length + 1);
  for (let group = 0; group < groups.length; group += 1) {
    from[group] = kept.length;
    const end = groups.from[group + 1] as number;
    for (let index = groups.from[group] as number; index < end; index += 1) {
      if (hasRates(observations, index)) kept.push(index);
    }
  }
  from[groups.length] = kept.length;
  return { observations: observe(picked(columns, kept), conversion), from };
}

/** For `first` and `last`: marks the groups whose selected observation has no rate. */
function unknownGroups(observations: Observations, groups: Groups, method: Method): Uint8Array {
  const unknown = new Uint8Array(groups.length);
  if (method !== 'first' && method !== 'last') return unknown;
  for (let group = 0; group < groups.length; group += 1) {
    const index = method === 'first' ? groups.from[group] : (groups.from[group + 1] as number) - 1;
    if (!hasRates(observations, index as number)) unknown[group] = 1;
  }
  return unknown;
}

/** The input of one aggregated column. */
interface ColumnInput {
  readonly observations: Observations;
  readonly name: ValueName;
  readonly stored: Float64Array;
  readonly factors: Float64Array;
  readonly method: Method;
  /** Sums of converted values between bounds; null where exact sums have short denominators. */
  readonly sums: FixedSums | null;
}

/** The sums of a column. Only exchange rates give each observation a denominator of its own. */
const sumsOf = (observations: Observations, name: ValueName): FixedSums | null =>
  observations.fx && new FixedSums((index) => exactValue(observations, name, index));

/** True if any observation of a group lacks the value. */
function lacks({ stored, factors }: ColumnInput, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    if (Number.isNaN((stored[index] as number) * (factors[index] as number))) return true;
  }
  return false;
}

const exactAt = ({ observations, name }: ColumnInput, index: number): Rational => {
  const value = exactValue(observations, name, index);
  if (value === null) throw new Error('an observation without a value was aggregated');
  return value;
};

/** Error of an average in addition to that of its sum: the factors, a division, a power of ten. */
const AVERAGE_ERROR = FACTOR_ERROR + 2.4e-16;

/** Error of one addition, relative to the sum so far: at most 2^-53. */
const SUM_ERROR = 1.2e-16;

/** The mean of the unrounded observations, rounded once. */
function average(
  input: ColumnInput,
  from: number,
  to: number,
  out: RoundedColumn,
  at: number,
): void {
  const { stored, factors } = input;
  const count = to - from;
  let sum = 0;
  let amount = 0;
  for (let index = from; index < to; index += 1) {
    const value = (stored[index] as number) * (factors[index] as number);
    sum += value;
    amount += Math.abs(value);
  }
  // If values cancel out, the error depends on their amounts, not on the small sum.
  const error = (amount / count) * (AVERAGE_ERROR + 2 * SUM_ERROR * count);
  if (out.tryRound(at, sum / count, error)) return;
  const bounds = input.sums?.meanBetween(from, to);
  if (bounds && out.tryRoundBetween(at, ...bounds)) return;
  let total = ZERO;
  for (let index = from; index < to; index += 1) total = plus(total, exactAt(input, index));
  const denominator = total.denominator * BigInt(count);
  out.roundExactly(at, { numerator: total.numerator, denominator });
}

/** The index of the observation that a method selects, compared as doubles. */
function pick(input: ColumnInput, from: number, to: number): number {
  const { stored, factors, method, observations } = input;
  if (method === 'first') return from;
  if (method === 'last') return to - 1;
  const native = observations.conversion === null;
  const { scale } = observations.columns;
  const sign = method === 'max' ? -1 : 1;
  let best = from;
  let least = Number.POSITIVE_INFINITY;
  for (let index = from; index < to; index += 1) {
    const value = stored[index] as number;
    // The quotient of two exact doubles preserves the order of numbers with at most 15 digits.
    const number = native
      ? value / (POWERS[scale[index] as number] as number)
      : value * (factors[index] as number);
    if (sign * number < least) {
      least = sign * number;
      best = index;
    }
  }
  return best;
}

/** The least or greatest of the unrounded observations, exactly. */
function exactExtreme(input: ColumnInput, from: number, to: number): Rational {
  const sign = input.method === 'max' ? -1 : 1;
  let best = exactAt(input, from);
  for (let index = from + 1; index < to; index += 1) {
    const value = exactAt(input, index);
    if (sign * compare(value, best) < 0) best = value;
  }
  return best;
}

/** Writes the observation that the method selects: stored, or converted and rounded. */
function selected(
  input: ColumnInput,
  from: number,
  to: number,
  out: RoundedColumn,
  at: number,
): void {
  const { stored, factors, method, observations } = input;
  const index = pick(input, from, to);
  if (observations.conversion === null) {
    out.copy(at, stored[index] as number, observations.columns.scale[index] as number);
    return;
  }
  const value = (stored[index] as number) * (factors[index] as number);
  // Two values that doubles cannot order also differ by less than this error.
  if (out.tryRound(at, value, Math.abs(value) * FACTOR_ERROR)) return;
  const byPlace = method === 'first' || method === 'last';
  out.roundExactly(at, byPlace ? exactAt(input, index) : exactExtreme(input, from, to));
}

function aggregateColumn(
  input: ColumnInput,
  starts: Int32Array,
  unknown: Uint8Array,
  rounding: Rounding,
): DecimalColumn {
  const { length } = unknown;
  const out = new RoundedColumn(length, rounding);
  for (let group = 0; group < length; group += 1) {
    const from = starts[group] as number;
    const to = starts[group + 1] as number;
    if (unknown[group] === 1 || from === to || lacks(input, from, to)) out.clear(group);
    else if (input.method === 'average') average(input, from, to, out, group);
    else selected(input, from, to, out, group);
  }
  return out;
}

/** The rates that points without a value lack: those of the selected or of all observations. */
function lackingRates(
  observations: Observations,
  groups: Groups,
  method: Method,
): readonly (LackingRate | null)[] {
  if (observations.lacking === null) return [];
  return Array.from({ length: groups.length }, (_, group) => {
    const from = groups.from[group] as number;
    const last = (groups.from[group + 1] as number) - 1;
    if (method === 'first') return lackingOf(observations, from);
    if (method === 'last') return lackingOf(observations, last);
    let lacking: LackingRate | null = null;
    for (let index = from; index <= last; index += 1) {
      lacking = firstLacking(lacking, lackingOf(observations, index));
    }
    return lacking;
  });
}

/** The newest publication time of each period, and the sum of its corrections. */
function provenance(columns: Columns, groups: Groups) {
  const publishedAt = new Float64Array(groups.length).fill(Number.NEGATIVE_INFINITY);
  const corrections = new Int32Array(groups.length);
  for (let group = 0; group < groups.length; group += 1) {
    const from = groups.from[group] as number;
    const to = groups.from[group + 1] as number;
    for (let index = from; index < to; index += 1) {
      const published = columns.publishedAt[index] as number;
      if (published > (publishedAt[group] as number)) publishedAt[group] = published;
      corrections[group] = (corrections[group] as number) + (columns.corrections[index] as number);
    }
  }
  return { publishedAt, corrections };
}

/** The number of observations of each point with a rate, and without. */
function countsOf(groups: Groups, rated: Int32Array) {
  const observations = new Int32Array(groups.length);
  const leftOut = new Int32Array(groups.length);
  for (let group = 0; group < groups.length; group += 1) {
    const all = (groups.from[group + 1] as number) - (groups.from[group] as number);
    const used = (rated[group + 1] as number) - (rated[group] as number);
    observations[group] = used;
    leftOut[group] = all - used;
  }
  return { observations, leftOut };
}

/**
 * One point for each calendar period with an observation, in date order: low of lows, mid of mids,
 * high of highs. They are computed from unrounded (converted) observations. Averages and converted
 * values are rounded once; stored values are not rounded. A period at the edge of the range
 * contains only observations within the range.
 *
 * `average`, `min` and `max` skip the observations without a rate and count them. `first` and
 * `last` select one observation: if it has no rate, the point is null. A value is also null if a
 * used observation lacks it. Publication and corrections cover all observations.
 */
export function aggregatedPoints(
  observations: Observations,
  { period, method }: Aggregation,
  rounding: Rounding,
): PointColumns {
  const { columns } = observations;
  const groups = groupsOf(columns, period);
  const rated = ratedOf(observations, groups);
  const unknown = unknownGroups(observations, groups, method);
  const factors = factorsOf(rated.observations);
  const column = (name: ValueName) => {
    const stored = rated.observations.columns[name];
    const sums = sumsOf(rated.observations, name);
    const own = { observations: rated.observations, name, sums };
    const input: ColumnInput = { ...own, stored, factors, method };
    return aggregateColumn(input, rated.from, unknown, rounding);
  };
  const { publishedAt, corrections } = provenance(columns, groups);
  return {
    length: groups.length,
    day: groups.end,
    low: column('low'),
    mid: column('mid'),
    high: column('high'),
    publishedAt,
    corrections,
    fx: null,
    vat: null,
    periods: {
      start: groups.start,
      end: groups.end,
      ...countsOf(groups, rated.from),
      lacking: lackingRates(observations, groups, method),
    },
  };
}

/**
 * The moving average of each of the last points: the mean of the unrounded (converted) mids of its
 * observation and those before it, rounded once like the average of a period. Null if there are
 * fewer observations than `sessions`, or one of them has no rate.
 * @param observations those of the points, after the earlier ones that their means need
 * @param sessions number of observations of each mean
 * @param length number of points
 */
export function movingAverages(
  observations: Observations,
  sessions: number,
  length: number,
  rounding: Rounding,
): DecimalColumn {
  const { columns } = observations;
  const factors = factorsOf(observations);
  const stored = columns.mid;
  const own = { observations, name: 'mid', sums: sumsOf(observations, 'mid') } as const;
  const input: ColumnInput = { ...own, stored, factors, method: 'average' };
  const out = new RoundedColumn(length, rounding);
  const before = columns.length - length;
  for (let at = 0; at < length; at += 1) {
    const to = before + at + 1;
    const from = to - sessions;
    if (from < 0 || lacks(input, from, to)) out.clear(at);
    else average(input, from, to, out, at);
  }
  return out;
}
