import type { Kysely } from 'kysely';
import { type Head, headOf, revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import type { SeriesColumns, SeriesSource } from './columns.ts';
import { encodePoints } from './encode.ts';
import type { Plan } from './plan.ts';
import { type SelectedPrice, selectPrices } from './query.ts';
import { recordHead } from './record.ts';
import type { ReferenceReader, References } from './references.ts';
import { type Warning, warningsOf } from './warnings.ts';

/** What answering needs: where prices, reference data and series are read. */
export interface Sources {
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
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

const SEPARATOR = Buffer.from(',');
const RECORD_END = Buffer.from(']}');
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

/** The records of an answer: heads as text, series in chunks of a few prices each. */
async function* recordsOf(
  sources: Sources,
  plan: Plan,
  head: Head,
  prices: readonly SelectedPrice[],
  references: References,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const step = sources.pricesPerStatement;
  for (let start = 0; start < prices.length; start += step) {
    const chunk = prices.slice(start, start + step);
    const series: ReadonlyMap<number, SeriesColumns> = plan.includeSeries
      ? await sources.series(
          chunk.map((each) => each.id),
          plan.range,
          head.revision,
          signal,
        )
      : new Map();
    for (const [index, price] of chunk.entries()) {
      if (start + index > 0) yield SEPARATOR;
      yield Buffer.from(recordHead(plan.market, price, references));
      const columns = series.get(price.id);
      if (columns) yield encodePoints(columns);
      yield RECORD_END;
    }
  }
}

async function* documentOf(metadata: string, records: AsyncGenerator<Buffer>) {
  yield Buffer.from(`{"$metadata":${metadata},"data":[`);
  yield* records;
  yield DOCUMENT_END;
}

/**
 * Answers a plan from one state of the database: the revision is read first, everything after it
 * is read at that revision, however much is committed meanwhile.
 * @throws Problem when the plan is strict and a value matches nothing; what the database throws
 */
export async function answer(sources: Sources, plan: Plan, signal: AbortSignal): Promise<Answer> {
  const { db } = sources;
  const head = await headOf(db, [plan.market.slug]);
  const [prices, references] = await Promise.all([
    selectPrices(db, plan, head.revision),
    sources.references(db, head),
  ]);
  const warnings = await warningsOf(db, plan, head.revision, prices);
  const metadata = metadataOf(plan, head, prices.length, warnings);
  const records = recordsOf(sources, plan, head, prices, references, signal);
  return { revision: revisionText(head), warnings, body: documentOf(metadata, records) };
}
