import type { Outcome } from './convert.ts';
import { type Rounding, roundingText } from './rounding.ts';

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
