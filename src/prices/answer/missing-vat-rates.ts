import { summaryDays } from '../../conversion/summary.ts';
import type { VatRates } from '../../conversion/vat.ts';
import type { MarketReader } from '../market/reader.ts';
import type { References } from '../market/references.ts';
import type { Plan } from '../plan/plan.ts';
import { type Extent, joinedPoints, type PriceStretch, spanOf } from '../series/ranges.ts';
import { type CheckedPrices, type PlannedPrice, refusedPrices, vatRatesOf } from './conversions.ts';
import { vatRatesMissing } from './warnings.ts';

type ExtentReader = Pick<MarketReader, 'extents'>;

/**
 * Warns of each country without rates of VAT for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate. It reads nothing if the rates
 * cover the requested days.
 */
export async function withMissingVatRates(
  reader: ExtentReader,
  plan: Plan,
  planned: readonly PlannedPrice[],
  references: References,
): Promise<CheckedPrices> {
  const early = earlyPrices(plan, planned, references);
  if (early.length === 0) return { planned, warnings: [] };
  const inSeries = await seriesPoints(reader, plan, early);
  const inSummaries = await summaryPoints(reader, plan, early);
  const missing = new Map<string, { readonly vat: VatRates; points: Extent | undefined }>();
  const unconvertible = new Set<number>();
  for (const [index, { priceId, vat }] of early.entries()) {
    const found = [inSeries[index], inSummaries[index]].filter((each) => each !== undefined);
    const before = found.flatMap((each) => each.before ?? []);
    if (before.length === 0 && vat.rates.length > 0) continue;
    const known = missing.get(vat.country)?.points;
    const points = before.reduce<Extent | undefined>(joinedPoints, known);
    missing.set(vat.country, { vat, points });
    if (before.length > 0 && !found.some(({ isRated }) => isRated)) unconvertible.add(priceId);
  }
  const warnings = [...missing]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, { vat, points }]) => vatRatesMissing(vat, points));
  return { planned: await refusedPrices(planned, unconvertible, 'no-vat-rate'), warnings };
}

/** A price whose requested days may begin before the first rate of its country. */
interface EarlyPrice {
  readonly priceId: number;
  readonly vat: VatRates;
  /** The day of the first rate; infinity if the country has none. */
  readonly begins: number;
}

function earlyPrices(
  { days, options }: Plan,
  planned: readonly PlannedPrice[],
  references: References,
): EarlyPrice[] {
  // A summary needs points before the requested days.
  const first = options.includeSummary ? -Infinity : days.first;
  return planned.flatMap(({ price, outcome }) => {
    const isUnrated = outcome?.reason === 'no-vat-rate';
    const vat = isUnrated ? vatRatesOf(price, references) : outcome?.conversion?.vat;
    const begins = vat?.rates[0]?.from ?? Infinity;
    return vat && first < begins ? [{ priceId: price.id, vat, begins }] : [];
  });
}

/** Requested points of one price. */
interface RequestedPoints {
  /** Points before the first rate; null if there are none. */
  readonly before: Extent | null;
  /** True if another point has a rate. */
  readonly isRated: boolean;
}

/** The points of the series of each price; nothing if no series is requested. */
async function seriesPoints(
  reader: ExtentReader,
  { days: { first, last }, options }: Plan,
  early: readonly EarlyPrice[],
): Promise<readonly RequestedPoints[]> {
  if (!options.includeSeries) return [];
  const extents = await reader.extents(
    early.flatMap(({ priceId, begins }) => [
      { priceId, first, last: Math.min(last, begins - 1), isCounted: true },
      { priceId, first: Math.max(first, begins), last, isCounted: false },
    ]),
  );
  return early.map((_, index) => ({
    before: extents[2 * index] ?? null,
    isRated: (extents[2 * index + 1] ?? null) !== null,
  }));
}

/** The points that only the summary of each price needs; nothing if none is requested. */
async function summaryPoints(
  reader: ExtentReader,
  { days, options }: Plan,
  early: readonly EarlyPrice[],
): Promise<readonly RequestedPoints[]> {
  if (!options.includeSummary) return [];
  const upTo = (priceId: number, last: number): PriceStretch => {
    return { priceId, first: -Infinity, last, isCounted: false };
  };
  const newest = await reader.extents(early.map(({ priceId }) => upTo(priceId, days.last)));
  const sought = early.map(({ priceId }, index) => {
    const latest = newest[index]?.last;
    return latest === undefined
      ? []
      : [latest, ...summaryDays(latest)].map((day) => upTo(priceId, day));
  });
  const extents = (await reader.extents(sought.flat())).values();
  return early.map(({ begins }, index) => {
    const found = (sought[index] ?? []).flatMap(() => extents.next().value?.last ?? []);
    const own = found.filter((day) => !options.includeSeries || day < days.first);
    const before = [...new Set(own)].filter((day) => day < begins);
    const span = spanOf(before.map((day) => ({ first: day, last: day })));
    return {
      before: before.length === 0 ? null : { ...span, points: before.length },
      isRated: own.some((day) => day >= begins),
    };
  });
}
