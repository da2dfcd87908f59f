import { aggregatedPoints } from '../../conversion/aggregate.ts';
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
import { Problem } from '../../errors.ts';
import { dayOf } from '../../std/days.ts';
import type { PlannedPrice, Targets } from '../conversion/outcomes.ts';
import { daysIn, type Plan } from '../plan/plan.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import type { Warning } from '../select/warnings.ts';
import { ColumnsBuilder, type SeriesSource } from '../series/columns.ts';
import { currencyAndUnitOf, type ShownCurrencyAndUnit } from './record.ts';

/** Plan, reference data and conversion targets of a response, at one revision. */
export interface RenderContext {
  readonly plan: Plan;
  readonly references: References;
  readonly targets: Targets;
}

/** The computed members of a record without its points, before formatting. */
export interface Description {
  readonly price: SelectedPrice;
  /** Currency and unit of the numbers. */
  readonly shown: ShownCurrencyAndUnit;
  /** Null without a requested conversion. */
  readonly receipt: Receipt | null;
  /** Null if not requested. */
  readonly summary: Summary | null;
}

/** The computed members of a record with its points. */
export interface Contents extends Description {
  /** Null if not requested. */
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

/** The points in the response: those of the range, or the last of them. */
function pointsOf(plan: Plan, observations: Observations, rounding: Rounding): PointColumns {
  const points = allPoints(plan, observations, rounding);
  const { lastObservations } = plan.options;
  return lastObservations === null ? points : lastPoints(points, lastObservations);
}

/** Currency and unit of a record before and after conversion, for its members and receipt. */
function currenciesAndUnitsOf(
  { references, targets }: RenderContext,
  { price, outcome }: PlannedPrice,
) {
  const own = currencyAndUnitOf(price, references);
  const wanted = {
    unitOfMeasure: targets.unit?.shown ?? own.unitOfMeasure,
    currency: targets.currency?.shown ?? own.currency,
  };
  const namesOf = ({ unitOfMeasure, currency }: typeof own): CurrencyAndUnit => ({
    currency: currency?.iso ?? null,
    unitOfMeasure: unitOfMeasure.name,
  });
  // Without a conversion the record keeps its currency and unit.
  const shown = outcome?.conversion ? wanted : own;
  return { shown, from: namesOf(own), to: namesOf(wanted) };
}

/** The rounding of the numbers of a price. */
export const roundingOf = ({ options }: Plan, price: SelectedPrice): Rounding =>
  // The options of a conversion do not affect a payable, including its averages.
  price.price_type === 'payable' ? BY_RULE : { decimals: options.decimals };

/** The summary of a price. @param columns the series, from its first point */
export function summaryIn(
  context: RenderContext,
  { price, outcome }: PlannedPrice,
  columns: Columns,
) {
  const rounding = roundingOf(context.plan, price);
  const payable = price.price_type === 'payable';
  return summaryOf(observe(columns, outcome?.conversion ?? null), { payable, rounding });
}

/**
 * Computes a record without its points.
 * @param withoutRate number of its points without a rate
 */
export function descriptionOf(
  context: RenderContext,
  planned: PlannedPrice,
  summary: Summary | null,
  withoutRate: number,
): Description {
  const { price, outcome } = planned;
  const { shown, from, to } = currenciesAndUnitsOf(context, planned);
  const without = withoutRate + (summary?.withoutRate ?? 0);
  const receipt = outcome && receiptOf(outcome, from, to, without, roundingOf(context.plan, price));
  return { price, shown, receipt, summary };
}

/**
 * Computes a record.
 * @param columns the series, from its first point if a summary is requested
 */
function contentsOf(context: RenderContext, planned: PlannedPrice, columns: Columns): Contents {
  const { options, range } = context.plan;
  const { price, outcome } = planned;
  const conversion = outcome?.conversion ?? null;
  const observed = options.includeSeries ? observe(since(columns, range.from), conversion) : null;
  const summary = options.includeSummary ? summaryIn(context, planned, columns) : null;
  return {
    ...descriptionOf(context, planned, summary, observed?.withoutRate ?? 0),
    points: observed && pointsOf(context.plan, observed, roundingOf(context.plan, price)),
  };
}

/** The request that an answer is written for. */
export interface AnswerWork {
  /** Cancels the reads of the response. Created on first use. */
  readonly signal: AbortSignal;
  /**
   * Takes memory from the budget of `HELD_BYTES_MAX` until the response ends. Call it before the
   * memory is allocated.
   * @param of the object in this memory, if several requests hold the same
   * @returns false if the budget, or the share of the principal, has no room
   */
  hold(bytes: number, of?: object): boolean;
  /** Most bytes that `hold` can grant. */
  readonly holdMax: number;
}

/** The refusal of an answer for which `hold` has no room. */
export const memoryInUse = (): Problem =>
  new Problem(
    'overloaded',
    'Answers that are not read yet take the memory for this one; read them, or try again after ' +
      'Retry-After',
  );

/** The sources of the records of a response, at one revision. */
export interface RecordContext extends RenderContext {
  readonly revision: string;
  readonly series: SeriesSource;
  /** Most prices whose series one statement reads. */
  readonly pricesPerStatement: number;
  /** Most cells of a wide table. */
  readonly wideCellsMax: number;
  readonly work: AnswerWork;
}

/** The members of `$metadata`, in this order. */
export interface Metadata {
  readonly market: string;
  /** The revision of the response, in wire format. */
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
  readonly record: (context: RenderContext, contents: Contents) => Iterable<Buffer>;
  /** The bytes between two records. */
  readonly between: Buffer;
  /** The bytes after the last record. */
  readonly end: Buffer;
}

/** Prices of the first statement, if the number of their points is unknown before. */
const PRICES_AT_FIRST = 4;

/** Target number of points in one statement. They stay in memory while a slow client reads. */
const POINTS_PER_STATEMENT = 16_384;

/** Number of prices in the first statement; a bounded range limits their points. */
function firstStep(days: number, most: number): number {
  const wanted = Math.floor(POINTS_PER_STATEMENT / days);
  return Math.max(1, Math.min(most, Math.max(PRICES_AT_FIRST, wanted)));
}

const NO_COLUMNS: Columns = new ColumnsBuilder().finish();
const NO_SERIES: ReadonlyMap<number, Columns> = new Map();

/** Number of prices in the next statement, from the points of the previous one. */
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
  // A summary needs points before the range, but none after it.
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
