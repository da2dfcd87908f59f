import { MEAN_PERIODS, type MeanPeriod } from '../../catalog/analytics.ts';
import { nearest } from '../../catalog/nearest.ts';
import { periodOf } from '../../conversion/calendar.ts';
import type { LackingRate } from '../../conversion/columns.ts';
import { type Outcome, outcomeOf, refused } from '../../conversion/outcome.ts';
import { type RateTable, withheld } from '../../conversion/rate-table.ts';
import { unitNamed } from '../../conversion/units.ts';
import type { VatRates } from '../../conversion/vat.ts';
import { eitherOf, Problem, quoted, type Violation } from '../../errors.ts';
import type { Days } from '../../std/days.ts';
import { mapped } from '../../std/turns.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { RateSource } from '../market/rates.ts';
import type { CurrencyReference, References, UnitReference } from '../market/references.ts';
import type { PlanOptions } from '../plan/options.ts';
import { isConverting } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import {
  meanAtOneDayRate,
  meanAtOneVatRate,
  sampleRates,
  unconvertibleOmitted,
  vatIncluded,
  vatUnknown,
  type Warning,
} from './warnings.ts';

/** The currency and unit of a request; null keeps those of the price. */
export interface Targets {
  readonly currency: CurrencyReference | null;
  readonly unit: UnitReference | null;
}

/** The currency of an ISO 4217 code in any case; undefined if unknown. */
export const currencyNamed = (
  references: References,
  iso: string,
): CurrencyReference | undefined => {
  const code = iso.trim();
  // ASCII letters only: ſ must not match S.
  if (!/^[A-Za-z]{3}$/.test(code)) return undefined;
  return [...references.currencies.values()].find((each) => each.member.iso === code.toUpperCase());
};

/** The known currencies or units as text. Before the first load there are none. */
export const thereAre = (known: readonly string[], begin = '; there are'): string =>
  known.length === 0 ? ': the data of that time has none' : `${begin} ${known.join(', ')}`;

/** The violation for an unknown currency. It lists the known currencies. */
export const unknownCurrency = (
  references: References,
  pointer: string,
  sent: string,
): Violation => {
  const known = [...references.currencies.values()].map((each) => each.member.iso).sort();
  const detail = `There is no currency "${quoted(sent)}"${thereAre(known)}`;
  return { pointer, code: 'unknown_currency', detail };
};

/**
 * Finds the requested currency and unit in the reference data of the answer.
 * @throws Problem `validation_failed` that lists the known currencies or units
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
    const known = units.map(({ member: each }) => `${each.name} (${each.symbol})`);
    const names = units.map(({ member: each }) => each.name);
    const near = nearest(unitOfMeasure, names, 3);
    const begin = near.length === 0 ? undefined : `; did you mean ${eitherOf(near)}? There are`;
    const detail = `There is no unit "${quoted(unitOfMeasure)}"${thereAre(known, begin)}`;
    errors.push({ pointer: '/options/unitOfMeasure', code: 'unknown_unit', detail });
  }
  if (errors.length > 0) {
    throw new Problem('validation_failed', 'The target is not known; errors lists the known ones', {
      errors,
    });
  }
  const unit = named ? (references.units.get(named.id) ?? null) : null;
  return { currency: currency ?? null, unit };
}

/** A price and the outcome of its conversion; null without a requested conversion. */
export interface PlannedPrice {
  readonly price: SelectedPrice;
  readonly outcome: Outcome | null;
}

/** The prices of a request and the warnings about missing rates. */
export interface CheckedPrices {
  readonly planned: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
}

/** Refuses the conversion of some prices, given by id, for lack of a rate. */
export async function refusedPrices(
  planned: readonly PlannedPrice[],
  priceIds: ReadonlySet<number>,
  reason: LackingRate,
): Promise<readonly PlannedPrice[]> {
  if (priceIds.size === 0) return planned;
  const outcome = refused(reason);
  return mapped(planned, (each) => (priceIds.has(each.price.id) ? { ...each, outcome } : each));
}

/** Most codes that a warning names; it counts the rest. */
const CODES_NAMED = 50;

const named = (codes: readonly string[], codesMax: number): string => {
  const rest = codes.length - codesMax;
  const list = codes.slice(0, codesMax).join(', ');
  return rest > 0 ? `${list} and ${rest} more` : list;
};

const REFUSED_FOR = [
  ['no-rate', 'No exchange rate'],
  ['no-vat-rate', 'No rate of VAT'],
  ['incompatible-unit', 'Incompatible unit'],
] as const;

/** The codes of refused prices by reason: `No exchange rate: A, B. Incompatible unit: C`. */
function namedByReason(refused: readonly PlannedPrice[], codesMax: number): string {
  const parts = REFUSED_FOR.map(([reason, words]) => {
    const those = refused.filter(({ outcome }) => outcome?.reason === reason);
    const codes = those.map(({ price }) => price.code);
    return codes.length === 0 ? null : `${words}: ${named(codes, codesMax)}`;
  });
  return parts.filter((each) => each !== null).join('. ');
}

/** The rates that may convert a price; null if the source does not exist. */
export type RatesOfPrice = (price: Pick<SelectedPrice, 'id'>) => RateTable | null;

/**
 * Invented rates convert sample prices only.
 * @param readSamples reads the ids of the sample prices; called for a sample source only
 */
export async function ratesByPrice(
  rates: RateTable | null,
  readSamples: () => Promise<ReadonlySet<number>>,
): Promise<RatesOfPrice> {
  if (rates?.kind !== 'sample') return () => rates;
  const samples = await readSamples();
  const none = withheld(rates);
  return ({ id }) => (samples.has(id) ? rates : none);
}

