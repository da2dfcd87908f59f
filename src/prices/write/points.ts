import { aggregatedPoints, movingAverages } from '../../conversion/aggregate.ts';
import {
  type Columns,
  columnSlice,
  type LackingRate,
  lastPoints,
  nativePoints,
  type PointColumns,
} from '../../conversion/columns.ts';
import {
  convertedPoints,
  firstLacking,
  lastOf,
  type Observations,
  observe,
} from '../../conversion/convert.ts';
import { BY_RULE, type Rounding } from '../../conversion/rounding.ts';
import { type Summary, summaryOf } from '../../conversion/summary.ts';
import { daysIn } from '../../std/days.ts';
import { Slice } from '../../std/turns.ts';
import type { Answer, RecordContext, RenderContext } from '../answer/answer.ts';
import type { PlannedPrice } from '../answer/conversions.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { Plan } from '../plan/plan.ts';
import { ColumnsBuilder } from '../series/collector.ts';
import type { SeriesRange } from '../series/ranges.ts';
import type { ByteWriter } from './bytes.ts';
import { type CurrencyAndUnit, type Receipt, receiptOf } from './receipt.ts';
import { type CurrencyAndUnitMembers, currencyAndUnitOf } from './record.ts';

/** The computed members of a record without its points, before formatting. */
export interface Description {
  readonly price: SelectedPrice;
  /** Currency and unit of the numbers. */
  readonly currencyAndUnit: CurrencyAndUnitMembers;
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
function since(columns: Columns, first: number): Columns {
  let start = 0;
  while (start < columns.length && (columns.day[start] as number) < first) start += 1;
  return columnSlice(columns, start, columns.length);
}

/** The points in the response: those of the requested days, or the last of them. */
function pointsOf(plan: Plan, observations: Observations, rounding: Rounding): PointColumns {
  const { aggregate, lastObservations } = plan.options;
  if (aggregate !== null) {
    const points = aggregatedPoints(observations, aggregate, rounding);
    return lastObservations === null ? points : lastPoints(points, lastObservations);
  }
  const last = lastObservations === null ? observations : lastOf(observations, lastObservations);
  return last.conversion ? convertedPoints(last, rounding) : nativePoints(last.columns);
}

/**
 * The points with their moving averages, if requested.
 * @param columns the series, with the sessions before the points
 */
function withAverages(
  points: PointColumns,
  { options }: Plan,
  columns: Columns,
  conversion: Observations['conversion'],
  rounding: Rounding,
): PointColumns {
  const { movingAverage: sessions } = options;
  if (sessions === null) return points;
  const from = Math.max(0, columns.length - points.length - sessions + 1);
  const used = observe(columnSlice(columns, from, columns.length), conversion);
  return { ...points, movingAverage: movingAverages(used, sessions, points.length, rounding) };
}

/** Currency and unit of a record before and after conversion, for its members and receipt. */
function currenciesAndUnitsOf(
  { references, targets }: RenderContext,
  { price, outcome }: PlannedPrice,
) {
  const own = currencyAndUnitOf(price, references);
  const wanted = {
    unitOfMeasure: targets.unit?.member ?? own.unitOfMeasure,
    currency: targets.currency?.member ?? own.currency,
  };
  const namesOf = ({ unitOfMeasure, currency }: typeof own): CurrencyAndUnit => ({
    currency: currency?.iso ?? null,
    unitOfMeasure: unitOfMeasure.name,
  });
  // Without a conversion the record keeps its currency and unit.
  const currencyAndUnit = outcome?.conversion ? wanted : own;
  return { currencyAndUnit, from: namesOf(own), to: namesOf(wanted) };
}

/** The rounding of the numbers of a price. */
const roundingOf = ({ options }: Plan, price: SelectedPrice): Rounding =>
  // The options of a conversion do not affect a payable, including its averages.
  price.price_type === 'payable' ? BY_RULE : { decimals: options.decimals };

/** The summary of a price. @param columns the series, from its first point */
function summaryIn(context: RenderContext, { price, outcome }: PlannedPrice, columns: Columns) {
  const rounding = roundingOf(context.plan, price);
  const payable = price.price_type === 'payable';
  return summaryOf(observe(columns, outcome?.conversion ?? null), { payable, rounding });
}

/**
 * Computes a record without its points.
 * @param lacked the rate that points of it lack; null if they have all
 */
function descriptionOf(
  context: RenderContext,
  planned: PlannedPrice,
  summary: Summary | null,
  lacked: LackingRate | null,
): Description {
  const { price, outcome } = planned;
  const { currencyAndUnit, from, to } = currenciesAndUnitsOf(context, planned);
  const lacking = firstLacking(lacked, summary?.lacking ?? null);
  const rounding = roundingOf(context.plan, price);
  const isExcluding = context.plan.options.vat === 'exclude';
  const includesVat = isExcluding ? price.vat_country !== null : null;
  const receipt = outcome && receiptOf(outcome, from, to, lacking, rounding, includesVat);
  return { price, currencyAndUnit, receipt, summary };
}

/**
 * Computes a record.
 * @param columns the points of `rangeOf`, which may be earlier than the requested days
 */
function contentsOf(context: RenderContext, planned: PlannedPrice, columns: Columns): Contents {
  const { options, days } = context.plan;
  const { price, outcome } = planned;
  const conversion = outcome?.conversion ?? null;
  const observed = options.includeSeries ? observe(since(columns, days.first), conversion) : null;
  const summary = options.includeSummary ? summaryIn(context, planned, columns) : null;
  const rounding = roundingOf(context.plan, price);
  const points = observed && pointsOf(context.plan, observed, rounding);
  return {
    ...descriptionOf(context, planned, summary, observed?.lacking ?? null),
    points: points && withAverages(points, context.plan, columns, conversion, rounding),
  };
}

/** Writes one answer in one format. */
export interface Writer {
  /** The records that are not in a slice yet. */
  readonly out: ByteWriter;
  /** The bytes before the first record, in slices. */
  readonly start: (answer: Answer) => Iterable<Buffer>;
  /** Writes one record to `out`, and yields the slices that it fills. */
  readonly record: (context: RenderContext, contents: Contents) => Iterable<Buffer>;
  /** The bytes between two records. */
  readonly between: Buffer;
  /** The bytes after the last record. */
  readonly end: Buffer;
}

/** Prices of the first read, if the number of their points is unknown before. */
const PRICES_AT_FIRST = 4;

/** Target number of points of one read. They stay in memory while a slow client reads. */
const POINTS_PER_READ = 16_384;

/** Number of prices of the first read; a bounded range limits their points. */
function firstStep(days: number, pricesMax: number): number {
  const wanted = Math.floor(POINTS_PER_READ / days);
  return Math.max(1, Math.min(pricesMax, Math.max(PRICES_AT_FIRST, wanted)));
}

const NO_COLUMNS: Columns = new ColumnsBuilder().finish();
const NO_SERIES: ReadonlyMap<number, Columns> = new Map();

/** Number of prices of the next read, from the points of the previous one. */
function nextStep(prices: number, points: number, pricesMax: number): number {
  const wanted = Math.floor((prices * POINTS_PER_READ) / Math.max(points, 1));
  return Math.max(1, Math.min(pricesMax, 2 * prices, wanted));
}

const pointsIn = (series: ReadonlyMap<number, Columns>): number => {
  let points = 0;
  for (const { length } of series.values()) points += length;
  return points;
};

/** The points that the records of a plan need. */
function rangeOf({ days, options }: Plan): SeriesRange {
  const { includeSummary, aggregate, currency, vat, lastObservations, movingAverage } = options;
  // A summary needs points before the requested days, but none after them.
  if (includeSummary) return { days: { first: -Infinity, last: days.last }, last: null };
  // The receipt of a conversion counts all points without a rate.
  const isCut = aggregate === null && currency === null && vat === 'as-published';
  const last = isCut ? lastObservations : null;
  if (movingAverage === null) return { days, last };
  // A mean needs sessions before the requested days, of which each has one point at most.
  const most = Math.min(last ?? Infinity, daysIn(days)) + movingAverage - 1;
  const isBounded = Number.isFinite(most);
  return { days: { first: -Infinity, last: days.last }, last: isBounded ? most : null };
}

/**
 * The contents of all records, in order. Series are read in chunks of a few prices. Yields to the
 * event loop between records: a reader in memory never waits, and a record may be much work for few
 * bytes. It never fails for an abort either, so each chunk checks the signal of the request.
 * @throws the reason of the signal; errors of the reader
 */
export async function* contentsOfAll(
  context: RecordContext,
  prices: readonly PlannedPrice[],
): AsyncGenerator<Contents> {
  const { plan, reader, work } = context;
  const { pricesPerRead: pricesMax } = reader;
  const { includeSeries, includeSummary } = plan.options;
  const range = rangeOf(plan);
  const slice = new Slice();
  let step = firstStep(Math.min(daysIn(range.days), range.last ?? Infinity), pricesMax);
  for (let start = 0; start < prices.length; ) {
    const chunk = prices.slice(start, start + step);
    const ids = chunk.map((each) => each.price.id);
    // A small answer creates no signal for it.
    if (start > 0) work.signal.throwIfAborted();
    const series = includeSeries || includeSummary ? await reader.series(ids, range) : NO_SERIES;
    for (const planned of chunk) {
      yield contentsOf(context, planned, series.get(planned.price.id) ?? NO_COLUMNS);
      if (slice.isOver) await slice.yieldIfOver();
    }
    start += chunk.length;
    step = nextStep(chunk.length, pointsIn(series), pricesMax);
  }
}
