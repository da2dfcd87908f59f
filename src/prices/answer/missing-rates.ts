import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type Outcome, refused } from '../../conversion/outcome.ts';
import {
  type CurrencyRates,
  hasAnyRate,
  type Legs,
  type RateTable,
  type Segment,
  segmentsOf,
  withoutRates,
} from '../../conversion/rate-table.ts';
import { numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { boundText, type Days, dayOf, dayText } from '../../std/days.ts';
import { mapped, visited } from '../../std/turns.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { References } from '../market/references.ts';
import type { Plan } from '../plan/plan.ts';
import type { PlannedPrice, RatesOfPrice, Targets } from './conversions.ts';
import { ratesMissing, type SegmentPoints, type Stretch, type Warning } from './warnings.ts';

/** The prices of a request in one pair of currencies, whose points a reader counts. */
interface PricesToCount {
  readonly priceIds: readonly number[];
  readonly segments: readonly Segment[];
}

/** The days and options that decide which points are requested. */
export type RequestedDays = Pick<Plan, 'days' | 'options'>;

/** The requested points of some prices. */
interface RequestedPoints {
  /** By index of a segment. */
  readonly segments: ReadonlyMap<number, SegmentPoints>;
  /** Prices with requested points, none of which has a rate. */
  readonly unconvertible: readonly number[];
}

/**
 * Counts requested points by segment: those of the series, and those that the figures of a summary
 * need. A point that both need counts once.
 * @param always false returns nothing at once if the rates cover every price
 */
export type MissingReader = (
  toCount: PricesToCount,
  plan: RequestedDays,
  revision: string,
  always: boolean,
) => Promise<RequestedPoints>;

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
const legsKey = ({ from, to }: Legs): string =>
  [from, to].map((leg) => `${leg?.iso} ${leg?.lastDay}`).join('>');

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
interface NeededLegs extends Legs {
  readonly kind: RateTable['kind'];
}

/** A price that needs rates. */
interface RatedPrice {
  readonly price: SelectedPrice;
  readonly legs: NeededLegs;
}

/** Finds the legs of a price, also if the source has no rate of one of them. */
function legsReader({ ratesOf, references, targets }: RatesInUse) {
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
    return { from, to, kind };
  };
}

/** The prices of a request in one pair of currencies. */
interface PairPrices extends PricesToCount {
  readonly legs: NeededLegs;
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
export const joinedPoints = (one: SegmentPoints, other: SegmentPoints): SegmentPoints => ({
  first: Math.min(one.first, other.first),
  last: Math.max(one.last, other.last),
  points: one.points + other.points,
});

/** The stretches of one pair that lack a currency and have requested points. */
function stretchesOf(
  { segments }: PricesToCount,
  { segments: found }: RequestedPoints,
  leg: CurrencyRates,
): Stretch[] {
  const stretches: Stretch[] = [];
  let [first, on]: [number | null, SegmentPoints | null] = [null, null];
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
  /** Requested points of the prices that need the currency. */
  points: number;
  readonly stretches: Stretch[];
}

/** The currencies that lack a rate, with the requested points that need it. */
class Lacking {
  readonly #currencies = new Map<CurrencyRates, LackingCurrency>();

