import { aggregatedPoints } from '../../conversion/aggregate.ts';
import { dayOf } from '../../conversion/calendar.ts';
import {
  type Columns,
  columnSlice,
  lastPoints,
  nativePoints,
  type PointColumns,
} from '../../conversion/columns.ts';
import { convertedPoints, type Observations, observe } from '../../conversion/convert.ts';
import { type CurrencyAndUnit, type Receipt, receiptOf } from '../../conversion/outcome.ts';
import { BY_RULE, type Rounding } from '../../conversion/rounding.ts';
import { type Summary, summaryOf } from '../../conversion/summary.ts';
import type { PlannedPrice, Targets } from '../conversion/outcomes.ts';
import { daysIn, type Plan } from '../plan/plan.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import type { Warning } from '../select/warnings.ts';
import { ColumnsBuilder, type SeriesSource } from '../series/columns.ts';
import { ownTerms, type ShownTerms } from './record.ts';

/** What the contents of records are computed from, all of one state. */
export interface Terms {
  readonly plan: Plan;
  readonly references: References;
  readonly targets: Targets;
}

/** What a record shows but its points, computed, and in no format yet. */
export interface Description {
  readonly price: SelectedPrice;
  /** What the numbers are in. */
  readonly shown: ShownTerms;
  /** Null where no conversion was asked for. */
  readonly receipt: Receipt | null;
  /** Null where it was not asked for. */
  readonly summary: Summary | null;
}

/** Everything that a record shows. */
export interface Contents extends Description {
  /** Null where no series was asked for. */
  readonly points: PointColumns | null;
}

/** The columns from a day on; views of the same memory. */
function since(columns: Columns, from: string | null): Columns {
  if (from === null) return columns;
  const first = dayOf(from);
  let start = 0;
  while (start < columns.length && (columns.day[start] as number) < first) start += 1;
  return columnSlice(columns, start, columns.length);
}

function allPoints(
  { options }: Plan,
  observations: Observations,
  rounding: Rounding,
): PointColumns {
  if (options.aggregate) return aggregatedPoints(observations, options.aggregate, rounding);
  if (observations.conversion) return convertedPoints(observations, rounding);
  return nativePoints(observations.columns);
}

/** The points that an answer shows: all of the range, or the last of them. */
function pointsOf(plan: Plan, observations: Observations, rounding: Rounding): PointColumns {
  const points = allPoints(plan, observations, rounding);
  const { lastObservations } = plan.options;
  return lastObservations === null ? points : lastPoints(points, lastObservations);
}

/** What a record is in, before and after: for its members and its receipt. */
function termsOf({ references, targets }: Terms, { price, outcome }: PlannedPrice) {
  const own = ownTerms(price, references);
  const wanted = {
    unitOfMeasure: targets.unit?.shown ?? own.unitOfMeasure,
    currency: targets.currency?.shown ?? own.currency,
  };
  const inTerms = ({ unitOfMeasure, currency }: typeof own): CurrencyAndUnit => ({
    currency: currency?.iso ?? null,
    unitOfMeasure: unitOfMeasure.name,
  });
  // Only a conversion changes what the numbers are in.
  const shown = outcome?.conversion ? wanted : own;
  return { shown, from: inTerms(own), to: inTerms(wanted) };
}

/** How the numbers of a price are rounded. */
export const roundingOf = ({ options }: Plan, price: SelectedPrice): Rounding =>
  // A payable is the same whatever conversion is asked, also in its averages.
  price.price_type === 'payable' ? BY_RULE : { decimals: options.decimals };

/** The summary of a price, from its series back to the first point. */
export function summaryIn(terms: Terms, { price, outcome }: PlannedPrice, columns: Columns) {
  const rounding = roundingOf(terms.plan, price);
  const payable = price.price_type === 'payable';
  return summaryOf(observe(columns, outcome?.conversion ?? null), { payable, rounding });
}

/**
 * What one record shows but its points.
 * @param withoutRate points that it shows without a rate
 */
export function descriptionOf(
  terms: Terms,
  planned: PlannedPrice,
  summary: Summary | null,
  withoutRate: number,
): Description {
  const { price, outcome } = planned;
  const { shown, from, to } = termsOf(terms, planned);
  const without = withoutRate + (summary?.withoutRate ?? 0);
  const receipt = outcome && receiptOf(outcome, from, to, without, roundingOf(terms.plan, price));
  return { price, shown, receipt, summary };
}

