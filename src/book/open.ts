import type { Columns } from '../conversion/columns.ts';
import type { Segment } from '../conversion/rate-table.ts';
import { summaryDays } from '../conversion/summary.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { Answer, Readers } from '../prices/answer/answer.ts';
import {
  joinedPoints,
  type MissingReader,
  type RequestedDays,
} from '../prices/answer/missing-rates.ts';
import type { SegmentPoints } from '../prices/answer/warnings.ts';
import { isConverting, optionsOf, type PlanOptions } from '../prices/plan/options.ts';
import type { Plan } from '../prices/plan/plan.ts';
import type { SeriesSource } from '../prices/series/collector.ts';
import type { Snapshot } from '../prices/snapshot.ts';
import type { Body } from '../std/body-stream.ts';
import type { Days } from '../std/days.ts';
import { type Block, columnsOfRanges, countWithin, rangesIn } from './block.ts';
import { type BookFormat, bookBody } from './body.ts';
import type { Budget } from './budget.ts';
import { type Edition, selectIn } from './edition.ts';
import { type TurnCounts, Turns } from './turns.ts';

/** The first and last day of the points within some days; null if there are none. */
function pointsWithin(blocks: readonly Block[], { first, last }: Days): Days | null {
  const begin = blocks.find((block) => block.lastDay >= first);
  if (!begin) return null;
  const from = begin.day(begin.indexFrom(first));
  if (from > last) return null;
  const end = blocks.findLast((block) => block.firstDay <= last) as Block;
  const to = end.lastDay <= last ? end.lastDay : end.day(end.indexFrom(last + 1) - 1);
  return { first: from, last: to };
}

/** The days of the requested points of a price, and single days for a summary. */
function requestedIn(blocks: readonly Block[], { days, options }: RequestedDays): Days[] {
  const { includeSeries, includeSummary } = options;
  const requested: Days[] = includeSeries ? [days] : [];
  if (!includeSummary) return requested;
  const upTo = (day: number): number | null =>
    pointsWithin(blocks, { first: -Infinity, last: day })?.last ?? null;
  const latest = upTo(days.last);
  if (latest === null) return requested;
  // The series contains all other days that a summary needs.
  const single = new Set(summaryDays(latest, upTo));
  const before = [...single].filter((day) => !includeSeries || day < days.first);
  return [...requested, ...before.map((day) => ({ first: day, last: day }))];
}

/** True if one segment with rates contains all points of a series. */
function isCovered(blocks: readonly Block[], segments: readonly Segment[]): boolean {
  const [begin, end] = [blocks[0]?.firstDay, blocks.at(-1)?.lastDay];
  if (begin === undefined || end === undefined) return true;
  return segments.some(
    ({ first, last, lacking }) => lacking.length === 0 && first <= begin && last >= end,
  );
}

/** Cost of checking the points of a price, in encoded points. */
const PRICE_COST = 10;

/** Adds points of one price to those of a segment. */
function addPoints(found: Map<number, SegmentPoints>, index: number, more: SegmentPoints): void {
  const known = found.get(index);
  found.set(index, known === undefined ? more : joinedPoints(known, more));
}

/** Counts requested points in an edition. Yields to the event loop when due. */
const missingIn =
  (edition: Edition, turns: Turns): MissingReader =>
  async ({ priceIds, segments }, plan, _revision, always) => {
    const found = new Map<number, SegmentPoints>();
    const unconvertible: number[] = [];
    const blocksOf = (id: number) => edition.prices.get(id)?.blocks ?? [];
    if (!always && priceIds.every((id) => isCovered(blocksOf(id), segments))) {
      return { segments: found, unconvertible };
    }
    for (const id of priceIds) {
      const blocks = blocksOf(id);
      const [begin = 0, end = -1] = [blocks[0]?.firstDay, blocks.at(-1)?.lastDay];
      let isMissing = false;
      let isConverted = false;
      for (const requested of requestedIn(blocks, plan)) {
        for (const [index, segment] of segments.entries()) {
          const first = Math.max(segment.first, requested.first, begin);
          const last = Math.min(segment.last, requested.last, end);
          const days = first <= last ? pointsWithin(blocks, { first, last }) : null;
          if (days === null) continue;
          addPoints(found, index, { ...days, points: countWithin(blocks, days) });
          if (segment.lacking.length === 0) isConverted = true;
          else isMissing = true;
        }
      }
      if (isMissing && !isConverted) unconvertible.push(id);
      turns.spend(PRICE_COST);
      if (turns.isDue) await turns.pass();
    }
    return { segments: found, unconvertible };
  };

