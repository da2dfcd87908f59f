import { type Outcome, refused } from '../../conversion/outcome.ts';
import type { VatRates } from '../../conversion/vat.ts';
import { mapped } from '../../std/turns.ts';
import type { MarketReader } from '../market/reader.ts';
import type { References } from '../market/references.ts';
import type { Plan } from '../plan/plan.ts';
import { type Extent, joinedPoints } from '../series/ranges.ts';
import { type PlannedPrice, vatRatesOf } from './conversions.ts';
import { vatRatesMissing, type Warning } from './warnings.ts';

/** The prices of a request and the warnings about missing rates of VAT. */
interface CheckedPrices {
  readonly planned: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
}

/**
 * Warns of each country without rates of VAT for requested points or without any rate. Refuses the
 * conversion of a price if none of its requested points has a rate. It takes one read, if requested
 * days are before the first rate.
 */
export async function withMissingVatRates(
  reader: Pick<MarketReader, 'extents'>,
  plan: Plan,
  planned: readonly PlannedPrice[],
  references: References,
): Promise<CheckedPrices> {
  const missing = new Map<string, { vat: VatRates; points: Extent | null }>();
  for (const [country, vat] of countriesWithoutRates(planned, references)) {
    missing.set(country, { vat, points: null });
  }
  const early = plan.options.includeSeries ? earlyPrices(plan, planned) : [];
  const { first, last } = plan.days;
  const stretches = early.flatMap(({ priceId, begins }) => [
    { priceId, first, last: Math.min(last, begins - 1), isCounted: true },
    { priceId, first: begins, last, isCounted: false },
  ]);
  const extents = stretches.length === 0 ? [] : await reader.extents(stretches);
  const unconvertible = new Set<number>();
  for (const [index, { priceId, vat }] of early.entries()) {
    const before = extents[2 * index] ?? null;
    if (before === null) continue;
    const known = missing.get(vat.country)?.points ?? undefined;
    missing.set(vat.country, { vat, points: joinedPoints(known, before) });
    if ((extents[2 * index + 1] ?? null) === null) unconvertible.add(priceId);
  }
  const warnings = [...missing.values()].map(({ vat, points }) => vatRatesMissing(vat, points));
  if (unconvertible.size === 0) return { planned, warnings };
  const outcome: Outcome = refused('no-vat-rate');
  const checked = await mapped(planned, (each) =>
    unconvertible.has(each.price.id) ? { ...each, outcome } : each,
  );
  return { planned: checked, warnings };
}

/** A price whose requested days begin before the first rate of its country. */
interface EarlyPrice {
  readonly priceId: number;
  readonly vat: VatRates;
  readonly begins: number;
}

/** The countries whose VAT was to be excluded without any rate, by their codes. */
function countriesWithoutRates(
  planned: readonly PlannedPrice[],
  references: References,
): ReadonlyMap<string, VatRates> {
  const refusedFor = planned.filter(({ outcome }) => outcome?.reason === 'no-vat-rate');
  const rates = refusedFor.flatMap(({ price }) => vatRatesOf(price, references) ?? []);
  return new Map(rates.map((vat) => [vat.country, vat]));
}

/** The prices with requested days before the first rate of their country. */
function earlyPrices({ days }: Plan, planned: readonly PlannedPrice[]): EarlyPrice[] {
  return planned.flatMap(({ price, outcome }) => {
    const vat = outcome?.conversion?.vat;
    const begins = vat?.rates[0]?.from;
    if (!vat || begins === undefined || days.first >= begins) return [];
    return [{ priceId: price.id, vat, begins }];
  });
}
