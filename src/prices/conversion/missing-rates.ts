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
import { dayOf, dayText } from '../../std/days.ts';
import type { Plan } from '../plan/plan.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import type { Warning } from '../select/warnings.ts';
import type { PlannedPrice, Targets } from './outcomes.ts';

/** Prices of one pair of currencies whose requested points may have no rate. */
interface PricesToCheck {
  readonly priceIds: readonly number[];
  readonly segments: readonly Segment[];
}

/** The requested points of some prices without a rate. */
export interface MissingPoints {
  /** By index of a segment: first and last day of its points, in days since 2000-01-01. */
  readonly days: ReadonlyMap<number, { readonly first: number; readonly last: number }>;
  /** Prices with requested points, none of which has a rate. */
  readonly unconvertible: readonly number[];
}

/**
 * Finds requested points without a rate: those of the series, and those that the figures of a
 * summary need.
 */
export type MissingReader = (
  toCheck: PricesToCheck,
  plan: Pick<Plan, 'range' | 'options'>,
  revision: string,
) => Promise<MissingPoints>;

/** The days that requested points of a price may have, without a query. */
function requestedDays({ range, options }: Plan, price: SelectedPrice) {
  const to = range.to === null ? Number.POSITIVE_INFINITY : dayOf(range.to);
  // A summary needs points before the range.
  const isUnbounded = range.from === null || options.includeSummary;
  const first = isUnbounded || range.from === null ? Number.NEGATIVE_INFINITY : dayOf(range.from);
  const newest = price.last_date === null ? Number.NEGATIVE_INFINITY : dayOf(price.last_date);
  return { first, last: Math.min(to, newest) };
}

const legsKey = ({ from, to }: Legs): string => `${from?.iso}>${to?.iso}`;

/** The rates that a request converts with. */
interface RatesInUse {
  /** Slug of the source; null if no currency is converted. */
  readonly source: string | null;
  /** Null if the source does not exist. */
  readonly rates: RateTable | null;
  readonly references: References;
  readonly targets: Targets;
}

type Unrated = Map<number, CurrencyRates>;

/** Legs of the currencies without any rate, by id: segments are cached by leg. */
const unratedIn = new WeakMap<RateTable, Unrated>();

function unratedOf(rates: RateTable | null): Unrated {
  const known = (rates && unratedIn.get(rates)) ?? new Map<number, CurrencyRates>();
  if (rates !== null) unratedIn.set(rates, known);
  return known;
}

/** Finds the legs of a price, also if the source has no rate of one of them. */
function legsReader({ rates, references, targets }: RatesInUse) {
  const unrated = unratedOf(rates);
  const legOf = (id: number): CurrencyRates | null => {
    if (id === rates?.base.id) return null;
    const found = rates?.currencies.get(id) ?? unrated.get(id);
    const leg = found ?? withoutRates(references.currencies.get(id)?.shown.iso ?? '');
    if (found === undefined) unrated.set(id, leg);
    return leg;
  };
  return ({ price, outcome }: PlannedPrice): Legs | null => {
    if (outcome?.conversion?.pair) return outcome.conversion.pair;
    if (outcome?.reason !== 'no-rate' || price.currency_id === null) return null;
    return targets.currency && { from: legOf(price.currency_id), to: legOf(targets.currency.id) };
  };
}

/** The prices whose requested points may have no rate, by legs. */
function pricesToCheck(
  plan: Plan,
  planned: readonly PlannedPrice[],
  legsOf: ReturnType<typeof legsReader>,
): PricesToCheck[] {
  const { includeSeries, includeSummary } = plan.options;
  if (!includeSeries && !includeSummary) return [];
  const found = new Map<string, { priceIds: number[]; segments: readonly Segment[] }>();
  for (const each of planned) {
    const { price } = each;
    const legs = legsOf(each);
    if (legs === null) continue;
    const segments = segmentsOf(legs);
    const { first, last } = requestedDays(plan, price);
    const mayLack = segments.some(
      (segment) => segment.lacking.length > 0 && segment.first <= last && segment.last >= first,
    );
    if (!mayLack) continue;
    const key = legsKey(legs);
    const known = found.get(key) ?? { priceIds: [], segments };
    known.priceIds.push(price.id);
    found.set(key, known);
  }
  return [...found.values()];
}

