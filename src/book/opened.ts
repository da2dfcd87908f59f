import type { Format } from '../contract/formats.ts';
import type { Newest } from '../db/pulse.ts';
import { revisionText } from '../db/revisions.ts';
import type { Answer, Sources } from '../prices/answer.ts';
import type { SeriesColumns, SeriesSource } from '../prices/columns.ts';
import type { Plan } from '../prices/plan.ts';
import type { State } from '../prices/state.ts';
import type { Body } from '../wire/body.ts';
import { bookBody, type Repeated, repeatedBody } from './body.ts';
import type { Budget } from './budget.ts';
import type { Edition } from './edition.ts';
import type { LineFormat } from './frames.ts';
import { missingIn } from './missing.ts';
import type { BookCounts } from './place.ts';
import { daysOf } from './records.ts';
import { selectIn } from './selection.ts';
import { columnsOfStretches, stretchesOf } from './series.ts';
import { type TurnCounts, Turns } from './turns.ts';

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
  /** What was put together before for the same plan at the same state; null where nothing was. */
  repeated(plan: Plan, format: Format, state: State, coding: 'gzip' | null): Repeated | null;
  /** Whether it makes the bytes of such an answer, and so has them as gzip at little cost. */
  offersGzip(plan: Plan, format: Format): boolean;
}

/** Aggregates and CSV are computed from the columns by the writers of all formats. */
const isKept = ({ options }: Plan, format: Format): format is LineFormat =>
  format !== 'csv' && options.aggregate === null;

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

/** What is opened, and what is counted of it. */
interface OpenedFrom {
  readonly edition: Edition;
  readonly budget: Budget;
  readonly turns: TurnCounts;
  readonly counts: Pick<BookCounts, 'filtersRead' | 'repeats'>;
}

/** Opens an edition for one request. */
export function openedBook(from: OpenedFrom, sources: Sources, asked: Newest): Opened {
  const { edition, budget, counts } = from;
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
      hasAll: true,
      series: seriesIn(edition, turns),
      missing: () => missingIn(edition, turns),
      pricesPerStatement: PRICES_AT_ONCE,
    },
    body: (answer, format, { rates }, coding) => {
      if (!isKept(answer.context.plan, format)) return null;
      return bookBody({ edition, budget, turns, counts, rates }, answer, format, coding);
    },
    repeated: (plan, format, { head, rates }, coding) => {
      if (!isKept(plan, format)) return null;
      const source = { edition, budget, turns, counts, rates };
      return repeatedBody(source, plan, revisionText(head), format, coding);
    },
    offersGzip: isKept,
  };
}
