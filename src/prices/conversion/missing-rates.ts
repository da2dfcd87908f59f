import { dayOf, dayText } from '../../conversion/calendar.ts';
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
import type { Plan } from '../plan/plan.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import type { Warning } from '../select/warnings.ts';
import type { PlannedPrice } from './outcomes.ts';
import type { Targets } from './targets.ts';

/** Prices of one pair of currencies of which requested points may have no rate. */
export interface Suspects {
  readonly priceIds: readonly number[];
  readonly segments: readonly Segment[];
}

/** The requested points of some prices, as far as they have no rate. */
export interface Missing {
  /** By index of a segment: the first and last day of the points in it, counted from 2000-01-01. */
  readonly days: ReadonlyMap<number, { readonly first: number; readonly last: number }>;
  /** Prices that have requested points, of which none has a rate. */
  readonly unconvertible: readonly number[];
}

/**
 * Looks for requested points without a rate. The points of a series are requested, and those that
 * the figures of a summary need.
 */
export type MissingReader = (
  suspects: Suspects,
  plan: Pick<Plan, 'range' | 'options'>,
  revision: string,
) => Promise<Missing>;

/** The days that requested points of a price can have, as far as that is known without a look. */
function requestedDays({ range, options }: Plan, price: SelectedPrice) {
  const to = range.to === null ? Number.POSITIVE_INFINITY : dayOf(range.to);
  // A summary looks back over the beginning of the range.
  const isOpen = range.from === null || options.includeSummary;
  const first = isOpen || range.from === null ? Number.NEGATIVE_INFINITY : dayOf(range.from);
  const newest = price.last_date === null ? Number.NEGATIVE_INFINITY : dayOf(price.last_date);
  return { first, last: Math.min(to, newest) };
}

const legsKey = ({ from, to }: Legs): string => `${from?.iso}>${to?.iso}`;

/** The rates that a request converts with. */
interface RatesInUse {
  /** Slug of the source; null where no currency is converted. */
  readonly source: string | null;
  /** Null where the source does not exist. */
  readonly rates: RateTable | null;
  readonly references: References;
  readonly targets: Targets;
}

type Unrated = Map<number, CurrencyRates>;

/** The currencies of which a table has no rate, by their numbers: segments are cached by leg. */
const unratedIn = new WeakMap<RateTable, Unrated>();

function unratedOf(rates: RateTable | null): Unrated {
  const known = (rates && unratedIn.get(rates)) ?? new Map<number, CurrencyRates>();
  if (rates !== null) unratedIn.set(rates, known);
  return known;
}

/** Finds the legs of a price, also where the source has no rate of one of them. */
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

/** The prices of which requested points may have no rate, by their legs. */
function suspectsOf(
  plan: Plan,
  planned: readonly PlannedPrice[],
  legsOf: ReturnType<typeof legsReader>,
): Suspects[] {
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
  /** Null where no requested point needs a rate. */
  readonly #days = new Map<CurrencyRates, { first: number; last: number } | null>();

  /** Adds the currencies of a price that have no rate at all, whatever points are requested. */
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
            'a rate serves for its own day and 7 days more';
      return {
        ...{ code: 'rates_missing', pointer: '/options/currency', detail, suggestions: [] },
        ...{ currency: iso, firstDateWithoutRate: from, lastDateWithoutRate: to },
        lastDateWithRate: newest,
      };
    });
  }
}

/** What becomes of the prices of a request where rates are missing. */
interface Rated {
  readonly planned: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
}

/** Refuses the conversion of some prices for want of rates. */
const refusedOf = (
  planned: readonly PlannedPrice[],
  unconvertible: ReadonlySet<number>,
): readonly PlannedPrice[] => {
  if (unconvertible.size === 0) return planned;
  const outcome: Outcome = refused('no-rate');
  return planned.map((each) => (unconvertible.has(each.price.id) ? { ...each, outcome } : each));
};

/**
 * Warns of each currency that lacks rates for requested points, or of which there is no rate at
 * all, and refuses the conversion of a price of which no requested point can be converted. Nothing
 * is read where the rates cover the requested days.
 */
export async function withMissingRates(
  read: MissingReader,
  plan: Plan,
  planned: readonly PlannedPrice[],
  revision: string,
  inUse: RatesInUse,
): Promise<Rated> {
  const lacking = new Lacking();
  const unconvertible = new Set<number>();
  const legsOf = legsReader(inUse);
  for (const each of planned) {
    const legs = legsOf(each);
    if (legs !== null) lacking.addUnrated(legs);
  }
  for (const suspects of suspectsOf(plan, planned, legsOf)) {
    const missing = await read(suspects, plan, revision);
    for (const [index, days] of missing.days)
      lacking.add(suspects.segments[index] as Segment, days);
    for (const id of missing.unconvertible) unconvertible.add(id);
  }
  const warnings = lacking.warnings(inUse.source ?? '');
  return { planned: refusedOf(planned, unconvertible), warnings };
}