/** The book for one request, at one revision. */
export interface OpenBook {
  /** The newest revision of the request, or a later one. */
  readonly newest: NewestRevision;
  /** Reads prices and series from the book. */
  readonly readers: Readers;
  /**
   * The bytes of an answer from these readers.
   * @returns null if only a writer makes these bytes
   */
  body(answer: Answer, snapshot: Snapshot): Body | null;
}

/**
 * True for an option that the book applies itself, or that does not change how an answer is
 * encoded. If an option with false has another value than its default, a writer makes the answer:
 * the keys of cached heads, cells and blocks do not contain such an option.
 */
const IS_APPLIED: Readonly<Record<keyof PlanOptions, boolean>> = {
  includeSeries: true,
  includeSummary: true,
  strict: true,
  currency: true,
  unitOfMeasure: true,
  onUnconvertible: true,
  decimals: true,
  aggregate: false,
  requested: true,
  lastObservations: true,
  decimalsAsText: false,
  // Only tables have columns: see isPlainCsv.
  columns: true,
  layout: false,
  warnings: false,
};
const DEFAULTS = optionsOf({});
const LEFT_TO_WRITERS = (Object.keys(IS_APPLIED) as (keyof PlanOptions)[]).filter(
  (name) => !IS_APPLIED[name],
);

/** True for CSV with all columns, and without a conversion and a summary. */
const isPlainCsv = ({ options }: Plan): boolean =>
  (options.columns === null || options.columns === 'all') &&
  !options.includeSummary &&
  !isConverting(options);

/** The format of an answer whose bytes the book makes; null if a writer makes them. */
function formatOfBook(plan: Plan): BookFormat | null {
  const { format, options } = plan;
  const isOfBook =
    format === 'json' || format === 'ndjson' || (format === 'csv' && isPlainCsv(plan));
  const isPlain = LEFT_TO_WRITERS.every((name) => options[name] === DEFAULTS[name]);
  return isOfBook && isPlain ? format : null;
}

/** Prices whose series a writer reads at a time. */
const PRICES_PER_READ = 2;

/** Reads series from an edition. Yields to the event loop when due. */
const seriesIn =
  (edition: Edition, turns: Turns): SeriesSource =>
  async (priceIds, { days }) => {
    const found = new Map<number, Columns>();
    if (turns.isLong) await turns.pass();
    for (const id of priceIds) {
      const columns = columnsOfRanges(rangesIn(edition.prices.get(id)?.blocks ?? [], days));
      turns.spend(columns.length);
      if (columns.length > 0) found.set(id, columns);
    }
    return found;
  };

/** Work of the book since it started. */
export interface BookCounts {
  /** Requests that the book answered. */
  answers: number;
  /** Requests that the book left to the database. */
  misses: number;
  builds: number;
  refreshes: number;
  /** Rows that were read. */
  pricesRead: number;
  pointsRead: number;
  /** Selections that were read from the database. */
  filtersRead: number;
}

interface OpenInput {
  readonly edition: Edition;
  readonly budget: Budget;
  readonly turns: TurnCounts;
  readonly counts: Pick<BookCounts, 'filtersRead'>;
}

/** Opens an edition for one request. @param requested the newest revision of the request */
export function openEdition(
  input: OpenInput,
  readers: Readers,
  requested: NewestRevision,
): OpenBook {
  const { edition, budget, counts } = input;
  const turns = new Turns(input.turns);
  // An edition may be refreshed after the request arrived: a later revision is allowed.
  const newest = edition.newest.order > requested.order ? edition.newest : requested;
  return {
    newest,
    readers: {
      ...readers,
      references: async () => edition.references,
      select: (lazyDb, plan, data) => {
        const counted = () => {
          counts.filtersRead += 1;
          return lazyDb();
        };
        return selectIn(counted, edition, plan, data, readers.vocabularies, budget);
      },
      series: seriesIn(edition, turns),
      missing: () => missingIn(edition, turns),
      pricesPerStatement: PRICES_PER_READ,
    },
    body: (answer, { rates }) => {
      const format = formatOfBook(answer.context.plan);
      return format && bookBody({ edition, budget, turns, rates }, answer, format);
    },
  };
}
