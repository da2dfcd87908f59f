import { daysOfPeriod, type Period } from '../../calculation/period.ts';
import { ONE } from '../../calculation/unit.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { type PayableReference, referenceOn } from '../../catalog/payable-reference.ts';
import { brokenRules, type Violation } from '../../errors.ts';
import { type Days, dayOf, dayText } from '../../std/days.ts';
import type { SelectedPrice } from '../market/query.ts';
import { NO_POINTS } from '../series/collector.ts';
import type { CalculationData } from './data.ts';
import {
  type CalculationInput,
  type CalculationPlan,
  missingOf,
  type PlannedReferences,
  type PriceInput,
  payableNames,
} from './plan.ts';
import { PriceSessions, priceRange, SessionsMissingError } from './price-input.ts';

/*
 * `payables`: the input of each reference, which is known when the payable is read. A figure uses
 * the reference of the day of its payable, so anchors before and after a change have other inputs.
 */

/** A payable of the short form, with its stored references. */
interface FoundPayable {
  readonly input: PriceInput;
  readonly price: SelectedPrice;
  readonly sessions: PriceSessions;
}

/** The opened markets of the payables, at the revision of the request. */
type Opened = Omit<CalculationData, 'plans'>;

/**
 * The plan of `payables` with the inputs of its references: one for all anchors, or one for each
 * run of anchors with the same references. Any other plan is returned as it is.
 * @throws Problem `validation_failed` for a payable without a reference
 */
export async function referencedPlans(
  plan: CalculationPlan,
  opened: Opened,
): Promise<readonly CalculationPlan[]> {
  const { references, anchors } = plan;
  if (references === null) return [plan];
  const broken: Violation[] = [];
  const payables = await foundPayables(plan, opened, broken);
  const plans: { key: string; plan: CalculationPlan; anchors: (number | null)[] }[] = [];
  for (const anchor of anchors) {
    const found = payables.map((each) => referenceAt(each, anchor, broken));
    const key = JSON.stringify(found);
    const run = plans.at(-1);
    if (run?.key === key) run.anchors.push(anchor);
    else plans.push({ key, plan: withReferences(plan, references, found), anchors: [anchor] });
  }
  if (broken.length > 0) throw brokenRules(broken);
  return plans.map((each) => ({ ...each.plan, anchors: each.anchors }));
}

/** Finds the payables, and reads their sessions. */
async function foundPayables(
  plan: CalculationPlan,
  { markets, references, data }: Opened,
  broken: Violation[],
): Promise<readonly FoundPayable[]> {
  const found = plan.inputs.flatMap((input) => {
    if (input.kind !== 'price') return [];
    const open = markets.find(({ prices }) => prices.has(codeKey(input.code)));
    const price = open?.prices.get(codeKey(input.code));
    if (open === undefined || price === undefined) throw new Error(`no market has ${input.code}`);
    if (price.price_type !== 'payable') {
      const detail = `${price.code} is a price, not a payable; name it as an input of a formula`;
      broken.push({ pointer: input.codePointer, code: 'reference_unknown', detail });
    } else if (price.payable_reference === null) {
      broken.push(unknownReference(input, `No reference of ${price.code} is known`));
    } else return [{ input, price, open }];
    return [];
  });
  if (broken.length > 0) throw brokenRules(broken);
  return Promise.all(
    found.map(async ({ input, price, open }) => {
      const read = await open.reader.series([price.id], priceRange(input, plan.anchors));
      const calendar = references.calendars.of(price.id)?.calendar ?? null;
      const asPublished = { isPayable: true, unit: ONE, conversion: null, source: null };
      const prepared = { input, price, calendar, ...asPublished };
      const columns = read.get(price.id) ?? NO_POINTS;
      const asOfDay = dayOf(data.committedAt.slice(0, 10));
      return { input, price, sessions: new PriceSessions(prepared, columns, asOfDay) };
    }),
  );
}

