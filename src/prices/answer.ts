import type { Kysely } from 'kysely';
import type { RateTable } from '../conversion/rate-table.ts';
import type { RatesReader } from '../conversion/rates.ts';
import { revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import type { SeriesSource } from './columns.ts';
import { outcomesOf, type PlannedPrice, vatWarnings, withoutRefused } from './outcomes.ts';
import type { Plan } from './plan.ts';
import { selectPrices } from './query.ts';
import type { RecordContext } from './records.ts';
import type { ReferenceReader } from './references.ts';
import type { State, StateReader } from './state.ts';
import { targetsOf } from './targets.ts';
import { type Warning, warningsOf } from './warnings.ts';

/** What answering needs: where prices, reference data, rates and series are read. */
export interface Sources {
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
  readonly rates: RatesReader;
  /** The configured source of exchange rates. */
  readonly rateSource: string;
  readonly state: StateReader;
  readonly series: SeriesSource;
  /** Prices whose series one statement reads; it bounds the memory of an answer. */
  readonly pricesPerStatement: number;
}

/** What an answer says of itself: `$metadata` of its JSON, in this order. */
export interface Metadata {
  readonly market: string;
  /** The state that was read, as on the wire. */
  readonly revision: string;
  readonly asOf: string;
  readonly count: number;
  readonly nextCursor: string | null;
  readonly warnings: readonly Warning[];
}

/** An answer that is known to exist, with its series still to be read and its bytes to be made. */
export interface Answer {
  readonly metadata: Metadata;
  /** The prices that it shows, in the order of their codes. */
  readonly records: readonly PlannedPrice[];
  readonly context: RecordContext;
}

const ratesOf = async (sources: Sources, { head, rates }: State): Promise<RateTable | null> =>
  rates && sources.rates(sources.db, head.epoch, rates);

/**
 * Answers a plan from one state of the database, the one that was found for it: everything is
 * read at its revision, however much is committed meanwhile.
 * @throws Problem for a currency or unit that is not known, for values that match nothing when the
 *   plan is strict, and for prices that cannot be converted when it says so; what the database
 *   throws
 */
export async function answerAt(
  sources: Sources,
  plan: Plan,
  state: State,
  signal: AbortSignal,
): Promise<Answer> {
  const { db, series, pricesPerStatement } = sources;
  const { head } = state;
  const { revision } = head;
  const references = await sources.references(db, head);
  const targets = targetsOf(plan.options, references);
  const [prices, rates] = await Promise.all([
    selectPrices(db, plan, revision),
    ratesOf(sources, state),
  ]);
  const unmatched = await warningsOf(db, plan, revision, prices);
  const outcomes = outcomesOf(plan, prices, targets, references, rates);
  const { kept, warnings: omitted } = withoutRefused(plan, outcomes);
  const metadata = {
    market: plan.market.slug,
    revision: revisionText(head),
    asOf: head.committedAt,
    count: kept.length,
    nextCursor: null,
    warnings: [...unmatched, ...omitted, ...vatWarnings(kept)],
  };
  const context = { plan, revision, references, targets, series, pricesPerStatement, signal };
  return { metadata, records: kept, context };
}
