import { type Outcome, outcomeOf } from '../../conversion/outcome.ts';
import type { RateTable } from '../../conversion/rate-table.ts';
import { Problem } from '../../errors.ts';
import { mapped } from '../../std/turns.ts';
import { isConverting } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import type { Warning } from '../select/warnings.ts';
import type { Targets } from './targets.ts';

/** A price, and what its conversion comes to; null when none was asked for. */
export interface PlannedPrice {
  readonly price: SelectedPrice;
  readonly outcome: Outcome | null;
}

/** Codes that a warning names before it counts the rest. */
const CODES_NAMED = 50;

const named = (codes: readonly string[], most: number): string => {
  const rest = codes.length - most;
  const list = codes.slice(0, most).join(', ');
  return rest > 0 ? `${list} and ${rest} more` : list;
};

const REFUSED_FOR = [
  ['no-rate', 'No exchange rate'],
  ['incompatible-unit', 'Incompatible unit'],
] as const;

/** The codes of refused prices by the reason: `No exchange rate: A, B. Incompatible unit: C`. */
function namedByReason(refused: readonly PlannedPrice[], most: number): string {
  const parts = REFUSED_FOR.map(([reason, words]) => {
    const those = refused.filter(({ outcome }) => outcome?.reason === reason);
    const codes = those.map(({ price }) => price.code);
    return codes.length === 0 ? null : `${words}: ${named(codes, most)}`;
  });
  return parts.filter((each) => each !== null).join('. ');
}

/** Decides what happens to each price when a conversion is asked for. */
export async function outcomesOf(
  plan: Plan,
  prices: readonly SelectedPrice[],
  targets: Targets,
  references: References,
  rates: RateTable | null,
): Promise<PlannedPrice[]> {
  if (!isConverting(plan.options)) return mapped(prices, (price) => ({ price, outcome: null }));
  const target = { currency: targets.currency?.id ?? null, unit: targets.unit?.unit ?? null };
  return mapped(prices, (price) => {
    const unit = references.units.get(price.unit_id)?.unit;
    if (!unit) throw new Error(`no unit ${price.unit_id} at this revision`);
    const payable = price.price_type === 'payable';
    const terms = { payable, currency: price.currency_id, unit };
    return { price, outcome: outcomeOf(terms, target, rates) };
  });
}

/**
 * Does with prices that cannot be converted what the request says.
 * @throws Problem `unconvertible_records` naming the codes, with `onUnconvertible: error`
 */
export function withoutRefused(
  plan: Plan,
  planned: readonly PlannedPrice[],
): { kept: readonly PlannedPrice[]; warnings: Warning[] } {
  const { onUnconvertible } = plan.options;
  const refused = planned.filter((each) => each.outcome?.status === 'refused');
  if (refused.length === 0 || onUnconvertible === 'keep') return { kept: planned, warnings: [] };
  if (onUnconvertible === 'error') {
    const instead = 'Leave them out of the filters, or choose keep or omit';
    const all = namedByReason(refused, refused.length);
    const detail = `${refused.length} cannot be converted. ${all}. ${instead}`;
    throw new Problem('unconvertible_records', detail);
  }
  const some = namedByReason(refused, CODES_NAMED);
  const warning: Warning = {
    code: 'unconvertible_omitted',
    pointer: '/options/onUnconvertible',
    detail: `${refused.length} left out, as they cannot be converted. ${some}`,
    suggestions: [],
  };
  const kept = planned.filter((each) => each.outcome?.status !== 'refused');
  return { kept, warnings: [warning] };
}

/** The words of a specification that say that VAT is in the numbers; undefined where none do. */
const vatOf = (price: SelectedPrice): string | undefined =>
  price.specification.find(
    ({ name, value }) =>
      /^vat$/i.test(name.trim()) && /\bincl/i.test(value) && !/\b(not|excl\w*)\b/i.test(value),
  )?.value;

/**
 * Chinese domestic prices include VAT: in another currency they look like export prices, which
 * they are not. One warning for each such record whose currency was converted.
 */
export async function vatWarnings(planned: readonly PlannedPrice[]): Promise<Warning[]> {
  const warnings = await mapped(planned, ({ price, outcome }): readonly Warning[] => {
    const vat = outcome?.conversion?.pair ? vatOf(price) : undefined;
    if (vat === undefined) return [];
    const numbers = 'so do its converted numbers; they do not compare with FOB or CIF prices';
    const detail = `${price.code} includes VAT (${vat}), and ${numbers}`;
    return [{ code: 'vat_included', pointer: '/options/currency', detail, suggestions: [] }];
  });
  return warnings.flat();
}