/** Returns the period whose mean rate converts a price; null for the rates of days. */
export const meanOf = ({ options }: Plan, { observes }: SelectedPrice): MeanPeriod | null =>
  options.rates === 'period-mean' ? MEAN_PERIODS[observes] : null;

/**
 * The rates of VAT by which a price is divided; null if it is not known to include VAT. A country
 * without any rate has an empty list of them.
 */
export const vatRatesOf = (
  { vat_country: country }: SelectedPrice,
  { vat }: References,
): VatRates | null => (country === null ? null : (vat.get(country) ?? { country, rates: [] }));

/** Decides the conversion of each price. */
export async function outcomesOf(
  plan: Plan,
  prices: readonly SelectedPrice[],
  targets: Targets,
  references: References,
  ratesOf: RatesOfPrice,
): Promise<PlannedPrice[]> {
  if (!isConverting(plan.options)) return mapped(prices, (price) => ({ price, outcome: null }));
  const target = { currency: targets.currency?.id ?? null, unit: targets.unit?.unit ?? null };
  return mapped(prices, (price) => {
    const unit = references.units.get(price.unit_id)?.unit;
    if (!unit) throw new Error(`no unit ${price.unit_id} at this revision`);
    const payable = price.price_type === 'payable';
    const vat = plan.options.vat === 'exclude' ? vatRatesOf(price, references) : null;
    const basis = { payable, currency: price.currency_id, unit, meanOf: meanOf(plan, price), vat };
    return { price, outcome: outcomeOf(basis, target, ratesOf(price)) };
  });
}

/**
 * Applies `onUnconvertible` to the refused prices.
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
    const instead = 'Exclude them in the filters, or set keep or omit';
    const all = namedByReason(refused, refused.length);
    const detail = `${refused.length} cannot be converted. ${all}. ${instead}`;
    throw new Problem('unconvertible_records', detail);
  }
  const some = namedByReason(refused, CODES_NAMED);
  const kept = planned.filter((each) => each.outcome?.status !== 'refused');
  return { kept, warnings: [unconvertibleOmitted(refused.length, some)] };
}

/** Warns of invented rates if any price is converted by them. */
export function sampleWarnings(
  source: RateSource | null,
  planned: readonly PlannedPrice[],
): readonly Warning[] {
  const isUsed = source?.isSample && planned.some(({ outcome }) => outcome?.conversion?.pair);
  return isUsed ? [sampleRates(source.slug, '/options/currency')] : [];
}

/** Warns of means of a month or year that are converted at the rate of a day. */
export function meanWarnings(
  planned: readonly PlannedPrice[],
  remedy = 'Set options.rates to period-mean',
): readonly Warning[] {
  const converted = planned.filter(({ price, outcome }) => {
    const pair = outcome?.conversion?.pair;
    return pair && pair.meanOf === null && MEAN_PERIODS[price.observes] !== null;
  });
  if (converted.length === 0) return [];
  const codes = converted.map(({ price }) => price.code);
  return [meanAtOneDayRate(codes.length, named(codes, CODES_NAMED), remedy)];
}

/** Warns of means that are divided by one rate of VAT, which changed within their period. */
export function vatMeanWarnings(
  planned: readonly PlannedPrice[],
  requested: Days,
): readonly Warning[] {
  const divided = planned.filter(({ price, outcome }) => {
    const period = MEAN_PERIODS[price.observes];
    if (period === null) return false;
    return outcome?.conversion?.vat?.rates.some(({ from }) => {
      const { start, end } = periodOf(from, period);
      return from > start && start <= requested.last && end >= requested.first;
    });
  });
  if (divided.length === 0) return [];
  const codes = divided.map(({ price }) => price.code);
  return [meanAtOneVatRate(codes.length, named(codes, CODES_NAMED))];
}

/**
 * The words that state that a price includes VAT: those of its specification, else its country.
 * Undefined if nothing states it.
 */
const vatOf = (price: SelectedPrice): string | undefined =>
  price.specification.find(
    ({ name, value }) =>
      /^vat$/i.test(name.trim()) && /\bincl/i.test(value) && !/\b(not|excl\w*)\b/i.test(value),
  )?.value ??
  price.vat_country ??
  undefined;

/**
 * The warnings for converted prices that include VAT: Chinese domestic prices in another currency
 * look like export prices. One warning for each such record, unless its VAT was excluded.
 */
export async function vatWarnings(planned: readonly PlannedPrice[]): Promise<Warning[]> {
  const warnings = await mapped(planned, ({ price, outcome }): readonly Warning[] => {
    const { pair = null, vat: excluded = null } = outcome?.conversion ?? {};
    const vat = pair !== null && excluded === null ? vatOf(price) : undefined;
    return vat === undefined ? [] : [vatIncluded(price.code, vat)];
  });
  return warnings.flat();
}

/** Warns of prices whose VAT was to be excluded, and that are not known to include it. */
export function vatUnknownWarnings(
  { options }: Plan,
  planned: readonly PlannedPrice[],
): readonly Warning[] {
  if (options.vat !== 'exclude') return [];
  const unknown = planned.filter(
    ({ price }) => price.price_type !== 'payable' && price.vat_country === null,
  );
  if (unknown.length === 0) return [];
  const codes = unknown.map(({ price }) => price.code);
  return [vatUnknown(named(codes, CODES_NAMED))];
}
