import type { Kysely } from 'kysely';
import type { RateTable } from '../conversion/rate-table.ts';
import type { RatesReader } from '../conversion/rates.ts';
import { type Head, revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import type { SeriesSource } from './columns.ts';
import { outcomesOf, vatWarnings, withoutRefused } from './outcomes.ts';
import type { Plan } from './plan.ts';
import { selectPrices } from './query.ts';
import { recordsOf } from './records.ts';
import type { ReferenceReader } from './references.ts';
import { type State, stateOf } from './state.ts';
import { targetsOf } from './targets.ts';
import { type Warning, warningsOf } from './warnings.ts';

/** What answering needs: where prices, reference data, rates and series are read. */
export interface Sources {
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
  readonly rates: RatesReader;
  /** The configured source of exchange rates. */
  readonly rateSource: string;
  readonly series: SeriesSource;
  /** Prices whose series one statement reads; it bounds the memory of an answer. */
  readonly pricesPerStatement: number;
}

/** An answer that is known to exist, with its bytes still to be read. */
export interface Answer {
  readonly revision: string;
  readonly warnings: readonly Warning[];
  /** The JSON document in slices; a failure midway throws and leaves it incomplete. */
  readonly body: AsyncGenerator<Buffer>;
}

const DOCUMENT_END = Buffer.from(']}');

const metadataOf = (plan: Plan, head: Head, count: number, warnings: readonly Warning[]): string =>
  JSON.stringify({
    market: plan.market.slug,
    revision: revisionText(head),
    asOf: head.committedAt,
    count,
    nextCursor: null,
    warnings,
  });

async function* documentOf(metadata: string, records: AsyncGenerator<Buffer>) {
  yield Buffer.from(`{"$metadata":${metadata},"data":[`);
  yield* records;
  yield DOCUMENT_END;
}

const ratesOf = async (sources: Sources, { head, rates }: State): Promise<RateTable | null> =>
  rates && sources.rates(sources.db, head.epoch, rates);

/**
 * Answers a plan from one state of the database: the revision is read first, everything after it
 * is read at that revision, however much is committed meanwhile.
 * @throws Problem for a revision, currency or unit that is not known, for values that match
 *   nothing when the plan is strict, and for prices that cannot be converted when it says so;
 *   what the database throws
 */
export async function answer(sources: Sources, plan: Plan, signal: AbortSignal): Promise<Answer> {
  const { db, series, pricesPerStatement } = sources;
  const state = await stateOf(db, plan, sources.rateSource);
  const { head } = state;
  const references = await sources.references(db, head);
  const targets = targetsOf(plan.options, references);
  const [prices, rates] = await Promise.all([
    selectPrices(db, plan, head.revision),
    ratesOf(sources, state),
  ]);
  const unmatched = await warningsOf(db, plan, head.revision, prices);
  const outcomes = outcomesOf(plan, prices, targets, references, rates);
  const { kept, warnings: omitted } = withoutRefused(plan, outcomes);
  const warnings = [...unmatched, ...omitted, ...vatWarnings(kept)];
  const { revision } = head;
  const context = { plan, revision, references, targets, series, pricesPerStatement, signal };
  const metadata = metadataOf(plan, head, kept.length, warnings);
  const body = documentOf(metadata, recordsOf(context, kept));
  return { revision: revisionText(head), warnings, body };
}
