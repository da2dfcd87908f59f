import type { LackingRate } from '../../conversion/columns.ts';
import type { Conversion } from '../../conversion/convert.ts';
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
  readonly reason: Outcome['reason'];
  readonly from: CurrencyAndUnit;
  readonly to: CurrencyAndUnit;
  /** Null if no value was converted. */
  readonly unitFactor: { readonly multiply: string; readonly divide: string } | null;
  /** Null if no exchange rate was used. */
  readonly source: string | null;
  /** Present if the rates are means of a month or year. */
  readonly rates?: 'period-mean';
  /** Present if VAT was to be excluded: true to the numbers of the record. */
  readonly vat?: 'excluded' | 'included' | 'unknown';
  /** Null if no value was converted. */
  readonly rounding: string | null;
}

/**
 * The receipt of one record.
 * @param from the currency and unit of the price
 * @param to the requested currency and unit, or those of the price
 * @param lacking the rate that shown observations, or those that the summary needs, lack; null if
 *   they have all: any other makes a conversion partial
 * @param includesVat whether the price is known to include VAT; null if none was to be excluded
 */
export function receiptOf(
  outcome: Outcome,
  from: CurrencyAndUnit,
  to: CurrencyAndUnit,
  lacking: LackingRate | null,
  rounding: Rounding,
  includesVat: boolean | null = null,
): Receipt {
  const { conversion } = outcome;
  const vat = vatOf(conversion, includesVat);
  if (conversion === null) {
    const { status, reason } = outcome;
    return { status, reason, from, to, unitFactor: null, source: null, ...vat, rounding: null };
  }
  const { multiply, divide } = conversion.unit;
  return {
    status: lacking === null ? 'converted' : 'partial',
    reason: lacking,
    from,
    to,
    unitFactor: { multiply, divide },
    source: conversion.pair?.source ?? null,
    ...(conversion.pair?.meanOf ? { rates: 'period-mean' } : {}),
    ...vat,
    rounding: roundingText(rounding),
  };
}

/** The member `vat` of a receipt. */
function vatOf(conversion: Conversion | null, includesVat: boolean | null): Pick<Receipt, 'vat'> {
  if (includesVat === null) return {};
  if (!includesVat) return { vat: 'unknown' };
  return { vat: conversion === null ? 'included' : 'excluded' };
}
