import { type Segment, segmentsOf } from '../../conversion/rate-segments.ts';
import {
  type AppliedLegs,
  type CurrencyRates,
  hasAnyRate,
  type RateTable,
  withoutRates,
} from '../../conversion/rate-table.ts';
import { summaryDays } from '../../conversion/summary.ts';
import { type Days, dayOf } from '../../std/days.ts';
import { mapped, Slice, visited } from '../../std/turns.ts';
import type { MarketReader } from '../market/reader.ts';
import type { References } from '../market/references.ts';
import type { Plan } from '../plan/plan.ts';
import { type Extent, joinedPoints, type PriceStretch, spanOf } from '../series/ranges.ts';
import {
  type CheckedPrices,
  meanOf,
  type PlannedPrice,
  type RatesOfPrice,
  refusedPrices,
  type Targets,
} from './conversions.ts';
import { ratesMissing, type Stretch, type Warning } from './warnings.ts';

/**
 * Stretches of one read. A source with monthly rates has hundreds of segments, so that all
 * stretches of a large market would take hundreds of MB.
 */
const STRETCHES_PER_READ = 50_000;

type ExtentReader = Pick<MarketReader, 'extents'>;

/** The rates that a request converts with. */
interface RatesInUse {
  /** Slug of the source; null if no currency is converted. */
  readonly source: string | null;
  readonly ratesOf: RatesOfPrice;
  readonly references: References;
  readonly targets: Targets;
}

/** The legs of a price that needs rates, and the kind of its rate table. */
interface NeededLegs extends AppliedLegs {
  readonly kind: RateTable['kind'];
}

/** Finds the legs of a price, also if the source has no rate of one of them; null without legs. */
function legsReader(plan: Plan, { ratesOf, references, targets }: RatesInUse) {
  const unrated = new Map<string, CurrencyRates>();
  const legOf = (rates: RateTable | null, kind: NeededLegs['kind'], id: number) => {
    if (id === rates?.base.id) return null;
    const key = `${kind} ${id}`;
    const leg =
      rates?.currencies.get(id) ??
      unrated.get(key) ??
      withoutRates(references.currencies.get(id)?.member.iso ?? '');
    if (!hasAnyRate(leg)) unrated.set(key, leg);
    return leg;
  };
  return ({ price, outcome }: PlannedPrice): NeededLegs | null => {
    const rates = ratesOf(price);
    const kind = rates?.kind ?? 'published';
    if (outcome?.conversion?.pair) return { ...outcome.conversion.pair, kind };
    const { currency_id: own } = price;
    if (outcome?.reason !== 'no-rate' || own === null || !targets.currency) return null;
    const [from, to] = [legOf(rates, kind, own), legOf(rates, kind, targets.currency.id)];
    return { from, to, kind, meanOf: meanOf(plan, price) };
  };
}

/** The prices of a request that one pair of currencies converts, by day or by one period. */
interface PairPrices {
  readonly legs: NeededLegs;
  readonly segments: readonly Segment[];
  readonly priceIds: number[];
  /** The newest day of their points, which may be after the requested days. */
  newestDay: number;
  /** The requested points that were counted, by index of their segment. */
  readonly counted: Map<number, Extent>;
}

/** The prices that need rates, by their legs. */
async function pairsOf(
  plan: Plan,
  planned: readonly PlannedPrice[],
  inUse: RatesInUse,
): Promise<readonly PairPrices[]> {
  const legsOf = legsReader(plan, inUse);
  const found = new Map<string, PairPrices>();
  await visited(planned, (each) => {
    const legs = legsOf(each);
    if (legs === null) return;
    // Sample rates and published ones are never the same leg.
    const key = `${legs.kind} ${legs.from?.iso}>${legs.to?.iso} ${legs.meanOf}`;
    const pair: PairPrices = found.get(key) ?? {
      legs,
      segments: segmentsOf(legs),
      priceIds: [],
      newestDay: -Infinity,
      counted: new Map(),
    };
    found.set(key, pair);
    const { id, last_date: newest } = each.price;
    pair.priceIds.push(id);
    if (newest !== null) pair.newestDay = Math.max(pair.newestDay, dayOf(newest));
  });
  return [...found.values()];
}

/**
 * The pairs with a currency that lacks a rate on some of these days, for its own points or those
 * of another pair: a warning counts all points that need the currency.
 */
