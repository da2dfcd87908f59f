import type { Outcome } from '../../conversion/outcome.ts';
import { type Rounding, roundingText } from '../../conversion/rounding.ts';

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
  /** Present if the rates are means of a month or year. */
  readonly rates?: 'period-mean';
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
    ...(conversion.pair?.meanOf ? { rates: 'period-mean' } : {}),
    rounding: roundingText(rounding),
  };
}
