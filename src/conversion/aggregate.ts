import type { Method, Period } from '../catalog/analytics.ts';
import { periodOf } from './calendar.ts';
import type { Columns, DecimalColumn, PointColumns, ValueName } from './columns.ts';
import { POWERS } from './decimal.ts';
import { exactValue, FACTOR_ERROR, factorsOf, type Observations } from './observations.ts';
import { compare, plus, type Rational, ZERO } from './rational.ts';
import { RoundedColumn, type Rounding } from './rounding.ts';

export interface Aggregation {
  readonly period: Period;
  readonly method: Method;
}

/** Which observations, from one index up to another, make each point. */
interface Groups {
  readonly length: number;
  /** One more than there are groups: where each begins, and the end of the last. */
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

/** Everything that one column of one aggregation is computed from. */
interface Work {
  readonly observations: Observations;
  readonly name: ValueName;
  readonly stored: Float64Array;
  readonly factors: Float64Array;
  readonly method: Method;
}

/** Whether any observation of a group lacks the value. */
function lacks({ stored, factors }: Work, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    if (Number.isNaN((stored[index] as number) * (factors[index] as number))) return true;
  }
  return false;
}

const exactAt = ({ observations, name }: Work, index: number): Rational => {
  const value = exactValue(observations, name, index);
  if (value === null) throw new Error('an observation without a value was aggregated');
  return value;
};

/** Roundings of an average beside those of its sum: the factors, a division, a power of ten. */
const AVERAGE_ERROR = FACTOR_ERROR + 2.4e-16;

/** One rounding of a sum, at most 2^-53 of what was summed so far. */
const SUM_ERROR = 1.2e-16;

/** The mean of the unrounded observations, rounded once. */
function average(work: Work, from: number, to: number, out: RoundedColumn, at: number): void {
  const { stored, factors } = work;
  const count = to - from;
  let sum = 0;
  let amount = 0;
  for (let index = from; index < to; index += 1) {
    const value = (stored[index] as number) * (factors[index] as number);
    sum += value;
    amount += Math.abs(value);
  }
  // Where values cancel out, the error is that of their amounts, not that of the small rest.
  const error = (amount / count) * (AVERAGE_ERROR + 2 * SUM_ERROR * count);
  if (out.settle(at, sum / count, error)) return;
  let total = ZERO;
  for (let index = from; index < to; index += 1) total = plus(total, exactAt(work, index));
  const denominator = total.denominator * BigInt(count);
  out.settleExact(at, { numerator: total.numerator, denominator });
}

/** The index of the observation that a method picks, as far as doubles can tell. */
function pick(work: Work, from: number, to: number): number {
  const { stored, factors, method, observations } = work;
  if (method === 'first') return from;
  if (method === 'last') return to - 1;
  const native = observations.conversion === null;
  const { scale } = observations.columns;
  const sign = method === 'max' ? -1 : 1;
  let best = from;
  let least = Number.POSITIVE_INFINITY;
  for (let index = from; index < to; index += 1) {
    const value = stored[index] as number;
    // A quotient of two exact doubles keeps numbers of at most 15 digits apart and in order.
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
function exactExtreme(work: Work, from: number, to: number): Rational {
  const sign = work.method === 'max' ? -1 : 1;
  let best = exactAt(work, from);
  for (let index = from + 1; index < to; index += 1) {
    const value = exactAt(work, index);
    if (sign * compare(value, best) < 0) best = value;
  }
  return best;
}

/** Writes the observation that the method picks: as it is stored, or converted and rounded. */
function selected(work: Work, from: number, to: number, out: RoundedColumn, at: number): void {
  const { stored, factors, method, observations } = work;
  const index = pick(work, from, to);
  if (observations.conversion === null) {
    out.copy(at, stored[index] as number, observations.columns.scale[index] as number);
    return;
  }
  const value = (stored[index] as number) * (factors[index] as number);
  // Two values too close for doubles to order are also within this error of one another.
  if (out.settle(at, value, Math.abs(value) * FACTOR_ERROR)) return;
  const byPlace = method === 'first' || method === 'last';
  out.settleExact(at, byPlace ? exactAt(work, index) : exactExtreme(work, from, to));
}

function aggregateColumn(work: Work, groups: Groups, rounding: Rounding): DecimalColumn {
  const out = new RoundedColumn(groups.length, rounding);
  for (let group = 0; group < groups.length; group += 1) {
    const from = groups.from[group] as number;
    const to = groups.from[group + 1] as number;
    if (lacks(work, from, to)) out.clear(group);
    else if (work.method === 'average') average(work, from, to, out, group);
    else selected(work, from, to, out, group);
  }
  return out;
}

/** When the newest observation of each period was published, and how often all were corrected. */
function provenance(columns: Columns, groups: Groups) {
  const publishedAt = new Float64Array(groups.length).fill(Number.NEGATIVE_INFINITY);
  const corrections = new Int32Array(groups.length);
  const observations = new Int32Array(groups.length);
  for (let group = 0; group < groups.length; group += 1) {
    const from = groups.from[group] as number;
    const to = groups.from[group + 1] as number;
    observations[group] = to - from;
    for (let index = from; index < to; index += 1) {
      const published = columns.publishedAt[index] as number;
      if (published > (publishedAt[group] as number)) publishedAt[group] = published;
      corrections[group] = (corrections[group] as number) + (columns.corrections[index] as number);
    }
  }
  return { publishedAt, corrections, observations };
}

/**
 * One point for each calendar period that has an observation, in date order: low of lows, mid of
 * mids, high of highs, from unrounded (converted) observations, averages and converted values
 * rounded once, stored values as they are. A value is null where any observation of its period
 * lacks it. A period at the edge of the range is what the range holds of it.
 */
export function aggregatedPoints(
  observations: Observations,
  aggregation: Aggregation,
  rounding: Rounding,
): PointColumns {
  const { columns } = observations;
  const groups = groupsOf(columns, aggregation.period);
  const factors = factorsOf(observations);
  const column = (name: ValueName) => {
    const { method } = aggregation;
    const work: Work = { observations, name, stored: columns[name], factors, method };
    return aggregateColumn(work, groups, rounding);
  };
  const { publishedAt, corrections, observations: counts } = provenance(columns, groups);
  return {
    length: groups.length,
    day: groups.end,
    low: column('low'),
    mid: column('mid'),
    high: column('high'),
    publishedAt,
    corrections,
    fx: null,
    periods: { start: groups.start, end: groups.end, observations: counts },
  };
}
