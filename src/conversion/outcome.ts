import type { Conversion } from './convert.ts';
import { pairOf, type RateTable } from './rate-table.ts';
import { type Rounding, roundingText } from './rounding.ts';
import { SAME_UNIT, type Unit, unitFactor } from './units.ts';

/** What the values of a price are in. */
interface PriceTerms {
  readonly payable: boolean;
  /** Number of the currency; null for a payable. */
  readonly currency: number | null;
  readonly unit: Unit;
}

/** What a request wants values in; null leaves the price's own. At least one is given. */
interface Target {
  readonly currency: number | null;
  readonly unit: Unit | null;
}

/**
 * What a conversion comes to for one price, before any of its points is seen: a converted price
 * may still lack the rate of single points.
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
      readonly reason: 'incompatible-unit' | 'no-rate';
      readonly conversion: null;
    };

/** What a conversion comes to that cannot be done. */
export const refused = (reason: 'incompatible-unit' | 'no-rate'): Outcome => ({
  status: 'refused',
  reason,
  conversion: null,
});

/**
 * Decides what happens to a price. Payables are never touched; units convert inside one
 * dimension; a currency for which the source has no rate at all is refused.
 * @param rates null where no source holds any rate
 */
export function outcomeOf(price: PriceTerms, target: Target, rates: RateTable | null): Outcome {
  if (price.payable || price.currency === null) {
    return { status: 'not-applicable', reason: 'payable', conversion: null };
  }
  const sameUnit = target.unit === null || target.unit.id === price.unit.id;
  const unit = sameUnit || target.unit === null ? SAME_UNIT : unitFactor(price.unit, target.unit);
  if (unit === null) return refused('incompatible-unit');
  if (target.currency === null || target.currency === price.currency) {
    if (sameUnit) return { status: 'unchanged', reason: null, conversion: null };
    return { status: 'converted', reason: null, conversion: { unit, pair: null } };
  }
  const pair = rates && pairOf(rates, price.currency, target.currency);
  if (pair === null) return refused('no-rate');
  return { status: 'converted', reason: null, conversion: { unit, pair } };
}

/** What numbers are in: an ISO 4217 code, null for a payable, and the name of a unit. */
export interface InTerms {
  readonly currency: string | null;
  readonly unitOfMeasure: string;
}

/** The member `conversion` of a record: how to recompute its figures by hand. */
export interface Receipt {
  readonly status: 'converted' | 'unchanged' | 'not-applicable' | 'refused' | 'partial';
  readonly reason: null | 'payable' | 'incompatible-unit' | 'no-rate';
  readonly from: InTerms;
  readonly to: InTerms;
  /** Null where nothing was converted. */
  readonly unitFactor: { readonly multiply: string; readonly divide: string } | null;
  /** Null where no exchange rate was used. */
  readonly source: string | null;
  /** Null where nothing was converted. */
  readonly rounding: string | null;
}

/**
 * The receipt of one record.
 * @param from what the price is in
 * @param to what the request asked for, and the price's own where it asked for nothing
 * @param withoutRate observations that are shown, or that a figure of the summary needs, without a
 *   rate; any makes a conversion partial
 */
export function receiptOf(
  outcome: Outcome,
  from: InTerms,
  to: InTerms,
  withoutRate: number,
  rounding: Rounding,
): Receipt {
  const { conversion } = outcome;
  if (conversion === null) {
    const { status, reason } = outcome;
    return { status, reason, from, to, unitFactor: null, source: null, rounding: null };
  }
  const { multiply, divide } = conversion.unit;
  return {
    status: withoutRate > 0 ? 'partial' : 'converted',
    reason: withoutRate > 0 ? 'no-rate' : null,
    from,
    to,
    unitFactor: { multiply, divide },
    source: conversion.pair?.source ?? null,
    rounding: roundingText(rounding),
  };
}
