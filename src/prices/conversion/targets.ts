import { nearest } from '../../catalog/nearest.ts';
import { unitNamed } from '../../conversion/units.ts';
import { eitherOf, Problem, shown, type Violation } from '../../errors.ts';
import type { PlanOptions } from '../plan/options.ts';
import type { CurrencyReference, References, UnitReference } from '../select/references.ts';

/** What an answer converts to; null leaves the price's own. */
export interface Targets {
  readonly currency: CurrencyReference | null;
  readonly unit: UnitReference | null;
}

/** The currency of an ISO 4217 code, whatever the case; undefined where none is known. */
export const currencyNamed = (
  references: References,
  iso: string,
): CurrencyReference | undefined => {
  const code = iso.trim();
  // Only the 26 letters have two cases here: ſ is no spelling of S.
  if (!/^[A-Za-z]{3}$/.test(code)) return undefined;
  return [...references.currencies.values()].find((each) => each.shown.iso === code.toUpperCase());
};

/** What is wrong with a currency that is not known, and which are. */
export const unknownCurrency = (
  references: References,
  pointer: string,
  sent: string,
): Violation => {
  const known = [...references.currencies.values()].map((each) => each.shown.iso).sort();
  const detail = `There is no currency "${shown(sent)}"; there are ${known.join(', ')}`;
  return { pointer, code: 'unknown_currency', detail };
};

/**
 * Finds what the options convert to among the currencies and units known at the answer's state.
 * @throws Problem `validation_failed` that lists what there is
 */
export function targetsOf(options: PlanOptions, references: References): Targets {
  const errors: Violation[] = [];
  const { currency: iso, unitOfMeasure } = options;
  const currency = iso === null ? null : currencyNamed(references, iso);
  if (currency === undefined && iso !== null) {
    errors.push(unknownCurrency(references, '/options/currency', iso));
  }
  const units = [...references.units.values()];
  const named =
    unitOfMeasure === null
      ? null
      : unitNamed(
          units.map((each) => each.unit),
          unitOfMeasure,
        );
  if (named === undefined && unitOfMeasure !== null) {
    const known = units.map(({ shown: each }) => `${each.name} (${each.symbol})`).join(', ');
    const names = units.map(({ shown: each }) => each.name);
    const near = nearest(unitOfMeasure, names, 3);
    const all = near.length === 0 ? 'there are' : `did you mean ${eitherOf(near)}? There are`;
    const detail = `There is no unit "${shown(unitOfMeasure)}"; ${all} ${known}`;
    errors.push({ pointer: '/options/unitOfMeasure', code: 'unknown_unit', detail });
  }
  if (errors.length > 0) {
    throw new Problem('validation_failed', 'The target is not known; errors lists what there is', {
      errors,
    });
  }
  const unit = named ? (references.units.get(named.id) ?? null) : null;
  return { currency: currency ?? null, unit };
}
