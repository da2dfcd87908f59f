import { type Outcome, refused } from '../../conversion/outcome.ts';
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
import type { SelectedPrice } from '../market/query.ts';
import type { MarketReader } from '../market/reader.ts';
import type { References } from '../market/references.ts';
import type { Plan } from '../plan/plan.ts';
import type { Extent, PriceStretch } from '../series/ranges.ts';
import { meanOf, type PlannedPrice, type RatesOfPrice, type Targets } from './conversions.ts';
import { ratesMissing, type Stretch, type Warning } from './warnings.ts';

/**
 * Stretches of one read. A source with monthly rates has hundreds of segments, so that all
 * stretches of a large market would take hundreds of MB.
 */
const STRETCHES_PER_READ = 50_000;

/** The requested points of some prices. */
interface RequestedPoints {
  /** By index of a segment. */
  readonly segments: ReadonlyMap<number, Extent>;
  /** Prices with requested points, none of which has a rate. */
  readonly unconvertible: readonly number[];
}

/** The days that requested points of a price may have, without a query. */
function requestedDays({ days, options }: Plan, price: SelectedPrice): Days {
  const newest = price.last_date === null ? -Infinity : dayOf(price.last_date);
  // A summary needs points before the requested days.
  return {
    first: options.includeSummary ? -Infinity : days.first,
    last: Math.min(days.last, newest),
  };
}

/** Legs of the same currencies differ: sample rates convert sample prices only. */
const legsKey = ({ from, to, meanOf: period }: AppliedLegs): string =>
  `${[from, to].map((leg) => `${leg?.iso} ${leg?.lastDay}`).join('>')} ${period}`;

/** The rates that a request converts with. */
interface RatesInUse {
  /** Slug of the source; null if no currency is converted. */
  readonly source: string | null;
  readonly ratesOf: RatesOfPrice;
  readonly references: References;
  readonly targets: Targets;
}

type Unrated = Map<number, CurrencyRates>;

/** Legs of the currencies without any rate, by id: segments are cached by leg. */
const unratedIn = new WeakMap<RateTable, Unrated>();

function unratedOf(rates: RateTable): Unrated {
  const known = unratedIn.get(rates) ?? new Map<number, CurrencyRates>();
  unratedIn.set(rates, known);
  return known;
}

/** The legs of a price that needs rates, and what its rates are. */
interface NeededLegs extends AppliedLegs {
  readonly kind: RateTable['kind'];
}

/** A price that needs rates. */
interface RatedPrice {
  readonly price: SelectedPrice;
  readonly legs: NeededLegs;
}

/** Finds the legs of a price, also if the source has no rate of one of them. */
function legsReader(plan: Plan, { ratesOf, references, targets }: RatesInUse) {
  const withoutSource = new Map<number, CurrencyRates>();
  const legOf = (rates: RateTable | null, id: number): CurrencyRates | null => {
    if (id === rates?.base.id) return null;
    const unrated = rates === null ? withoutSource : unratedOf(rates);
    const found = rates?.currencies.get(id) ?? unrated.get(id);
    const leg = found ?? withoutRates(references.currencies.get(id)?.member.iso ?? '');
    if (found === undefined) unrated.set(id, leg);
    return leg;
  };
  return ({ price, outcome }: PlannedPrice): NeededLegs | null => {
    const rates = ratesOf(price);
    const kind = rates?.kind ?? 'published';
    if (outcome?.conversion?.pair) return { ...outcome.conversion.pair, kind };
    if (outcome?.reason !== 'no-rate' || price.currency_id === null || !targets.currency)
      return null;
    const [from, to] = [legOf(rates, price.currency_id), legOf(rates, targets.currency.id)];
    return { from, to, kind, meanOf: meanOf(plan, price) };
  };
}

/** The prices of a request in one pair of currencies. */
interface PairPrices {
  readonly legs: NeededLegs;
  readonly segments: readonly Segment[];
  readonly priceIds: number[];
  /** True if a requested point may have no rate. */
  mayLack: boolean;
}

