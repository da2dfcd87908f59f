import type { Columns } from '../conversion/columns.ts';
import { ColumnsBuilder, type SeriesSource } from './columns.ts';
import { type Contents, contentsOf, type Terms } from './contents.ts';
import type { PlannedPrice } from './outcomes.ts';

/** Everything that the records of an answer are read and computed from, all of one state. */
export interface RecordContext extends Terms {
  readonly revision: string;
  readonly series: SeriesSource;
  /** Most prices whose series one statement reads. */
  readonly pricesPerStatement: number;
  /** Ends what is read for it. The signal is made when it is asked for. */
  readonly work: { readonly signal: AbortSignal };
}

/** Prices that are read first: how long their series are is not known before. */
const PRICES_AT_FIRST = 4;

/** About as many points as one statement reads: they are held while a slow reader takes them. */
const POINTS_PER_STATEMENT = 16_384;

const NO_COLUMNS: Columns = new ColumnsBuilder().finish();
const NO_SERIES: ReadonlyMap<number, Columns> = new Map();

/** As many prices as would have made the points that one statement should read. */
function nextStep(prices: number, points: number, most: number): number {
  const wanted = Math.floor((prices * POINTS_PER_STATEMENT) / Math.max(points, 1));
  return Math.max(1, Math.min(most, 2 * prices, wanted));
}

const pointsIn = (series: ReadonlyMap<number, Columns>): number => {
  let points = 0;
  for (const { length } of series.values()) points += length;
  return points;
};

/** What the records show, in order: series in chunks of a few prices, nothing held between. */
export async function* contentsOfAll(
  context: RecordContext,
  prices: readonly PlannedPrice[],
): AsyncGenerator<Contents> {
  const { plan, revision, work, pricesPerStatement: most } = context;
  const { includeSeries, includeSummary } = plan.options;
  // A summary looks back over the beginning of the range, and never past its end.
  const range = includeSummary ? { from: null, to: plan.range.to } : plan.range;
  let step = Math.min(PRICES_AT_FIRST, most);
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
