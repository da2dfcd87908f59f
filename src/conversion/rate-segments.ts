import type { MeanPeriod } from '../catalog/analytics.ts';
import { periodOf } from './calendar.ts';
import { hasMean } from './period-means.ts';
import {
  type AppliedLegs,
  type CurrencyRates,
  hasAnyRate,
  hasRate,
  type Legs,
  RATE_DAYS_BACK,
} from './rate-table.ts';

/** Consecutive days, both ends inclusive, that lack the same rates. */
export interface Segment {
  /** Days since 2000-01-01. The first segment starts at -∞, the last ends at ∞. */
  readonly first: number;
  readonly last: number;
  /** The currencies without a rate for these days; empty if the pair converts. */
  readonly lacking: readonly CurrencyRates[];
}

/** The last visited day with a rate of each leg, and of both. */
interface LastRates {
  from: number;
  to: number;
  both: number;
}

const isNear = (seen: number, day: number): boolean => day - seen <= RATE_DAYS_BACK;

/** The currencies that a day lacks: both, if their rates were published on different days. */
function lackingOn({ from, to }: Legs, seen: LastRates, day: number): readonly CurrencyRates[] {
  if (isNear(seen.both, day)) return [];
  const legs = [from, to].filter((each) => each !== null);
  const lacking = legs.filter((each) => !isNear(each === from ? seen.from : seen.to, day));
  return lacking.length > 0 ? lacking : legs;
}

const isSame = (one: readonly CurrencyRates[], other: readonly CurrencyRates[]): boolean =>
  one.length === other.length && one.every((each) => other.includes(each));

/** The segments of a pair by the rates of days. */
function daySegments(pair: Legs): Segment[] {
  const legs = [pair.from, pair.to].filter((each) => each !== null);
  const begin = Math.min(...legs.map((each) => each.firstDay));
  const end = Math.max(...legs.map((each) => each.lastDay)) + RATE_DAYS_BACK;
  const segments: Segment[] = [];
  let first = Number.NEGATIVE_INFINITY;
  let lacking: readonly CurrencyRates[] = legs;
  const seen: LastRates = { from: first, to: first, both: first };
  for (let day = begin; day <= end + 1; day += 1) {
    const [hasFrom, hasTo] = [hasRate(pair.from, day), hasRate(pair.to, day)];
    if (hasFrom) seen.from = day;
    if (hasTo) seen.to = day;
    if (hasFrom && hasTo) seen.both = day;
    const current = lackingOn(pair, seen, day);
    if (isSame(current, lacking)) continue;
    segments.push({ first, last: day - 1, lacking });
    first = day;
    lacking = current;
  }
  return [...segments, { first, last: Number.POSITIVE_INFINITY, lacking }];
}

/** The currencies that a period lacks: both, if only their common rate days do not cover it. */
function lackingIn(pair: Legs, start: number, end: number): readonly CurrencyRates[] {
  if (hasMean(pair, start, end)) return [];
  const legs = [pair.from, pair.to].filter((each) => each !== null);
  const lacking = legs.filter((each) => !hasMean({ from: each, to: null }, start, end));
  return lacking.length > 0 ? lacking : legs;
}

/** The segments of a pair by the mean rates of months or years. */
function meanSegments(pair: Legs, period: MeanPeriod): Segment[] {
  const legs = [pair.from, pair.to].filter((each) => each !== null);
  const newest = Math.max(...legs.map((each) => each.lastDay));
  const segments: Segment[] = [];
  let first = Number.NEGATIVE_INFINITY;
  let lacking: readonly CurrencyRates[] = legs;
  // Without any rate the first day is ∞.
  let start = Math.min(...legs.map((each) => each.firstDay));
  while (start <= newest) {
    const days = periodOf(start, period);
    const current = lackingIn(pair, days.start, days.end);
    if (!isSame(current, lacking)) {
      segments.push({ first, last: days.start - 1, lacking });
      first = days.start;
      lacking = current;
    }
    start = days.end + 1;
  }
  if (!isSame(lacking, legs)) {
    segments.push({ first, last: start - 1, lacking });
    first = start;
  }
  return [...segments, { first, last: Number.POSITIVE_INFINITY, lacking: legs }];
}

type ByPeriod = Map<MeanPeriod | null, readonly Segment[]>;

const computedSegments = (pair: AppliedLegs): readonly Segment[] =>
  pair.meanOf === null ? daySegments(pair) : meanSegments(pair, pair.meanOf);

/**
 * Segments by the legs of their pairs. They are freed with their rate table, so that no leg without
 * rates, which belongs to none, is among them.
 */
const known = new WeakMap<CurrencyRates, Map<CurrencyRates | null, ByPeriod>>();

/** All days, in segments that lack the same rates of a pair. */
export function segmentsOf(pair: AppliedLegs): readonly Segment[] {
  const [leg, other] = pair.from === null ? [pair.to, null] : [pair.from, pair.to];
  // Both legs are the base: it is never converted into itself.
  if (leg === null) return [];
  if ([leg, other].some((each) => each !== null && !hasAnyRate(each)))
    return computedSegments(pair);
  const ofLeg = known.get(leg) ?? new Map<CurrencyRates | null, ByPeriod>();
  known.set(leg, ofLeg);
  const ofPair: ByPeriod = ofLeg.get(other) ?? new Map();
  ofLeg.set(other, ofPair);
  const { meanOf } = pair;
  const segments = ofPair.get(meanOf) ?? computedSegments(pair);
  ofPair.set(meanOf, segments);
  return segments;
}