/** The prices that need rates, by legs. */
async function pairsOf(plan: Plan, rated: readonly RatedPrice[]): Promise<PairPrices[]> {
  const { includeSeries, includeSummary } = plan.options;
  if (!includeSeries && !includeSummary) return [];
  const found = new Map<string, PairPrices>();
  await visited(rated, ({ price, legs }) => {
    const key = legsKey(legs);
    const pair = found.get(key) ?? {
      legs,
      priceIds: [],
      segments: segmentsOf(legs),
      mayLack: false,
    };
    found.set(key, pair);
    pair.priceIds.push(price.id);
    const { first, last } = requestedDays(plan, price);
    pair.mayLack ||= pair.segments.some(
      (segment) => segment.lacking.length > 0 && segment.first <= last && segment.last >= first,
    );
  });
  return [...found.values()];
}

/** The points of two disjoint groups within a segment or stretch. */
const joinedPoints = (one: Extent, other: Extent): Extent => ({
  first: Math.min(one.first, other.first),
  last: Math.max(one.last, other.last),
  points: one.points + other.points,
});

/** The stretches of one pair that lack a currency and have requested points. */
function stretchesOf(
  { segments }: PairPrices,
  { segments: found }: RequestedPoints,
  leg: CurrencyRates,
): Stretch[] {
  const stretches: Stretch[] = [];
  let [first, on]: [number | null, Extent | null] = [null, null];
  for (const [index, segment] of segments.entries()) {
    const isLacking = segment.lacking.includes(leg);
    const here = isLacking ? found.get(index) : undefined;
    if (isLacking) first ??= segment.first;
    if (here) on = on === null ? here : joinedPoints(on, here);
    if (isLacking && segments[index + 1]?.lacking.includes(leg)) continue;
    if (first !== null && on !== null) stretches.push({ first, last: segment.last, on });
    [first, on] = [null, null];
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

/** A currency that lacks a rate for some requested points, or has none at all. */
interface LackingCurrency {
  readonly kind: RateTable['kind'];
  /** True if points need the rate of their day, or the mean of their period. */
  days: boolean;
  means: boolean;
  /** Requested points of the prices that need the currency. */
  points: number;
  readonly stretches: Stretch[];
}

/** The currencies that lack a rate, with the requested points that need it. */
class Lacking {
  readonly #currencies = new Map<CurrencyRates, LackingCurrency>();

  #of(leg: CurrencyRates, { kind, meanOf: period }: NeededLegs): LackingCurrency {
    const none = { kind, days: false, means: false, points: 0, stretches: [] };
    const known: LackingCurrency = this.#currencies.get(leg) ?? none;
    if (period === null) known.days = true;
    else known.means = true;
    this.#currencies.set(leg, known);
    return known;
  }

  /** Adds the currencies of a price without any rate, whichever points are requested. */
  addUnrated(legs: NeededLegs): void {
    for (const leg of [legs.from, legs.to])
      if (leg !== null && !hasAnyRate(leg)) this.#of(leg, legs);
  }

  /** Adds the requested points of a pair. */
  add(pair: PairPrices, found: RequestedPoints): void {
    const { legs } = pair;
    const points = [...found.segments.values()].reduce((sum, each) => sum + each.points, 0);
    for (const leg of [legs.from, legs.to]) {
      if (leg === null) continue;
      const lacking = this.#of(leg, legs);
      lacking.points += points;
      lacking.stretches.push(...stretchesOf(pair, found, leg));
    }
  }

  /** One warning for each currency, in the order of their codes. */
  warnings(source: string): Warning[] {
    return [...this.#currencies]
      .filter(([leg, { stretches }]) => stretches.length > 0 || !hasAnyRate(leg))
      .sort(([{ iso: a }], [{ iso: b }]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([leg, lacking]) =>
        ratesMissing(source, leg, lacking, joinedStretches(lacking.stretches)),
      );
  }
}

/** The prices of a request and the warnings about missing rates. */
interface CheckedPrices {
  readonly planned: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
}

/** Refuses the conversion of prices without rates. */
async function refusedOf(
  planned: readonly PlannedPrice[],
  unconvertible: ReadonlySet<number>,
): Promise<readonly PlannedPrice[]> {
  if (unconvertible.size === 0) return planned;
  const outcome: Outcome = refused('no-rate');
  return mapped(planned, (each) =>
    unconvertible.has(each.price.id) ? { ...each, outcome } : each,
  );
}

/** The currencies that some requested point of a pair lacks. */
const lackedBy = ({ segments }: PairPrices, found: RequestedPoints | undefined) =>
  [...(found?.segments.keys() ?? [])].flatMap((index) => segments[index]?.lacking ?? []);

/**
 * Counts the requested points of the pairs that lack a rate, and of all other pairs that need the
 * same currencies. It takes three reads: the days of each price, the points of the pairs that lack
 * a rate, and those of the others; many stretches are read in several. It reads nothing if the
 * rates cover the requested days.
 */
async function missingPoints(
  reader: Pick<MarketReader, 'extents'>,
  pairs: readonly PairPrices[],
  plan: Plan,
): Promise<ReadonlyMap<PairPrices, RequestedPoints>> {
  if (!pairs.some(({ mayLack }) => mayLack)) return new Map();
  const days = await pointDays(reader, pairs, plan);
  const isUncovered = ({ mayLack, priceIds, segments }: PairPrices): boolean =>
    mayLack && !priceIds.every((id) => isCovered(days.get(id), segments));
  const found = await countedPoints(reader, pairs.filter(isUncovered), plan, days);
  const lacked = new Set(pairs.flatMap((pair) => lackedBy(pair, found.get(pair))));
  const others = pairs.filter(
    (pair) =>
      !found.has(pair) &&
      [pair.legs.from, pair.legs.to].some((leg) => leg !== null && lacked.has(leg)),
  );
  return new Map([...found, ...(await countedPoints(reader, others, plan, days))]);
}

/** The days of the points of each price that may be requested, by its id. */
async function pointDays(
  reader: Pick<MarketReader, 'extents'>,
  pairs: readonly PairPrices[],
  { days, options }: Plan,
): Promise<ReadonlyMap<number, Days>> {
  // A summary needs points before the requested days.
  const first = options.includeSummary ? -Infinity : days.first;
  const ids = pairs.flatMap(({ priceIds }) => priceIds);
  const found = await reader.extents(
    await mapped(ids, (priceId) => ({ priceId, first, last: days.last, isCounted: false })),
  );
  return new Map(
    ids.flatMap((id, index) => {
      const extent = found[index] ?? null;
      return extent === null ? [] : [[id, extent] as const];
    }),
  );
}

/** True if one segment with rates contains all days of a price. */
const isCovered = (days: Days | undefined, segments: readonly Segment[]): boolean =>
  days === undefined ||
  segments.some(
    ({ first, last, lacking }) => lacking.length === 0 && first <= days.first && last >= days.last,
  );

/** The stretches of days that the requested points of a price are found in. */
interface SoughtStretches {
  readonly id: number;
  readonly pair: PairPrices;
  /** The days of the series, cut at the ends of segments: the index of each, and its stretch. */
  readonly series: readonly (readonly [segment: number, stretch: PriceStretch])[];
  /** The day of the latest point. */
  readonly latest: number;
  /** The last point of each is one that a summary needs. */
  readonly summary: readonly PriceStretch[];
}

/** @param found the days of the points of a price */
function soughtOf(pair: PairPrices, id: number, plan: Plan, found: Days): SoughtStretches {
  const { includeSeries, includeSummary } = plan.options;
  const from = Math.max(plan.days.first, found.first);
  const series = pair.segments.flatMap((segment, index) => {
    const [first, last] = [Math.max(segment.first, from), Math.min(segment.last, found.last)];
    if (!includeSeries || first > last) return [];
    return [[index, { priceId: id, first, last, isCounted: true }] as const];
  });
  const upTo = (last: number) => ({ priceId: id, first: -Infinity, last, isCounted: false });
  const summary = includeSummary ? summaryDays(found.last).map(upTo) : [];
  return { id, pair, series, latest: found.last, summary };
}

/**
 * Counts the requested points of pairs by segment: those of the series, and those that the figures
 * of a summary need. A point that both need counts once.
 * @param days the days of the points of each price
 */
async function countedPoints(
  reader: Pick<MarketReader, 'extents'>,
  pairs: readonly PairPrices[],
  plan: Plan,
  days: ReadonlyMap<number, Days>,
): Promise<ReadonlyMap<PairPrices, RequestedPoints>> {
  const counted = new Map(pairs.map((pair) => [pair, new PairPoints(pair)]));
  let chunk: SoughtStretches[] = [];
  let stretches = 0;
  const slice = new Slice();
  for (const pair of pairs) {
    for (const id of pair.priceIds) {
      if (slice.isOver) await slice.yieldIfOver();
      const found = days.get(id);
      if (found === undefined) continue;
      const sought = soughtOf(pair, id, plan, found);
      chunk.push(sought);
      stretches += sought.series.length + sought.summary.length;
      if (stretches < STRETCHES_PER_READ) continue;
      await addCounted(reader, chunk, plan, counted);
      [chunk, stretches] = [[], 0];
      slice.restart();
    }
  }
  if (stretches > 0) await addCounted(reader, chunk, plan, counted);
  return counted;
}

/** Counts the points of some prices, and adds them to those of their pairs. */
async function addCounted(
  reader: Pick<MarketReader, 'extents'>,
  sought: readonly SoughtStretches[],
  plan: Plan,
  counted: ReadonlyMap<PairPrices, PairPoints>,
): Promise<void> {
  const extents = await reader.extents(
    sought.flatMap(({ series, summary }) => [...series.map(([, stretch]) => stretch), ...summary]),
  );
  let at = 0;
  await visited(sought, ({ id, pair, series, latest, summary }) => {
    const ofSeries = series.map(([segment], index) => [segment, extents[at + index]] as const);
    at += series.length;
    const ofSummary = extents.slice(at, at + summary.length);
    at += summary.length;
    counted.get(pair)?.add(id, ofSeries, singleDays(plan, latest, ofSummary));
  });
}

/** The days that a summary needs, each once, without those of the requested series. */
function singleDays(
  { days, options }: Plan,
  latest: number,
  found: readonly (Extent | null)[],
): number[] {
  if (!options.includeSummary) return [];
  const needed = new Set([latest, ...found.flatMap((each) => each?.last ?? [])]);
  return [...needed].filter((day) => !options.includeSeries || day < days.first);
}

/** Collects the requested points of a pair. */
class PairPoints implements RequestedPoints {
  readonly segments = new Map<number, Extent>();
  readonly unconvertible: number[] = [];
  readonly #ofPair: readonly Segment[];

  constructor({ segments }: PairPrices) {
    this.#ofPair = segments;
  }

  /**
   * Adds the points of a price.
   * @param series its points by segment
   * @param single the days of further points
   */
  add(
    id: number,
    series: readonly (readonly [segment: number, on: Extent | null | undefined])[],
    single: readonly number[],
  ): void {
    const singles = single.map((day) => {
      const index = this.#ofPair.findIndex(({ first, last }) => first <= day && day <= last);
      return [index, { first: day, last: day, points: 1 }] as const;
    });
    const found = [...series, ...singles].flatMap(([index, on]) =>
      on ? [[index, on] as const] : [],
    );
    for (const [index, on] of found) {
      const known = this.segments.get(index);
      this.segments.set(index, known === undefined ? on : joinedPoints(known, on));
    }
    const isLacking = ([index]: readonly [number, Extent]): boolean =>
      (this.#ofPair[index]?.lacking.length ?? 0) > 0;
    if (found.length > 0 && found.every(isLacking)) this.unconvertible.push(id);
  }
}

/**
 * Warns of each currency without rates for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate.
 */
export async function withMissingRates(
  reader: Pick<MarketReader, 'extents'>,
  plan: Plan,
  planned: readonly PlannedPrice[],
  inUse: RatesInUse,
): Promise<CheckedPrices> {
  const lacking = new Lacking();
  const legsOf = legsReader(plan, inUse);
  const rated: RatedPrice[] = [];
  await visited(planned, (each) => {
    const legs = legsOf(each);
    if (legs === null) return;
    rated.push({ price: each.price, legs });
    lacking.addUnrated(legs);
  });
  const pairs = await pairsOf(plan, rated);
  const found = await missingPoints(reader, pairs, plan);
  for (const [pair, points] of found) lacking.add(pair, points);
  const unconvertible = new Set([...found.values()].flatMap((each) => each.unconvertible));
  const warnings = lacking.warnings(inUse.source ?? '');
  return { planned: await refusedOf(planned, unconvertible), warnings };
}