  #of(leg: CurrencyRates, { kind }: NeededLegs): LackingCurrency {
    const known = this.#currencies.get(leg) ?? { kind, points: 0, stretches: [] };
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
 * same currencies. Reads nothing if the rates cover the requested days.
 */
async function countedPoints(
  pairs: readonly PairPrices[],
  read: (pair: PairPrices, always: boolean) => Promise<RequestedPoints>,
): Promise<ReadonlyMap<PairPrices, RequestedPoints>> {
  const found = new Map<PairPrices, RequestedPoints>();
  for (const pair of pairs) if (pair.mayLack) found.set(pair, await read(pair, false));
  const lacked = new Set(pairs.flatMap((pair) => lackedBy(pair, found.get(pair))));
  for (const pair of pairs) {
    const { from, to } = pair.legs;
    const isNeeded = [from, to].some((leg) => leg !== null && lacked.has(leg));
    const isCounted = (found.get(pair)?.segments.size ?? 0) > 0;
    if (isNeeded && !isCounted) found.set(pair, await read(pair, true));
  }
  return found;
}

/**
 * Warns of each currency without rates for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate.
 */
export async function withMissingRates(
  read: MissingReader,
  plan: Plan,
  planned: readonly PlannedPrice[],
  revision: string,
  inUse: RatesInUse,
): Promise<CheckedPrices> {
  const lacking = new Lacking();
  const legsOf = legsReader(inUse);
  const rated: RatedPrice[] = [];
  await visited(planned, (each) => {
    const legs = legsOf(each);
    if (legs === null) return;
    rated.push({ price: each.price, legs });
    lacking.addUnrated(legs);
  });
  const pairs = await pairsOf(plan, rated);
  const found = await countedPoints(pairs, (pair, always) => read(pair, plan, revision, always));
  for (const [pair, points] of found) lacking.add(pair, points);
  const unconvertible = new Set([...found.values()].flatMap((each) => each.unconvertible));
  const warnings = lacking.warnings(inUse.source ?? '');
  return { planned: await refusedOf(planned, unconvertible), warnings };
}

/** A day as a PostgreSQL date. */
const dateText = (day: number): string =>
  Number.isFinite(day) ? dayText(day) : day < 0 ? '-infinity' : 'infinity';

/**
 * The first or last day of the points of a price between two days. It reads the ends of two
 * indexes; series_at would read every point.
 */
function endOf(
  which: 'first' | 'last',
  from: RawBuilder<unknown>,
  to: RawBuilder<unknown>,
  revision: string,
): RawBuilder<string | null> {
  const order = sql.raw(which === 'first' ? 'asc' : 'desc');
  const pick = sql.raw(which === 'first' ? 'least' : 'greatest');
  const at = numberIn(revision);
  return sql`${pick}(
    (select s.date from series as s where s.price_id = price.id and s.date between ${from} and ${to}
      and s.revision <= ${at} order by s.date ${order} limit 1),
    (select h.date from series_history as h where h.price_id = price.id
      and h.date between ${from} and ${to} and h.revision <= ${at} and h.revision_to > ${at}
      order by h.date ${order} limit 1))`;
}

/** The days of the series of prices `price`: id and day. It reads two indexes only. */
function seriesDays({ first, last }: Days, revision: string) {
  const from = sql`coalesce(${boundText(first)}::date, '-infinity')`;
  const to = sql`coalesce(${boundText(last)}::date, 'infinity')`;
  const at = numberIn(revision);
  return sql`
    select price.id, s.date from price join series as s on s.price_id = price.id
      where s.date between ${from} and ${to} and s.revision <= ${at}
    union all
    select price.id, h.date from price join series_history as h on h.price_id = price.id
      where h.date between ${from} and ${to} and h.revision <= ${at} and h.revision_to > ${at}`;
}

const FIRST_OF_ALL = sql`date '-infinity'`;

const monthsBack = (span: string) => sql`(latest.day - ${sql.lit(span)}::interval)::date`;

/** The days that the figures of a summary need, before some day: id and day. */
function summaryDays(before: string | null, last: number, revision: string) {
  const to = sql`coalesce(${boundText(last)}::date, 'infinity')`;
  return sql`select distinct price.id, needed.day
    from price
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, to, revision)} as day) as latest
      cross join lateral (values (latest.day), (latest.day - 1), (latest.day - 7),
        (latest.day - 14), (${monthsBack('1 month')}), (${monthsBack('3 months')}),
        (${monthsBack('6 months')}), (${monthsBack('12 months')}),
        (make_date(extract(year from latest.day)::int - 1, 12, 31))) as base (day)
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, sql`base.day`, revision)} as day)
        as needed
    where needed.day < coalesce(${before}::date, 'infinity')`;
}

/** The requested points of prices `price`, each once: id and day. */
function requestedPoints({ days, options }: RequestedDays, revision: string) {
  const { includeSeries, includeSummary } = options;
  const from = boundText(days.first);
  // The series contains what a summary needs, except what is before it.
  const isBefore = includeSummary && !(includeSeries && from === null);
  const parts = [
    ...(includeSeries ? [seriesDays(days, revision)] : []),
    ...(isBefore ? [summaryDays(includeSeries ? from : null, days.last, revision)] : []),
  ];
  return sql.join(parts, sql` union all `);
}

/** The prices with points that may be requested outside of every segment with rates. */
function uncoveredPrices(
  priceIds: readonly number[],
  { days, options }: RequestedDays,
  revision: string,
) {
  // A summary needs points before the requested days.
  const first = options.includeSummary ? null : boundText(days.first);
  const from = sql`coalesce(${first}::date, '-infinity')`;
  const to = sql`coalesce(${boundText(days.last)}::date, 'infinity')`;
  return sql`select price.id from unnest(${[...priceIds]}::integer[]) as price (id)
    cross join lateral (select ${endOf('first', from, to, revision)} as first,
      ${endOf('last', from, to, revision)} as last) as days
    where not exists (select from all_segments as s
      where not s.lacks and s.first <= days.first and s.last >= days.last)`;
}

interface CountRow {
  /** Index of a segment from 1 on; null in the row of the prices. */
  readonly n: number | null;
  readonly first: number;
  readonly last: number;
  readonly points: number;
  readonly ids: readonly number[];
}

/** The statement that counts requested points by segment. */
const countStatement = (
  { priceIds, segments }: PricesToCount,
  plan: RequestedDays,
  revision: string,
  always: boolean,
) => sql<CountRow>`
  with bounds as (select
      ${segments.map(({ first }) => dateText(first))}::date[] as first,
      ${segments.map(({ last }) => dateText(last))}::date[] as last,
      ${segments.map(({ lacking }) => lacking.length > 0)}::boolean[] as lacks),
    all_segments as (select s.* from bounds,
      unnest(bounds.first, bounds.last, bounds.lacks) as s (first, last, lacks)),
    price (id) as materialized (select * from unnest(${[...priceIds]}::integer[])
      where ${sql.lit(always)} or exists (${uncoveredPrices(priceIds, plan, revision)})),
    requested (id, day) as (${requestedPoints(plan, revision)}),
    found as materialized (
      select id, width_bucket(day, (select first from bounds)) as n, min(day) as first,
        max(day) as last, count(*) as points
      from requested group by 1, 2)
  select n, min(first) - date '2000-01-01' as first, max(last) - date '2000-01-01' as last,
      sum(points)::float8 as points, null::integer[] as ids
    from found where ${requireCommit(revision)} group by n
  union all
  select null, null, null, null, array_agg(id) from (
    select id from found group by id having bool_and((select lacks from bounds)[n])) as lacking`;

/** Counts requested points in the database, by one statement. */
export const sqlMissing =
  (db: () => Kysely<Database>): MissingReader =>
  async (toCount, plan, revision, always) => {
    const { rows } = await countStatement(toCount, plan, revision, always).execute(db());
    const segments: RequestedPoints['segments'] = new Map(
      rows.flatMap(({ n, first, last, points }) =>
        n === null ? [] : [[n - 1, { first, last, points }]],
      ),
    );
    return { segments, unconvertible: rows.find(({ n }) => n === null)?.ids ?? [] };
  };