function lackingPairs(
  pairs: readonly PairPrices[],
  daysOf: (pair: PairPrices) => Days,
): readonly PairPrices[] {
  const lacked = new Set<CurrencyRates | null>();
  for (const pair of pairs) {
    const days = daysOf(pair);
    for (const { first, last, lacking } of pair.segments)
      if (first <= days.last && last >= days.first) for (const leg of lacking) lacked.add(leg);
  }
  return pairs.filter(({ legs: { from, to } }) => lacked.has(from) || lacked.has(to));
}

/** The first requested day: a summary needs points before the requested days. */
const firstDayOf = ({ days, options }: Plan): number =>
  options.includeSummary ? -Infinity : days.first;

/** The days of the requested points of each price that has any, by its id. */
async function pointDays(
  reader: ExtentReader,
  pairs: readonly PairPrices[],
  plan: Plan,
): Promise<ReadonlyMap<number, Days>> {
  const first = firstDayOf(plan);
  const { last } = plan.days;
  const ids = pairs.flatMap(({ priceIds }) => priceIds);
  const found = await reader.extents(
    await mapped(ids, (priceId) => ({ priceId, first, last, isCounted: false })),
  );
  return new Map(
    ids.flatMap((id, index) => {
      const extent = found[index] ?? null;
      return extent === null ? [] : [[id, extent] as const];
    }),
  );
}

/** A stretch of days in which requested points are looked for. */
interface SoughtStretch extends PriceStretch {
  readonly pair: PairPrices;
  /** Index of the segment that contains the days; null if only the last point is requested. */
  readonly segment: number | null;
}

/**
 * The days of the series of each price, cut at the ends of segments, and the days whose last point
 * a summary needs.
 * @param days the days of the requested points of each price
 */
function* soughtStretches(
  pairs: readonly PairPrices[],
  plan: Plan,
  days: ReadonlyMap<number, Days>,
): Generator<SoughtStretch> {
  const { includeSeries, includeSummary } = plan.options;
  for (const pair of pairs) {
    for (const priceId of pair.priceIds) {
      const own = days.get(priceId);
      if (own === undefined) continue;
      const from = Math.max(plan.days.first, own.first);
      for (const [segment, each] of includeSeries ? pair.segments.entries() : []) {
        const [first, last] = [Math.max(each.first, from), Math.min(each.last, own.last)];
        if (first <= last) yield { pair, segment, priceId, first, last, isCounted: true };
      }
      for (const last of includeSummary ? [own.last, ...summaryDays(own.last)] : [])
        yield { pair, segment: null, priceId, first: -Infinity, last, isCounted: false };
    }
  }
}

/** Adds the requested points to their pairs, each once. */
class PointCounter {
  readonly #plan: Plan;
  /** Ids of the prices with requested points, and of those with a rate for any of these. */
  readonly #found = new Set<number>();
  readonly #rated = new Set<number>();
  /** By price: the days of points that only a summary needs. */
  readonly #summaryDays = new Map<number, Set<number>>();

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** Ids of prices with requested points, none of which has a rate. */
  get unconvertible(): ReadonlySet<number> {
    return new Set([...this.#found].filter((id) => !this.#rated.has(id)));
  }

  add({ pair, segment, priceId }: SoughtStretch, found: Extent): void {
    if (segment !== null) this.#addTo(pair, segment, priceId, found);
    else this.#addLast(pair, priceId, found.last);
  }

  #addLast(pair: PairPrices, priceId: number, day: number): void {
    const { days, options } = this.#plan;
    if (options.includeSeries && day >= days.first) return;
    const known = this.#summaryDays.get(priceId) ?? new Set();
    if (known.has(day)) return;
    this.#summaryDays.set(priceId, known.add(day));
    const segment = pair.segments.findIndex(({ first, last }) => first <= day && day <= last);
    this.#addTo(pair, segment, priceId, { first: day, last: day, points: 1 });
  }

  #addTo({ counted, segments }: PairPrices, index: number, priceId: number, found: Extent): void {
    counted.set(index, joinedPoints(counted.get(index), found));
    this.#found.add(priceId);
    if (segments[index]?.lacking.length === 0) this.#rated.add(priceId);
  }
}

/**
 * Counts the requested points of the pairs that lack a rate, and of all other pairs that need the
 * same currencies. It takes two reads: the days of each price, and its points by segment; many
 * segments are read in several. It reads nothing if the rates cover the requested days.
 * @returns the ids of prices with requested points, none of which has a rate
 */
