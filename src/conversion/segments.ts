import { type CurrencyRates, hasRate, RATE_DAYS_BACK, type RatePair } from './rate-table.ts';

/** The two currencies of a conversion, also such as have no rate at all; null is the base. */
export type Legs = Pick<RatePair, 'from' | 'to'>;

/** Consecutive days, both ends inclusive, that are alike in which rates they lack. */
export interface Segment {
  /** Days counted from 2000-01-01; the first segment begins, and the last one ends, at infinity. */
  readonly first: number;
  readonly last: number;
  /** The currencies without a rate for these days; none where the pair converts. */
  readonly lacking: readonly CurrencyRates[];
}

/** The last day up to now on which each of these had a rate. */
interface Seen {
  from: number;
  to: number;
  both: number;
}

const isNear = (seen: number, day: number): boolean => day - seen <= RATE_DAYS_BACK;

/** The currencies that a day lacks; those of a day whose legs were published apart are both. */
function lackingOn({ from, to }: Legs, seen: Seen, day: number): readonly CurrencyRates[] {
  if (isNear(seen.both, day)) return [];
  const legs = [from, to].filter((each) => each !== null);
  const lacking = legs.filter((each) => !isNear(each === from ? seen.from : seen.to, day));
  return lacking.length > 0 ? lacking : legs;
}

const isSame = (one: readonly CurrencyRates[], other: readonly CurrencyRates[]): boolean =>
  one.length === other.length && one.every((each) => other.includes(each));

function madeOf(pair: Legs): Segment[] {
  const legs = [pair.from, pair.to].filter((each) => each !== null);
  const begin = Math.min(...legs.map((each) => each.firstDay));
  const end = Math.max(...legs.map((each) => each.lastDay)) + RATE_DAYS_BACK;
  const segments: Segment[] = [];
  let first = Number.NEGATIVE_INFINITY;
  let lacking: readonly CurrencyRates[] = legs;
  const seen: Seen = { from: first, to: first, both: first };
  for (let day = begin; day <= end + 1; day += 1) {
    const [hasFrom, hasTo] = [hasRate(pair.from, day), hasRate(pair.to, day)];
    if (hasFrom) seen.from = day;
    if (hasTo) seen.to = day;
    if (hasFrom && hasTo) seen.both = day;
    const now = lackingOn(pair, seen, day);
    if (isSame(now, lacking)) continue;
    segments.push({ first, last: day - 1, lacking });
    first = day;
    lacking = now;
  }
  return [...segments, { first, last: Number.POSITIVE_INFINITY, lacking }];
}

/** By the legs of their pairs; a table of rates that is dropped takes its segments with it. */
const known = new WeakMap<CurrencyRates, Map<CurrencyRates | null, readonly Segment[]>>();

/** All days, cut where the rates that a pair of currencies lacks change. */
export function segmentsOf(pair: Legs): readonly Segment[] {
  const [leg, other] = pair.from === null ? [pair.to, null] : [pair.from, pair.to];
  // A source has one base: a pair of it with itself is never converted.
  if (leg === null) return [];
  const ofLeg = known.get(leg) ?? new Map<CurrencyRates | null, readonly Segment[]>();
  known.set(leg, ofLeg);
  const segments = ofLeg.get(other) ?? madeOf(pair);
  ofLeg.set(other, segments);
  return segments;
}
