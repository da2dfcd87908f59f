import type { MeanPeriod } from '../catalog/analytics.ts';
import type { LackingRate } from './columns.ts';
import type { Conversion } from './convert.ts';
import { pairOf, type RateTable } from './rate-table.ts';
import { SAME_UNIT, type Unit, unitFactor } from './units.ts';
import type { VatRates } from './vat.ts';

/** The currency and unit of a price. */
interface PriceBasis {
  readonly payable: boolean;
  /** Id of the currency; null for a payable. */
  readonly currency: number | null;
  readonly unit: Unit;
  /** The period whose mean rate converts it; null or absent for the rate of a day. */
  readonly meanOf?: MeanPeriod | null;
  /** The rates by which it is divided; null or absent to keep VAT, or if it includes none. */
  readonly vat?: VatRates | null;
}

/** The requested currency and unit. Null keeps that of the price. */
interface ConversionTarget {
  readonly currency: number | null;
  readonly unit: Unit | null;
}

/** The reason that a price cannot be converted. */
type RefusalReason = 'incompatible-unit' | LackingRate;

/**
 * The outcome of a conversion for one price, without its points: a converted price may still have
 * points without a rate.
 */
export type Outcome =
  | { readonly status: 'converted'; readonly reason: null; readonly conversion: Conversion }
  | { readonly status: 'unchanged'; readonly reason: null; readonly conversion: null }
  | {
      readonly status: 'not-applicable';
      readonly reason: 'payable';
      readonly conversion: null;
    }
  | {
      readonly status: 'refused';
      readonly reason: RefusalReason;
      readonly conversion: null;
    };

/** The outcome of a price that cannot be converted. */
export const refused = (reason: RefusalReason): Outcome => ({
  status: 'refused',
  reason,
  conversion: null,
});

/**
 * Decides the conversion of a price. Payables are never converted. Units convert only within one
 * dimension. A currency, or a country whose VAT is excluded, without any rate is refused.
 * @param rates null if no source holds any rate
 */
export function outcomeOf(
  price: PriceBasis,
  target: ConversionTarget,
  rates: RateTable | null,
): Outcome {
  if (price.payable || price.currency === null) {
    return { status: 'not-applicable', reason: 'payable', conversion: null };
  }
  const sameUnit = target.unit === null || target.unit.id === price.unit.id;
  const unit = sameUnit || target.unit === null ? SAME_UNIT : unitFactor(price.unit, target.unit);
  if (unit === null) return refused('incompatible-unit');
  const vat = price.vat ?? null;
  if (vat !== null && vat.rates.length === 0) return refused('no-vat-rate');
  if (target.currency === null || target.currency === price.currency) {
    if (sameUnit && vat === null) return { status: 'unchanged', reason: null, conversion: null };
    return { status: 'converted', reason: null, conversion: { unit, pair: null, vat } };
  }
  const pair = rates && pairOf(rates, price.currency, target.currency, price.meanOf);
  if (pair === null) return refused('no-rate');
  return { status: 'converted', reason: null, conversion: { unit, pair, vat } };
}