async function countPoints(
  reader: ExtentReader,
  pairs: readonly PairPrices[],
  plan: Plan,
): Promise<ReadonlySet<number>> {
  const counter = new PointCounter(plan);
  const possible = lackingPairs(pairs, ({ newestDay }) => ({
    first: firstDayOf(plan),
    last: Math.min(plan.days.last, newestDay),
  }));
  if (possible.length === 0) return counter.unconvertible;
  const days = await pointDays(reader, possible, plan);
  const lacking = lackingPairs(possible, ({ priceIds }) =>
    spanOf(priceIds.flatMap((id) => days.get(id) ?? [])),
  );
  let stretches: SoughtStretch[] = [];
  const read = async (): Promise<void> => {
    const extents = await reader.extents(stretches);
    await visited([...stretches.entries()], ([index, stretch]) => {
      const found = extents[index] ?? null;
      if (found !== null) counter.add(stretch, found);
    });
    stretches = [];
  };
  const slice = new Slice();
  for (const stretch of soughtStretches(lacking, plan, days)) {
    stretches.push(stretch);
    if (stretches.length === STRETCHES_PER_READ) await read();
    if (slice.isOver) await slice.yieldIfOver();
  }
  if (stretches.length > 0) await read();
  return counter.unconvertible;
}

/** The stretches of one pair that lack a currency and have requested points. */
function stretchesOf({ segments, counted }: PairPrices, leg: CurrencyRates): Stretch[] {
  const stretches: Stretch[] = [];
  let [first, on]: [number | null, Extent | undefined] = [null, undefined];
  for (const [index, segment] of segments.entries()) {
    const isLacking = segment.lacking.includes(leg);
    const here = isLacking ? counted.get(index) : undefined;
    if (isLacking) first ??= segment.first;
    if (here) on = joinedPoints(on, here);
    if (isLacking && segments[index + 1]?.lacking.includes(leg)) continue;
    if (first !== null && on) stretches.push({ first, last: segment.last, on });
    [first, on] = [null, undefined];
  }
  return stretches;
}

/** Joins the stretches of several pairs that overlap or follow each other. */
function joinedStretches(stretches: readonly Stretch[]): Stretch[] {
  const joined: Stretch[] = [];
  for (const each of stretches.toSorted((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before === undefined || each.first > before.last + 1) joined.push(each);
    else {
      const last = Math.max(before.last, each.last);
      joined[joined.length - 1] = { ...before, last, on: joinedPoints(before.on, each.on) };
    }
  }
  return joined;
}

/** By currency code; a currency without any rate comes before one of the same code with rates. */
const inCodeOrder = (one: CurrencyRates, other: CurrencyRates): number =>
  one.iso === other.iso
    ? Number(hasAnyRate(one)) - Number(hasAnyRate(other))
    : one.iso < other.iso
      ? -1
      : 1;

/** A warning for each currency without rates for requested points, or without any rate. */
function warningsOf(source: string, pairs: readonly PairPrices[]): Warning[] {
  const legs = pairs.flatMap(({ legs: { from, to } }) => [from, to]).filter((leg) => leg !== null);
  return [...new Set(legs)].sort(inCodeOrder).flatMap((leg) => {
    const own = pairs.filter((pair) => pair.legs.from === leg || pair.legs.to === leg);
    const stretches = joinedStretches(own.flatMap((pair) => stretchesOf(pair, leg)));
    const [pair] = own;
    if (pair === undefined || (stretches.length === 0 && hasAnyRate(leg))) return [];
    const counted = own.flatMap((each) => [...each.counted.values()]);
    const points = counted.reduce((sum, each) => sum + each.points, 0);
    const means = own.some((each) => each.legs.meanOf !== null);
    const days = own.some((each) => each.legs.meanOf === null);
    const requested = { points, kind: pair.legs.kind, means, days };
    return [ratesMissing(source, leg, requested, stretches)];
  });
}

/**
 * Warns of each currency without rates for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate.
 */
export async function withMissingRates(
  reader: ExtentReader,
  plan: Plan,
  planned: readonly PlannedPrice[],
  inUse: RatesInUse,
): Promise<CheckedPrices> {
  const { includeSeries, includeSummary } = plan.options;
  const pairs = await pairsOf(plan, planned, inUse);
  const hasPoints = includeSeries || includeSummary;
  const unconvertible = await countPoints(reader, hasPoints ? pairs : [], plan);
  const warnings = warningsOf(inUse.source ?? '', pairs);
  return { planned: await refusedPrices(planned, unconvertible, 'no-rate'), warnings };
}
