import type { Plan } from './plan.ts';

/**
 * A plan as a text, whatever moment and page it is of: two plans with the same text have the same
 * answer at the same state. Values count as they were sent, because warnings show them so.
 */
export function canonicalText({ market, range, codes, lists, options }: Plan): string {
  const { aggregate } = options;
  return JSON.stringify([
    market.slug,
    [range.from, range.to],
    codes,
    lists.map(({ name, values }) => [name, values]),
    [options.includeSeries, options.includeSummary, options.strict, options.onUnconvertible],
    [options.currency, options.unitOfMeasure, options.decimals],
    aggregate && [aggregate.period, aggregate.method],
  ]);
}

/** The texts of plans, for as long as the plans are remembered themselves. */
const keys = new WeakMap<Plan, string>();

/** The same and the page and its warnings, so that it stands for one answer at each state. */
export function canonicalKey(plan: Plan): string {
  const known = keys.get(plan);
  if (known !== undefined) return known;
  const { page, by, openMarkets } = plan;
  const more = JSON.stringify([page.limit, page.after?.code, by, openMarkets]);
  const key = `${canonicalText(plan)} ${more}`;
  keys.set(plan, key);
  return key;
}