/** The currencies that lack a rate, with the days of the requested points that need it. */
class Lacking {
  /** Null if no requested point needs a rate. */
  readonly #days = new Map<CurrencyRates, { first: number; last: number } | null>();

  /** Adds the currencies of a price without any rate, whichever points are requested. */
  addUnrated({ from, to }: Legs): void {
    for (const leg of [from, to]) {
      if (leg !== null && !hasAnyRate(leg) && !this.#days.has(leg)) this.#days.set(leg, null);
    }
  }

  add({ lacking }: Segment, { first, last }: { first: number; last: number }): void {
    for (const rates of lacking) {
      const known = this.#days.get(rates) ?? { first, last };
      this.#days.set(rates, {
        first: Math.min(known.first, first),
        last: Math.max(known.last, last),
      });
    }
  }

  /** One warning for each currency, in the order of their codes. */
  warnings(source: string): Warning[] {
    const all = [...this.#days].sort(([{ iso: a }], [{ iso: b }]) => (a < b ? -1 : 1));
    return all.map(([rates, days]) => {
      const { iso } = rates;
      const [from, to] = days === null ? [null, null] : [dayText(days.first), dayText(days.last)];
      const points = from === to ? `the points of ${from}` : `points from ${from} to ${to}`;
      const newest = hasAnyRate(rates) ? dayText(rates.lastDay) : null;
      const needed = days === null ? '' : `; ${points} need one`;
      const detail =
        newest === null
          ? `${source} has no rate of ${iso} at all${needed}`
          : `${source} has no rate of ${iso} for ${points}, and its newest one is of ${newest}; ` +
            'a rate applies to its own day and the 7 days after it';
      return {
        ...{ code: 'rates_missing', pointer: '/options/currency', detail, suggestions: [] },
        ...{ currency: iso, firstDateWithoutRate: from, lastDateWithoutRate: to },
        lastDateWithRate: newest,
      };
    });
  }
}

/** The prices of a request and the warnings about missing rates. */
interface CheckedPrices {
  readonly planned: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
}

/** Refuses the conversion of prices without rates. */
const refusedOf = (
  planned: readonly PlannedPrice[],
  unconvertible: ReadonlySet<number>,
): readonly PlannedPrice[] => {
  if (unconvertible.size === 0) return planned;
  const outcome: Outcome = refused('no-rate');
  return planned.map((each) => (unconvertible.has(each.price.id) ? { ...each, outcome } : each));
};

/**
 * Warns of each currency without rates for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate. Reads nothing if the rates
 * cover the requested days.
 */
export async function withMissingRates(
  read: MissingReader,
  plan: Plan,
  planned: readonly PlannedPrice[],
  revision: string,
  inUse: RatesInUse,
): Promise<CheckedPrices> {
  const lacking = new Lacking();
  const unconvertible = new Set<number>();
  const legsOf = legsReader(inUse);
  for (const each of planned) {
    const legs = legsOf(each);
    if (legs !== null) lacking.addUnrated(legs);
  }
  for (const toCheck of pricesToCheck(plan, planned, legsOf)) {
    const missing = await read(toCheck, plan, revision);
    for (const [index, days] of missing.days) lacking.add(toCheck.segments[index] as Segment, days);
    for (const id of missing.unconvertible) unconvertible.add(id);
  }
  const warnings = lacking.warnings(inUse.source ?? '');
  return { planned: refusedOf(planned, unconvertible), warnings };
}

type PlanRange = Pick<Plan, 'range'>;

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
  const most = sql.raw(which === 'first' ? 'least' : 'greatest');
  const at = numberIn(revision);
  return sql`${most}(
    (select s.date from series as s where s.price_id = price.id and s.date between ${from} and ${to}
      and s.revision <= ${at} order by s.date ${order} limit 1),
    (select h.date from series_history as h where h.price_id = price.id
      and h.date between ${from} and ${to} and h.revision <= ${at} and h.revision_to > ${at}
      order by h.date ${order} limit 1))`;
}

/** The points of series within segments, of prices `price`: id, n, first and last. */
function seriesHits(segments: RawBuilder<unknown>, { range }: PlanRange, revision: string) {
  const from = sql`greatest(segment.first, coalesce(${range.from}::date, '-infinity'))`;
  const to = sql`least(segment.last, coalesce(${range.to}::date, 'infinity'))`;
  return sql`select price.id, segment.n, days.first, days.last
    from price cross join ${segments} as segment
      cross join lateral (select ${endOf('first', from, to, revision)} as first,
        ${endOf('last', from, to, revision)} as last) as days
    where days.first is not null`;
}

