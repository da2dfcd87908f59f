import type { Format } from '../../contract/schemas/formats.ts';
import type { Segment } from '../../conversion/segments.ts';
import { summaryDays } from '../../conversion/summary.ts';
import type { Newest } from '../../db/newest.ts';
import type { Sources } from '../../prices/answer.ts';
import type { Missing, MissingReader } from '../../prices/conversion/missing-rates.ts';
import type { Plan } from '../../prices/plan/plan.ts';
import type { SeriesColumns, SeriesSource } from '../../prices/series/columns.ts';
import type { State } from '../../prices/state.ts';
import type { Answer } from '../../prices/write/contents.ts';
import type { Body } from '../../std/body.ts';
import type { Block } from '../store/block.ts';
import type { Budget } from '../store/budget.ts';
import type { Edition } from '../store/edition.ts';
import { columnsOfStretches, type Days, stretchesOf } from '../store/series.ts';
import { type TurnCounts, Turns } from '../store/turns.ts';
import type { Sent, SentAnswers } from './answers.ts';
import { bookBody } from './body.ts';
import { selectIn } from './selection.ts';
import { daysOf, type LineFormat } from './walk.ts';

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

/** True if all points of a series lie where there are rates. */
function isCovered(blocks: readonly Block[], segments: readonly Segment[]): boolean {
  const [begin, end] = [blocks[0]?.firstDay, blocks.at(-1)?.lastDay];
  if (begin === undefined || end === undefined) return true;
  return segments.some(
    ({ first, last, lacking }) => lacking.length === 0 && first <= begin && last >= end,
  );
}

/** Cost of checking the points of a price, in points that are encoded. */
const PRICE_COST = 10;

/** Finds requested points without a rate in an edition; yields to the event loop now and then. */
const missingIn =
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

/** The book as one request sees it: all at one state. */
export interface Opened {
  /** The look to answer at: the one of the request, or a later one. */
  readonly newest: Newest;
  /** Where prices and series are read: in the book. */
  readonly sources: Sources;
  /**
   * The bytes of an answer from these sources, as they are or as gzip; null where a writer has to
   * make them.
   */
  body(answer: Answer, format: Format, state: State, coding: 'gzip' | null): Body | null;
  /**
   * Caches the answer to a request that was made before.
   * @param slices its bytes, unless they are more than so many or not there yet
   */
  keep(request: string, sent: Sent, slices: (bytesMax: number) => readonly Buffer[] | null): void;
  /** Whether it makes the bytes of such an answer, and so has them as gzip at little cost. */
  offersGzip(plan: Plan, format: Format): boolean;
}

/** Writers compute everything else from the columns: aggregates, numbers as text, CSV, rows. */
const isKept = ({ options }: Plan, format: Format): format is LineFormat =>
  (format === 'json' || format === 'ndjson') &&
  options.aggregate === null &&
  options.warnings !== 'row' &&
  !options.decimalsAsText;

/** Prices whose points are written at once, where a writer makes the bytes. */
const PRICES_AT_ONCE = 2;

/** Reads series in an edition; the loop is given back now and then. */
const seriesIn =
  (edition: Edition, turns: Turns): SeriesSource =>
  async (priceIds, range) => {
    const days = daysOf({ range });
    const found = new Map<number, SeriesColumns>();
    if (turns.isLong) await turns.pass();
    for (const id of priceIds) {
      const columns = columnsOfStretches(stretchesOf(edition.prices.get(id)?.blocks ?? [], days));
      turns.spend(columns.length);
      if (columns.length > 0) found.set(id, columns);
    }
    return found;
  };

/** What the book did so far. */
export interface BookCounts {
  /** Requests that were answered from the book, and that were left to the database. */
  answers: number;
  misses: number;
  /** Of these, the ones that were sent as the same had been before. */
  repeats: number;
  builds: number;
  refreshes: number;
  /** Rows of prices and of points that were read. */
  pricesRead: number;
  pointsRead: number;
  /** Filters that the database was asked for. */
  filtersRead: number;
}

/** What is opened, and what is counted of it. */
interface OpenedFrom {
  readonly edition: Edition;
  readonly answers: SentAnswers;
  readonly budget: Budget;
  readonly turns: TurnCounts;
  readonly counts: Pick<BookCounts, 'filtersRead'>;
}

/** Opens an edition for one request. */
export function openedBook(from: OpenedFrom, sources: Sources, asked: Newest): Opened {
  const { edition, answers, budget, counts } = from;
  const turns = new Turns(from.turns);
  // A request that came before the last refresh may see it: it is only newer than it must be.
  const newest = edition.newest.order > asked.order ? edition.newest : asked;
  return {
    newest,
    sources: {
      ...sources,
      references: async () => edition.references,
      select: (asking, plan, head) => {
        const reading = () => {
          counts.filtersRead += 1;
          return asking();
        };
        return selectIn(reading, edition, plan, head, sources.vocabularies, budget);
      },
      series: seriesIn(edition, turns),
      missing: () => missingIn(edition, turns),
      pricesPerStatement: PRICES_AT_ONCE,
    },
    body: (answer, format, { rates }, coding) => {
      if (!isKept(answer.context.plan, format)) return null;
      return bookBody({ edition, budget, turns, rates }, answer, format, coding);
    },
    keep: (request, sent, slices) => {
      if (!answers.isRepeated(request)) return;
      const parts = slices(answers.bytesMax);
      if (parts !== null) answers.keep(request, sent, newest, parts);
    },
    offersGzip: isKept,
  };
}
