import { aggregatedPoints } from '../conversion/aggregate.ts';
import type { Columns, PointColumns } from '../conversion/columns.ts';
import { nativePoints } from '../conversion/columns.ts';
import { convertedPoints } from '../conversion/convert.ts';
import { type Observations, observe } from '../conversion/observations.ts';
import { type InTerms, receiptOf } from '../conversion/receipt.ts';
import { BY_RULE, type Rounding } from '../conversion/rounding.ts';
import { summaryJson, summaryOf } from '../conversion/summary.ts';
import type { SeriesColumns, SeriesSource } from './columns.ts';
import { ColumnsBuilder } from './columns.ts';
import { encodePoints } from './encode.ts';
import type { PlannedPrice } from './outcomes.ts';
import type { Plan } from './plan.ts';
import { ownTerms, recordHead } from './record.ts';
import type { References } from './references.ts';
import type { Targets } from './targets.ts';

/** Everything that writing the records of an answer needs, all of one state. */
export interface RecordContext {
  readonly plan: Plan;
  readonly revision: string;
  readonly references: References;
  readonly targets: Targets;
  readonly series: SeriesSource;
  /** Prices whose series one statement reads; it bounds the memory of an answer. */
  readonly pricesPerStatement: number;
  readonly signal: AbortSignal;
}

const SEPARATOR = Buffer.from(',');
const SERIES = Buffer.from(',"series":[');
const RECORD_END = Buffer.from(']}');
const NO_COLUMNS: SeriesColumns = new ColumnsBuilder().finish();

const DAY_MS = 86_400_000;
const dayOf = (text: string): number =>
  (Date.parse(`${text}T00:00:00Z`) - Date.UTC(2000, 0, 1)) / DAY_MS;

/** The columns from a day on; views of the same memory. */
function since(columns: Columns, from: string | null): Columns {
  if (from === null) return columns;
  const first = dayOf(from);
  let start = 0;
  while (start < columns.length && (columns.day[start] as number) < first) start += 1;
  return {
    length: columns.length - start,
    day: columns.day.subarray(start, columns.length),
    low: columns.low.subarray(start, columns.length),
    mid: columns.mid.subarray(start, columns.length),
    high: columns.high.subarray(start, columns.length),
    scale: columns.scale.subarray(start, columns.length),
    publishedAt: columns.publishedAt.subarray(start, columns.length),
    corrections: columns.corrections.subarray(start, columns.length),
  };
}

function pointsOf({ options }: Plan, observations: Observations, rounding: Rounding): PointColumns {
  if (options.aggregate) return aggregatedPoints(observations, options.aggregate, rounding);
  if (observations.conversion) return convertedPoints(observations, rounding);
  return nativePoints(observations.columns);
}

/** What a record is in, before and after: for its members and its receipt. */
function termsOf(context: RecordContext, { price, outcome }: PlannedPrice) {
  const { references, targets } = context;
  const own = ownTerms(price, references);
  const wanted = {
    unitOfMeasure: targets.unit?.shown ?? own.unitOfMeasure,
    currency: targets.currency?.shown ?? own.currency,
  };
  const inTerms = ({ unitOfMeasure, currency }: typeof own): InTerms => ({
    currency: currency?.iso ?? null,
    unitOfMeasure: unitOfMeasure.name,
  });
  // Only a conversion changes what the numbers are in.
  const shown = outcome?.conversion ? wanted : own;
  return { shown, from: inTerms(own), to: inTerms(wanted) };
}

/** One record, in slices. `columns` reach back to the first point when a summary is asked for. */
function* recordSlices(
  context: RecordContext,
  planned: PlannedPrice,
  columns: Columns,
): Generator<Buffer> {
  const { plan, references } = context;
  const { options, range, market } = plan;
  const { price, outcome } = planned;
  const payable = price.price_type === 'payable';
  // A payable is the same whatever conversion is asked, also in its averages.
  const rounding: Rounding = payable ? BY_RULE : { decimals: options.decimals };
  const conversion = outcome?.conversion ?? null;
  const terms = termsOf(context, planned);
  const shown = options.includeSeries ? observe(since(columns, range.from), conversion) : null;
  const summary = options.includeSummary
    ? summaryOf(observe(columns, conversion), { payable, rounding })
    : null;
  yield Buffer.from(recordHead(market, price, references, terms.shown));
  if (outcome) {
    const withoutRate = (shown?.withoutRate ?? 0) + (summary?.withoutRate ?? 0);
    const receipt = receiptOf(outcome, terms.from, terms.to, withoutRate, rounding);
    yield Buffer.from(`,"conversion":${JSON.stringify(receipt)}`);
  }
  if (summary) yield Buffer.from(`,"summary":${summaryJson(summary)}`);
  yield SERIES;
  if (shown) yield encodePoints(pointsOf(plan, shown, rounding));
  yield RECORD_END;
}

/** The records of an answer, in slices: series in chunks of a few prices, nothing held between. */
export async function* recordsOf(
  context: RecordContext,
  prices: readonly PlannedPrice[],
): AsyncGenerator<Buffer> {
  const { plan, revision, signal, pricesPerStatement: step } = context;
  const { includeSeries, includeSummary } = plan.options;
  // A summary looks back over the beginning of the range, and never past its end.
  const range = includeSummary ? { from: null, to: plan.range.to } : plan.range;
  for (let start = 0; start < prices.length; start += step) {
    const chunk = prices.slice(start, start + step);
    const ids = chunk.map((each) => each.price.id);
    const series: ReadonlyMap<number, SeriesColumns> =
      includeSeries || includeSummary
        ? await context.series(ids, range, revision, signal)
        : new Map();
    for (const [index, planned] of chunk.entries()) {
      if (start + index > 0) yield SEPARATOR;
      yield* recordSlices(context, planned, series.get(planned.price.id) ?? NO_COLUMNS);
    }
  }
}