const FIRST_OF_ALL = sql`date '-infinity'`;

const monthsBack = (span: string) => sql`(latest.day - ${sql.lit(span)}::interval)::date`;

/** The points that the figures of a summary need, within segments; columns as in `seriesHits`. */
function summaryHits(segments: RawBuilder<unknown>, { range }: PlanRange, revision: string) {
  const to = sql`coalesce(${range.to}::date, 'infinity')`;
  return sql`select price.id, segment.n, needed.day, needed.day
    from price
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, to, revision)} as day) as latest
      cross join lateral (values (latest.day), (latest.day - 1), (latest.day - 7),
        (latest.day - 14), (${monthsBack('1 month')}), (${monthsBack('3 months')}),
        (${monthsBack('6 months')}), (${monthsBack('12 months')}),
        (make_date(extract(year from latest.day)::int - 1, 12, 31))) as base (day)
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, sql`base.day`, revision)} as day)
        as needed
      join ${segments} as segment on needed.day between segment.first and segment.last`;
}

/** The requested points of prices `price`, within the segments with or without rates. */
function hitsIn(lacks: boolean, plan: Parameters<MissingReader>[1], revision: string) {
  const segments = sql`(select n, first, last from all_segments where lacks = ${sql.lit(lacks)})`;
  const { includeSeries, includeSummary } = plan.options;
  const parts = [
    ...(includeSeries ? [seriesHits(segments, plan, revision)] : []),
    ...(includeSummary ? [summaryHits(segments, plan, revision)] : []),
  ];
  return sql.join(parts, sql` union all `);
}

/** The prices with points that may be requested outside of every segment with rates. */
function uncoveredPrices(
  priceIds: readonly number[],
  { range, options }: Parameters<MissingReader>[1],
  revision: string,
) {
  // A summary needs points before the range.
  const first = options.includeSummary ? null : range.from;
  const from = sql`coalesce(${first}::date, '-infinity')`;
  const to = sql`coalesce(${range.to}::date, 'infinity')`;
  return sql`select price.id from unnest(${[...priceIds]}::integer[]) as price (id)
    cross join lateral (select ${endOf('first', from, to, revision)} as first,
      ${endOf('last', from, to, revision)} as last) as days
    where not exists (select from all_segments as s
      where not s.lacks and s.first <= days.first and s.last >= days.last)`;
}

interface MissingRow {
  readonly n: number | null;
  readonly first: number;
  readonly last: number;
  readonly ids: readonly number[];
}

/** The statement that finds requested points without a rate. */
const missingStatement = (
  { priceIds, segments }: PricesToCheck,
  plan: Parameters<MissingReader>[1],
  revision: string,
) => sql<MissingRow>`
  with all_segments as (select * from unnest(
      ${segments.map(({ first }) => dateText(first))}::date[],
      ${segments.map(({ last }) => dateText(last))}::date[],
      ${segments.map(({ lacking }) => lacking.length > 0)}::boolean[])
      with ordinality as s (first, last, lacks, n)),
    missing (id, n, first, last) as materialized (
      with price as (${uncoveredPrices(priceIds, plan, revision)})
      ${hitsIn(true, plan, revision)}),
    converted (id, n, first, last) as (
      with price as (select distinct id from missing)
      ${hitsIn(false, plan, revision)})
  select (n - 1)::int as n, min(first) - date '2000-01-01' as first,
      max(last) - date '2000-01-01' as last, null::integer[] as ids
    from missing where ${requireCommit(revision)} group by n
  union all
  select null, null, null, array_agg(distinct id) from missing
    where id not in (select id from converted)`;

/** Finds requested points without a rate in the database, by one short statement. */
export const sqlMissing =
  (db: () => Kysely<Database>): MissingReader =>
  async (toCheck, plan, revision) => {
    const { rows } = await missingStatement(toCheck, plan, revision).execute(db());
    const days: MissingPoints['days'] = new Map(
      rows.flatMap(({ n, first, last }) => (n === null ? [] : [[n, { first, last }]])),
    );
    return { days, unconvertible: rows.find(({ n }) => n === null)?.ids ?? [] };
  };
