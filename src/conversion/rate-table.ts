import { NO_DAY } from './calendar.ts';

/** How many days before the date of a price its rate may lie; domain rule of the ECB calendar. */
const RATE_DAYS_BACK = 7;

/** The published rates of one currency, by day from `firstDay` on; one slot for each day. */
export interface CurrencyRates {
  readonly iso: string;
  /** Days counted from 2000-01-01, both with a rate. Without any rate they are ∞ and -∞. */
  readonly firstDay: number;
  readonly lastDay: number;
  /** Units for one base, scaled by 10^scale, at most 15 digits; 0 is a day without a rate. */
  readonly scaled: Float64Array;
  readonly scale: Uint8Array;
}

/** Every rate of one source as it was known at one revision. */
export interface RateTable {
  readonly source: string;
  /** The currency that the source quotes against: always one for one, on every day. */
  readonly base: { readonly id: number; readonly iso: string };
  /** By the number of the currency; the base is not among them. */
  readonly currencies: ReadonlyMap<number, CurrencyRates>;
}

/** The two legs of a conversion; null is the base itself. */
export interface RatePair {
  readonly source: string;
  /** ISO 4217 code of the currency that the source quotes against. */
  readonly base: string;
  readonly from: CurrencyRates | null;
  readonly to: CurrencyRates | null;
}

/**
 * The legs from one currency to another, by their numbers. Null where the source has no rate at
 * all for one of them.
 */
export function pairOf(table: RateTable, from: number, to: number): RatePair | null {
  const legOf = (currency: number) =>
    currency === table.base.id ? null : table.currencies.get(currency);
  const fromLeg = legOf(from);
  const toLeg = legOf(to);
  if (fromLeg === undefined || toLeg === undefined) return null;
  return { source: table.source, base: table.base.iso, from: fromLeg, to: toLeg };
}

/** A currency of which a source has no rate at all. */
export const withoutRates = (iso: string): CurrencyRates => ({
  iso,
  firstDay: Number.POSITIVE_INFINITY,
  lastDay: Number.NEGATIVE_INFINITY,
  scaled: new Float64Array(0),
  scale: new Uint8Array(0),
});

/** True if a source has any rate of a currency. */
export const hasAnyRate = ({ firstDay, lastDay }: CurrencyRates): boolean => firstDay <= lastDay;

/** Whether a leg has a rate on a day; the base always has. */
export const hasRate = (leg: CurrencyRates | null, day: number): boolean =>
  leg === null ||
  (day >= leg.firstDay && day <= leg.lastDay && (leg.scaled[day - leg.firstDay] as number) > 0);

/**
 * The day whose rates apply to a day: the day itself or the latest before it, at most
 * `RATE_DAYS_BACK` days back, on which both legs have one. `NO_DAY` where there is none; never a
 * later day.
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
 * Reads the rates of a currency from two lists separated by commas: days counted from 2000-01-01,
 * ascending, and the rates of these days as plain decimals.
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
