import type { DecimalColumn, PointColumns, ValueName } from './columns.ts';
import {
  type Conversion,
  exactValue,
  FACTOR_ERROR,
  factorsOf,
  type Observations,
} from './observations.ts';
import { pairOf, type RateTable } from './rate-table.ts';
import { RoundedColumn, type Rounding } from './rounding.ts';
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

function convertColumn(
  observations: Observations,
  name: ValueName,
  factors: Float64Array,
  rounding: Rounding,
): DecimalColumn {
  const stored = observations.columns[name];
  const rounded = new RoundedColumn(stored.length, rounding);
  rounded.settleProducts(stored, factors, FACTOR_ERROR, (index) =>
    exactValue(observations, name, index),
  );
  return rounded;
}

/**
 * The converted points: each value exactly stored × unit × to / from, rounded once. A missing
 * value stays null, as do all three of a point without a rate.
 */
export function convertedPoints(observations: Observations, rounding: Rounding): PointColumns {
  const { columns, fx } = observations;
  const factors = factorsOf(observations);
  const column = (name: ValueName) => convertColumn(observations, name, factors, rounding);
  return {
    length: columns.length,
    day: columns.day,
    low: column('low'),
    mid: column('mid'),
    high: column('high'),
    publishedAt: columns.publishedAt,
    corrections: columns.corrections,
    fx,
    periods: null,
  };
}