/**
 * What one record shows.
 * @param columns the series, back to the first point when a summary is asked for
 */
function contentsOf(terms: Terms, planned: PlannedPrice, columns: Columns): Contents {
  const { options, range } = terms.plan;
  const { price, outcome } = planned;
  const conversion = outcome?.conversion ?? null;
  const seen = options.includeSeries ? observe(since(columns, range.from), conversion) : null;
  const summary = options.includeSummary ? summaryIn(terms, planned, columns) : null;
  return {
    ...descriptionOf(terms, planned, summary, seen?.withoutRate ?? 0),
    points: seen && pointsOf(terms.plan, seen, roundingOf(terms.plan, price)),
  };
}

/** The sources of the records of an answer, all of one state. */
export interface RecordContext extends Terms {
  readonly revision: string;
  readonly series: SeriesSource;
  /** Most prices whose series one statement reads. */
  readonly pricesPerStatement: number;
  /** Most cells of a wide table. */
  readonly wideCellsMax: number;
  /** Ends what is read for it. The signal is made when it is asked for. */
  readonly work: { readonly signal: AbortSignal };
}

/** The members of `$metadata`, in this order. */
export interface Metadata {
  readonly market: string;
  /** The revision of the answer, as on the wire. */
  readonly revision: string;
  readonly asOf: string;
  readonly count: number;
  readonly nextCursor: string | null;
  readonly warnings: readonly Warning[];
}

/** An answer whose prices are selected; its series are read while its bytes are written. */
export interface Answer {
  readonly metadata: Metadata;
  /** The prices of the page, in the order of their codes. */
  readonly records: readonly PlannedPrice[];
  readonly context: RecordContext;
}

/** Writes an answer in one format, in slices. */
export interface Writer {
  /** The bytes before the first record. */
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** The bytes of one record. */
  readonly record: (terms: Terms, contents: Contents) => Iterable<Buffer>;
  /** The bytes between two records. */
  readonly between: Buffer;
  /** The bytes after the last record. */
  readonly end: Buffer;
}

/** Prices of the first statement, if the number of their points is unknown before. */
const PRICES_AT_FIRST = 4;

/** About as many points as one statement reads: they are held while a slow reader takes them. */
const POINTS_PER_STATEMENT = 16_384;

/** Prices of the first statement: of a bounded range as many as cannot exceed its points. */
function firstStep(days: number, most: number): number {
  const wanted = Math.floor(POINTS_PER_STATEMENT / days);
  return Math.max(1, Math.min(most, Math.max(PRICES_AT_FIRST, wanted)));
}

const NO_COLUMNS: Columns = new ColumnsBuilder().finish();
const NO_SERIES: ReadonlyMap<number, Columns> = new Map();

/** The number of prices that would have made the points of one statement. */
function nextStep(prices: number, points: number, most: number): number {
  const wanted = Math.floor((prices * POINTS_PER_STATEMENT) / Math.max(points, 1));
  return Math.max(1, Math.min(most, 2 * prices, wanted));
}

const pointsIn = (series: ReadonlyMap<number, Columns>): number => {
  let points = 0;
  for (const { length } of series.values()) points += length;
  return points;
};

/** The contents of all records, in order. Series are read in chunks of a few prices. */
export async function* contentsOfAll(
  context: RecordContext,
  prices: readonly PlannedPrice[],
): AsyncGenerator<Contents> {
  const { plan, revision, work, pricesPerStatement: most } = context;
  const { includeSeries, includeSummary } = plan.options;
  // A summary looks back over the beginning of the range, and never past its end.
  const range = includeSummary ? { from: null, to: plan.range.to } : plan.range;
  let step = firstStep(daysIn(range), most);
  for (let start = 0; start < prices.length; ) {
    const chunk = prices.slice(start, start + step);
    const ids = chunk.map((each) => each.price.id);
    const series =
      includeSeries || includeSummary
        ? await context.series(ids, range, revision, work.signal)
        : NO_SERIES;
    for (const planned of chunk) {
      yield contentsOf(context, planned, series.get(planned.price.id) ?? NO_COLUMNS);
    }
    start += chunk.length;
    step = nextStep(chunk.length, pointsIn(series), most);
  }
}
