import type { Kysely } from 'kysely';
import type { Format } from '../contract/schemas/formats.ts';
import { parameterPointer } from '../contract/schemas/problem.ts';
import type { RatesReader } from '../conversion/rates.ts';
import type { Reads } from '../db/reads.ts';
import { type Head, revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { textCell } from '../std/csv.ts';
import { mapped } from '../std/turns.ts';
import { type MissingReader, withMissingRates } from './conversion/missing-rates.ts';
import {
  outcomesOf,
  type PlannedPrice,
  ratesByPrice,
  sampleWarnings,
  targetsOf,
  vatWarnings,
  withoutRefused,
} from './conversion/outcomes.ts';
import { cursorText } from './plan/cursor.ts';
import { canonicalText, type Plan } from './plan/plan.ts';
import type { LazyDatabase } from './select/query.ts';
import type { ReferenceReader } from './select/references.ts';
import type { SamplesReader } from './select/samples.ts';
import type { Selector } from './select/select.ts';
import type { VocabularyReader } from './select/vocabulary.ts';
import { checkStrict, unmatchedWarnings, type Warning } from './select/warnings.ts';
import type { SeriesSource } from './series/columns.ts';
import type { Snapshot, SnapshotReader } from './snapshot.ts';
import { type Answer, contentsOfAll, type RecordContext, type Writer } from './write/contents.ts';
import { csvWriter } from './write/csv.ts';
import { jsonWriter, ndjsonWriter } from './write/json.ts';
import { columnsOf, headerRow, recordRows } from './write/rows.ts';
import { checkTable, type TableSlices } from './write/table.ts';
import { checkWide, wideSlices } from './write/wide.ts';

/** The readers of an answer: prices, reference data, rates and series. */
export interface Sources {
  /** Reads data that requests share. An aborted request does not cancel it for the others. */
  readonly db: Kysely<Database>;
  /** Reads for one request. */
  readonly reads: Reads;
  readonly references: ReferenceReader;
  readonly rates: RatesReader;
  /** The configured source of exchange rates. */
  readonly rateSource: string;
  readonly snapshot: SnapshotReader;
  readonly vocabularies: VocabularyReader;
  readonly samples: SamplesReader;
  readonly select: Selector;
  readonly series: SeriesSource;
  /** Finds requested points without a rate, for one request. */
  readonly missing: (db: LazyDatabase) => MissingReader;
  /** Most prices whose series one statement reads. */
  readonly pricesPerStatement: number;
  /** Most cells of a wide table. */
  readonly wideCellsMax: number;
}

/** The page of a plan, in the order of codes, and the cursor of the next page. */
function pageOf(plan: Plan, head: Head, kept: readonly PlannedPrice[]) {
  const { limit, after } = plan.page;
  // Codes are ASCII, so that their order is the same here as in the database.
  const rest = after === null ? kept : kept.filter(({ price }) => price.code > after.code);
  const shown = limit === null ? rest : rest.slice(0, limit);
  const last = shown.at(-1);
  if (last === undefined || shown.length === rest.length) return { shown, nextCursor: null };
  const position = { revision: revisionText(head), code: last.price.code };
  return { shown, nextCursor: cursorText(canonicalText(plan), position) };
}

/** Warnings whose pointers name query parameters, if the filters are in the query. */
async function withPointers(
  { by }: Plan,
  warnings: readonly Warning[],
): Promise<readonly Warning[]> {
  if (by === 'body' || warnings.length === 0) return warnings;
  return mapped(warnings, (each) => ({ ...each, pointer: parameterPointer(each.pointer) }));
}

/**
 * Answers a plan from one snapshot: it reads all data at the revision of the snapshot, whatever is
 * committed meanwhile. Warnings and errors cover the whole request, so they are the same on every
 * page. Omitted prices do not count towards a page.
 * @throws Problem for an unknown currency or unit, for unmatched values of a strict plan, and for
 *   unconvertible prices with `onUnconvertible: error`; errors of the database
 */
export async function answerAt(
  sources: Sources,
  plan: Plan,
  { head, rates: source }: Snapshot,
  work: RecordContext['work'],
): Promise<Answer> {
  const { series, pricesPerStatement, wideCellsMax } = sources;
  const signal = () => work.signal;
  const db = () => sources.reads.db(signal());
  const { revision } = head;
  const references = await sources.references(sources.db, head);
  const targets = targetsOf(plan.options, references);
  const rates = source && (await sources.rates(sources.db, head.epoch, source));
  const selected = await sources.select(db, plan, head, signal);
  const unmatched = unmatchedWarnings(plan, selected.unmatched);
  checkStrict(plan, unmatched);
  const ratesOf = await ratesByPrice(rates, () => sources.samples(plan.market, head));
  const outcomes = await outcomesOf(plan, selected.prices, targets, references, ratesOf);
  const inUse = { source: source?.slug ?? null, ratesOf, references, targets };
  const rated = await withMissingRates(sources.missing(db), plan, outcomes, revision, inUse);
  const { kept, warnings: omitted } = withoutRefused(plan, rated.planned);
  const warnings = [
    ...unmatched,
    ...rated.warnings,
    ...sampleWarnings(source, kept),
    ...omitted,
    ...(await vatWarnings(kept)),
  ];
  const { shown, nextCursor } = pageOf(plan, head, kept);
  const metadata = {
    market: plan.market.slug,
    revision: revisionText(head),
    asOf: head.committedAt,
    count: shown.length,
    nextCursor,
    warnings: await withPointers(plan, warnings),
  };
  const context = {
    plan,
    revision,
    references,
    targets,
    series,
    pricesPerStatement,
    wideCellsMax,
    work,
  };
  return { metadata, records: shown, context };
}

const NOTHING = Buffer.alloc(0);

/** CSV with a choice of columns. The full table has a faster writer, which joins shared cells. */
const columnsWriter: Writer = {
  head: ({ context }) => [headerRow(columnsOf(context.plan))],
  record: (context, contents) => recordRows(context, contents, false),
  between: NOTHING,
  end: NOTHING,
};

/** A flat JSON array with an object for each row. */
const rowsWriter: Writer = {
  head: () => [Buffer.from('[')],
  record: (context, contents) => recordRows(context, contents, true),
  between: Buffer.from(','),
  end: Buffer.from(']'),
};

const hasAllColumns = ({ options }: Plan): boolean =>
  options.columns === null || options.columns === 'all';

/** The formats of typed columns. */
type TableFormat = 'parquet' | 'arrow';

/** Loads a table writer lazily, because only its own format needs its libraries. */
async function tableWriter(format: TableFormat): Promise<TableSlices> {
  if (format === 'arrow') {
    const { arrowSlices } = await import('./write/arrow.ts');
    return arrowSlices;
  }
  const { parquetSlices } = await import('./write/parquet.ts');
  return parquetSlices;
}

const WRITERS: Readonly<Record<Exclude<Format, TableFormat>, (plan: Plan) => Writer>> = {
  json: () => jsonWriter,
  csv: (plan) => (hasAllColumns(plan) ? csvWriter : columnsWriter),
  ndjson: () => ndjsonWriter,
  rows: () => rowsWriter,
};

/** Warnings in one slice: there may be one for each record. */
const WARNINGS_PER_SLICE = 200;

function* warningSlices(
  warnings: readonly Warning[],
  line: (warning: Warning) => string,
): Generator<Buffer> {
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = warnings.slice(at, at + WARNINGS_PER_SLICE);
    yield Buffer.from(some.map(line).join(''));
  }
}

