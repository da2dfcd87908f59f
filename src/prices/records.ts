import type { Columns } from '../conversion/columns.ts';
import { ColumnsBuilder, type SeriesSource } from './columns.ts';
import { type Contents, contentsOf, type Terms } from './contents.ts';
import type { PlannedPrice } from './outcomes.ts';

/** Everything that the records of an answer are read and computed from, all of one state. */
export interface RecordContext extends Terms {
  readonly revision: string;
  readonly series: SeriesSource;
  /** Prices whose series one statement reads; it bounds the memory of an answer. */
  readonly pricesPerStatement: number;
  /** Ends what is read for it. The signal is made when it is asked for. */
  readonly work: { readonly signal: AbortSignal };
}

const NO_COLUMNS: Columns = new ColumnsBuilder().finish();
const NO_SERIES: ReadonlyMap<number, Columns> = new Map();

/** What the records show, in order: series in chunks of a few prices, nothing held between. */
export async function* contentsOfAll(
  context: RecordContext,
  prices: readonly PlannedPrice[],
): AsyncGenerator<Contents> {
  const { plan, revision, work, pricesPerStatement: step } = context;
  const { includeSeries, includeSummary } = plan.options;
  // A summary looks back over the beginning of the range, and never past its end.
  const range = includeSummary ? { from: null, to: plan.range.to } : plan.range;
  for (let start = 0; start < prices.length; start += step) {
    const chunk = prices.slice(start, start + step);
    const ids = chunk.map((each) => each.price.id);
    const series =
      includeSeries || includeSummary
        ? await context.series(ids, range, revision, work.signal)
        : NO_SERIES;
    for (const planned of chunk) {
      yield contentsOf(context, planned, series.get(planned.price.id) ?? NO_COLUMNS);
    }
  }
}