const unknownReference = ({ codePointer: pointer }: PriceInput, why: string): Violation => ({
  pointer,
  code: 'reference_unknown',
  detail: `${why}; name the reference as an input: payable * reference * content`,
});

/**
 * The reference in force on the days of the payable that an anchor uses. Without a session there is
 * no figure, and any reference may stand in the receipt: that of the last day, or the first.
 */
function referenceAt(
  { input, price, sessions }: FoundPayable,
  anchor: number | null,
  broken: Violation[],
): PayableReference | null {
  const references = price.payable_reference;
  const used = usedDays(sessions, anchor);
  if (used === null) {
    const day = lastDayOf(input, anchor);
    return referenceOn(references, dayText(day)) ?? references?.[0] ?? null;
  }
  const [first, last] = [used.first, used.last].map((day) => referenceOn(references, dayText(day)));
  if (first && first === last) return first;
  if (first && last) {
    const detail =
      `The reference of ${price.code} changes on ${last.validFrom}, within ${input.text}; ` +
      'ask for the periods before and after that day';
    broken.push({ pointer: '/period', code: 'reference_unknown', detail });
  } else {
    const detail = `No reference of ${price.code} is known on ${dayText(used.first)}`;
    broken.push(unknownReference(input, detail));
  }
  return null;
}

/** The days of the sessions that are used; null without any, and if due ones are missing. */
function usedDays(sessions: PriceSessions, anchor: number | null): Days | null {
  try {
    return sessions.usedDays(anchor);
  } catch (error) {
    // The calculation reports it.
    if (error instanceof SessionsMissingError) return null;
    throw error;
  }
}

/** The last day of a period: that of the anchor for a period of sessions. */
function lastDayOf({ period }: PriceInput, anchor: number | null): number {
  return period.kind === 'sessions' ? (anchor ?? 0) : daysOfPeriod(period, anchor ?? 0).last;
}

/** The plan with the inputs of references, each beside that of its payable. */
function withReferences(
  plan: CalculationPlan,
  shared: PlannedReferences,
  references: readonly (PayableReference | null)[],
): CalculationPlan {
  const elements = new Map<string, string>();
  const inputs: CalculationInput[] = [];
  for (const input of plan.inputs) {
    if (input.kind === 'number') {
      inputs.push({ ...input, note: elements.get(input.name) ?? null });
      continue;
    }
    inputs.push(input);
    const place = elements.size + 1;
    const reference = references[place - 1];
    const names = payableNames(place);
    elements.set(names.content, reference?.element ?? '');
    if (input.kind !== 'price' || !reference) continue;
    inputs.push(referenceInput(names.reference, input, shared, reference));
  }
  return { ...plan, inputs };
}

/** True for a period that has no average: one day, or one session. */
const isOneSession = (period: Period): boolean =>
  period.kind === 'sessions'
    ? period.count === 1
    : period.kind === 'days' && period.first === period.last;

/** The input of a reference. @throws Problem for an average of a month without a period of days */
function referenceInput(
  name: string,
  payable: PriceInput,
  shared: PlannedReferences,
  { code, side, statistic }: PayableReference,
): PriceInput {
  const isAveraged = shared.period !== null && !isOneSession(shared.period.period);
  if (statistic === 'month-average' && !isAveraged) {
    const why = `The reference of ${payable.code} is the average of a month`;
    const detail = `${why}; set referencePeriod to its period, such as M-1`;
    throw brokenRules([{ pointer: '/referencePeriod', code: 'invalid_format', detail }]);
  }
  const { text, period } = shared.period ?? payable;
  return {
    ...payable,
    ...{ name, code, side, text, period },
    missing: missingOf(shared.missing, period),
    maxDays: shared.maxDays,
    currency: shared.currency,
    unitOfMeasure: shared.unitOfMeasure,
    vat: shared.vat,
  };
}
