import type { Kysely } from 'kysely';
import type { Format } from '../contract/formats.ts';
import type { RateTable } from '../conversion/rate-table.ts';
import type { RatesReader } from '../conversion/rates.ts';
import type { Reads } from '../db/reads.ts';
import { revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import type { SeriesSource } from './columns.ts';
import { type Contents, contentsOfAll, type RecordContext, type Terms } from './contents.ts';
import { csvWriter } from './csv.ts';
import { jsonWriter, ndjsonWriter } from './json.ts';
import type { MissingReader } from './missing-rates.ts';
import type { PlannedPrice } from './outcomes.ts';
import { type Asking, findPrices, type Selector } from './page.ts';
import type { Plan } from './plan.ts';
import type { ReferenceReader } from './references.ts';
import type { State, StateReader } from './state.ts';
import { targetsOf } from './targets.ts';
import type { VocabularyReader } from './vocabulary.ts';
import type { Warning } from './warnings.ts';

/** What answering needs: where prices, reference data, rates and series are read. */
export interface Sources {
  /** Reads what requests share; nobody who leaves ends it for the others. */
  readonly db: Kysely<Database>;
  /** Reads for one request. */
  readonly reads: Reads;
  readonly references: ReferenceReader;
  readonly rates: RatesReader;
  /** The configured source of exchange rates. */
  readonly rateSource: string;
  readonly state: StateReader;
  readonly vocabularies: VocabularyReader;
  readonly select: Selector;
  /** Whether it has all prices at hand, so that a page is best cut from them. */
  readonly hasAll: boolean;
  readonly series: SeriesSource;
  /** Looks for requested points without a rate, for one request. */
  readonly missing: (db: Asking) => MissingReader;
  /** Most prices whose series one statement reads. */
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
  work: RecordContext['work'],
): Promise<Answer> {
  const { series, pricesPerStatement } = sources;
  const signal = () => work.signal;
  const db = () => sources.reads.db(signal());
  const { head } = state;
  const { revision } = head;
  const references = await sources.references(sources.db, head);
  const targets = targetsOf(plan.options, references);
  const rates = await ratesOf(sources, state);
  const { vocabularies, select, hasAll } = sources;
  const given = { plan, state, references, targets, rates, vocabularies };
  const finding = { ...given, db, select, missing: sources.missing(db), hasAll, signal };
  const found = await findPrices(finding);
  const metadata = {
    market: plan.market.slug,
    revision: revisionText(head),
    asOf: head.committedAt,
    count: found.shown.length,
    nextCursor: found.nextCursor,
    warnings: found.warnings,
  };
  const context = { plan, revision, references, targets, series, pricesPerStatement, work };
  return { metadata, records: found.shown, context };
}

/** A format that writes an answer piece by piece. */
export interface Writer {
  /** The bytes before the first record, in slices. */
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** One record, in slices. */
  readonly record: (terms: Terms, contents: Contents) => Iterable<Buffer>;
  /** The bytes between two records. */
  readonly between: Buffer;
  /** The bytes after the last record. */
  readonly end: Buffer;
}

const WRITERS: Readonly<Record<Format, Writer>> = {
  json: jsonWriter,
  csv: csvWriter,
  ndjson: ndjsonWriter,
};

/** The bytes of an answer, in slices; a failure midway throws and leaves them incomplete. */
export async function* slicesOf(answer: Answer, format: Format): AsyncGenerator<Buffer> {
  const writer = WRITERS[format];
  const { context, records } = answer;
  yield* writer.head(answer);
  let written = 0;
  for await (const contents of contentsOfAll(context, records)) {
    if (written > 0) yield writer.between;
    yield* writer.record(context, contents);
    written += 1;
  }
  yield writer.end;
}
