import type { Conversion } from './convert.ts';
import { pairOf, type RateTable } from './rate-table.ts';
import { type Rounding, roundingText } from './rounding.ts';
import { SAME_UNIT, type Unit, unitFactor } from './units.ts';

/** The currency and unit of a price. */
interface PriceBasis {
  readonly payable: boolean;
  /** Id of the currency; null for a payable. */
  readonly currency: number | null;
  readonly unit: Unit;
}

/** The requested currency and unit. Null keeps that of the price. At least one is given. */
interface ConversionTarget {
  readonly currency: number | null;
  readonly unit: Unit | null;
}

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
      readonly reason: 'incompatible-unit' | 'no-rate';
      readonly conversion: null;
    };

/** The outcome of a price that cannot be converted. */
export const refused = (reason: 'incompatible-unit' | 'no-rate'): Outcome => ({
  status: 'refused',
  reason,
  conversion: null,
});

/**
 * Decides the conversion of a price. Payables are never converted. Units convert only within one
 * dimension. A currency without any rate is refused.
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
  if (target.currency === null || target.currency === price.currency) {
    if (sameUnit) return { status: 'unchanged', reason: null, conversion: null };
    return { status: 'converted', reason: null, conversion: { unit, pair: null } };
  }
  const pair = rates && pairOf(rates, price.currency, target.currency);
  if (pair === null) return refused('no-rate');
  return { status: 'converted', reason: null, conversion: { unit, pair } };
}

/** An ISO 4217 code, null for a payable, and the name of a unit. */
export interface CurrencyAndUnit {
  readonly currency: string | null;
  readonly unitOfMeasure: string;
}

/** The member `conversion` of a record: all that a reader needs to recompute its values. */
export interface Receipt {
  readonly status: 'converted' | 'unchanged' | 'not-applicable' | 'refused' | 'partial';
  readonly reason: null | 'payable' | 'incompatible-unit' | 'no-rate';
  readonly from: CurrencyAndUnit;
  readonly to: CurrencyAndUnit;
  /** Null if no value was converted. */
  readonly unitFactor: { readonly multiply: string; readonly divide: string } | null;
  /** Null if no exchange rate was used. */
  readonly source: string | null;
  /** Null if no value was converted. */
  readonly rounding: string | null;
}

/**
 * The receipt of one record.
 * @param from the currency and unit of the price
 * @param to the requested currency and unit, or those of the price
 * @param withoutRate number of shown observations, and of observations that the summary needs,
 *   without a rate; a number above 0 makes a conversion partial
 */
export function receiptOf(
  outcome: Outcome,
  from: CurrencyAndUnit,
  to: CurrencyAndUnit,
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