/**
 * Warnings as the last rows of a CSV, each in the first cell after `# warning`. No code begins with
 * that text.
 */
const warningRows = (warnings: readonly Warning[], columns: number): Iterable<Buffer> =>
  warningSlices(warnings, ({ code, pointer, detail }) => {
    const cell = textCell(`# warning ${code} ${pointer}: ${detail}`);
    return `${cell}${','.repeat(columns - 1)}\r\n`;
  });

/** Warnings as the last lines of NDJSON: objects with one member, `warning`. */
const warningLines = (warnings: readonly Warning[]): Iterable<Buffer> =>
  warningSlices(warnings, (warning) => `${JSON.stringify({ warning })}\n`);

/** The warnings after the last record, if the request wants them as rows. */
function lastRows(
  { metadata, context }: Answer,
  format: Format,
  columns: number,
): Iterable<Buffer> {
  if (context.plan.options.warnings !== 'row') return [];
  if (format === 'ndjson') return warningLines(metadata.warnings);
  return warningRows(metadata.warnings, columns);
}

/** Warnings that the metadata of a file lists. */
const FILE_WARNINGS = 100;

/** The metadata of a file: that of the response, and the requested conversion. */
function aboutFile({ metadata, context }: Answer): Record<string, unknown> {
  const { currency, unitOfMeasure, decimals, aggregate } = context.plan.options;
  const { warnings, ...about } = metadata;
  return {
    revision: metadata.revision,
    metadata: {
      ...about,
      warnings: warnings.slice(0, FILE_WARNINGS),
      warningsCount: warnings.length,
    },
    conversion: { currency, unitOfMeasure, decimals, aggregate },
  };
}

/**
 * Checks that a format can hold an answer, without writing it.
 * @throws Problem `validation_failed`, as `slicesOf` does before the first slice
 */
export async function checkAnswer({ context, records }: Answer, format: Format): Promise<void> {
  const contents = () => contentsOfAll(context, records);
  if (context.plan.options.layout === 'wide') await checkWide(contents(), context.wideCellsMax);
  else if (format === 'parquet' || format === 'arrow') await checkTable(context, contents());
}

/** The bytes of an answer, in slices. An error midway is thrown, after incomplete bytes. */
export async function* slicesOf(answer: Answer, format: Format): AsyncGenerator<Buffer> {
  const { context, records } = answer;
  const { plan } = context;
  if (plan.options.layout === 'wide') {
    const contents = contentsOfAll(context, records);
    const isJson = format === 'rows';
    yield* wideSlices(context, contents, isJson, (columns) => lastRows(answer, format, columns));
    return;
  }
  if (format === 'parquet' || format === 'arrow') {
    await checkTable(context, contentsOfAll(context, records));
    const tableSlices = await tableWriter(format);
    yield* tableSlices(context, contentsOfAll(context, records), aboutFile(answer));
    return;
  }
  const writer = WRITERS[format](plan);
  yield* writer.head(answer);
  let written = 0;
  for await (const contents of contentsOfAll(context, records)) {
    if (written > 0) yield writer.between;
    yield* writer.record(context, contents);
    written += 1;
  }
  yield* lastRows(answer, format, columnsOf(plan).length);
  yield writer.end;
}
