import { dayNumber, dayText } from '../conversion/calendar.ts';
import { type Outcome, refused } from '../conversion/convert.ts';
import type { CurrencyRates, RatePair } from '../conversion/rate-table.ts';
import { type Segment, segmentsOf } from '../conversion/segments.ts';
import type { Planned } from './outcomes.ts';
import type { Plan } from './plan.ts';
import type { PriceTerms, SelectedPrice } from './query.ts';
import type { Warning } from './warnings.ts';

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

const dayOf = (text: string): number =>
  dayNumber(Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8, 10)));

/** The days that requested points of a price can have, as far as that is known without a look. */
function requestedDays({ range, options }: Plan, price: PriceTerms | SelectedPrice) {
  const to = range.to === null ? Number.POSITIVE_INFINITY : dayOf(range.to);
  // A summary looks back over the beginning of the range.
  const isOpen = range.from === null || options.includeSummary;
  const first = isOpen || range.from === null ? Number.NEGATIVE_INFINITY : dayOf(range.from);
  if (!('last_date' in price)) return { first, last: to };
  const newest = price.last_date === null ? Number.NEGATIVE_INFINITY : dayOf(price.last_date);
  return { first, last: Math.min(to, newest) };
}

const pairKey = ({ from, to }: RatePair): string => `${from?.iso}>${to?.iso}`;

/** The prices of which requested points may have no rate, by their pairs of currencies. */
function suspectsOf(plan: Plan, planned: readonly Planned<PriceTerms>[]): Suspects[] {
  const { includeSeries, includeSummary } = plan.options;
  if (!includeSeries && !includeSummary) return [];
  const found = new Map<string, { priceIds: number[]; segments: readonly Segment[] }>();
  for (const { price, outcome } of planned) {
    const pair = outcome?.conversion?.pair;
    if (!pair) continue;
    const segments = segmentsOf(pair);
    const { first, last } = requestedDays(plan, price);
    const mayLack = segments.some(
      (each) => each.lacking.length > 0 && each.first <= last && each.last >= first,
    );
    if (!mayLack) continue;
    const key = pairKey(pair);
    const known = found.get(key) ?? { priceIds: [], segments };
    known.priceIds.push(price.id);
    found.set(key, known);
  }
  return [...found.values()];
}

/** The days of points without a rate, by the currency that lacks it. */
class Lacking {
  readonly #days = new Map<CurrencyRates, { first: number; last: number }>();

  add({ lacking }: Segment, { first, last }: { first: number; last: number }): void {
    for (const rates of lacking) {
      const known = this.#days.get(rates) ?? { first, last };
      known.first = Math.min(known.first, first);
      known.last = Math.max(known.last, last);
      this.#days.set(rates, known);
    }
  }

  /** One warning for each currency, in the order of their codes. */
  warnings(source: string): Warning[] {
    const all = [...this.#days].sort(([{ iso: a }], [{ iso: b }]) => (a < b ? -1 : 1));
    return all.map(([{ iso, lastDay }, { first, last }]) => {
      const [from, to, newest] = [dayText(first), dayText(last), dayText(lastDay)];
      const points = from === to ? `the points of ${from}` : `points from ${from} to ${to}`;
      const detail =
        `${source} has no rate of ${iso} for ${points}, and its newest one is of ${newest}; ` +
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
interface Rated<Price extends PriceTerms> {
  readonly planned: readonly Planned<Price>[];
  readonly warnings: readonly Warning[];
  /** Numbers of the prices of whose requested points none can be converted. */
  readonly unconvertible: ReadonlySet<number>;
}

/** Refuses the conversion of some prices for want of rates. */
export const refusedOf = <Price extends PriceTerms>(
  planned: readonly Planned<Price>[],
  unconvertible: ReadonlySet<number>,
): readonly Planned<Price>[] => {
  if (unconvertible.size === 0) return planned;
  const outcome: Outcome = refused('no-rate');
  return planned.map((each) => (unconvertible.has(each.price.id) ? { ...each, outcome } : each));
};

/**
 * Warns of each currency that lacks rates for requested points, and refuses the conversion of a
 * price of which no requested point can be converted. Nothing is read where the rates cover the
 * requested days.
 */
export async function withMissingRates<Price extends PriceTerms>(
  read: MissingReader,
  plan: Plan,
  planned: readonly Planned<Price>[],
  revision: string,
): Promise<Rated<Price>> {
  const lacking = new Lacking();
  const unconvertible = new Set<number>();
  for (const suspects of suspectsOf(plan, planned)) {
    const missing = await read(suspects, plan, revision);
    for (const [index, days] of missing.days)
      lacking.add(suspects.segments[index] as Segment, days);
    for (const id of missing.unconvertible) unconvertible.add(id);
  }
  const source = planned.find((each) => each.outcome?.conversion?.pair)?.outcome?.conversion?.pair;
  const warnings = lacking.warnings(source?.source ?? '');
  return { planned: refusedOf(planned, unconvertible), warnings, unconvertible };
}
