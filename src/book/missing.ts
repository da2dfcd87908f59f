import type { Segment } from '../conversion/segments.ts';
import { summaryDays } from '../conversion/summary.ts';
import type { Missing, MissingReader } from '../prices/missing-rates.ts';
import type { Block } from './block.ts';
import type { Edition } from './edition.ts';
import { daysOf } from './records.ts';
import type { Days } from './series.ts';
import type { Turns } from './turns.ts';

/** The first and last day of the points of a series within some days; null where there are none. */
function pointsWithin(blocks: readonly Block[], { first, last }: Days): Days | null {
  const begin = blocks.find((block) => block.lastDay >= first);
  if (!begin) return null;
  const from = begin.day(begin.indexFrom(first));
  if (from > last) return null;
  const end = blocks.findLast((block) => block.firstDay <= last) as Block;
  const to = end.lastDay <= last ? end.lastDay : end.day(end.indexFrom(last + 1) - 1);
  return { first: from, last: to };
}

/** The requested points of a price: runs of days, and single days. */
function requestedIn(blocks: readonly Block[], plan: Parameters<MissingReader>[1]): Days[] {
  const { includeSeries, includeSummary } = plan.options;
  const { first, last } = daysOf(plan);
  const requested: Days[] = includeSeries ? [{ first, last }] : [];
  if (!includeSummary) return requested;
  const upTo = (day: number): number | null =>
    pointsWithin(blocks, { first: -Infinity, last: day })?.last ?? null;
  const latest = upTo(last);
  if (latest === null) return requested;
  return [...requested, ...summaryDays(latest, upTo).map((day) => ({ first: day, last: day }))];
}

/** Whether all points of a series lie where there are rates. */
function isCovered(blocks: readonly Block[], segments: readonly Segment[]): boolean {
  const [begin, end] = [blocks[0]?.firstDay, blocks.at(-1)?.lastDay];
  if (begin === undefined || end === undefined) return true;
  return segments.some(
    ({ first, last, lacking }) => lacking.length === 0 && first <= begin && last >= end,
  );
}

/** What looking at the points of a price costs, in points that are encoded. */
const PRICE_COST = 10;

/** Looks for requested points without a rate in an edition; the loop is given back now and then. */
export const missingIn =
  (edition: Edition, turns: Turns): MissingReader =>
  async ({ priceIds, segments }, plan) => {
    const days = new Map<number, { first: number; last: number }>();
    const unconvertible: number[] = [];
    for (const id of priceIds) {
      const blocks = edition.prices.get(id)?.blocks ?? [];
      if (isCovered(blocks, segments)) continue;
      let isMissing = false;
      let isConverted = false;
      for (const requested of requestedIn(blocks, plan)) {
        for (const [index, segment] of segments.entries()) {
          const first = Math.max(segment.first, requested.first);
          const last = Math.min(segment.last, requested.last);
          const found = first <= last ? pointsWithin(blocks, { first, last }) : null;
          if (found === null) continue;
          if (segment.lacking.length === 0) {
            isConverted = true;
            continue;
          }
          isMissing = true;
          const known = days.get(index) ?? found;
          days.set(index, {
            first: Math.min(known.first, found.first),
            last: Math.max(known.last, found.last),
          });
        }
      }
      if (isMissing && !isConverted) unconvertible.push(id);
      turns.spend(PRICE_COST);
      if (turns.isDue) await turns.pass();
    }
    return { days, unconvertible } satisfies Missing;
  };
