/*
 * An answer is computed from a plan at one snapshot: its prices are selected, conversions chosen,
 * and warnings collected. Points are read while the bytes are written (`../write`).
 */

import type { Kysely } from 'kysely';
import { parameterPointer } from '../../contract/schemas/problem.ts';
import type { Reads } from '../../db/reads.ts';
import { type DataRevision, revisionText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { Problem } from '../../errors.ts';
import type { Days } from '../../std/days.ts';
import { mapped } from '../../std/turns.ts';
import type { DuePricesReader } from '../calendar/due-prices.ts';
import type { CodeMarketsReader } from '../market/code-markets.ts';
import type { RatesReader } from '../market/rates.ts';
import type { MarketReader } from '../market/reader.ts';
import type { ReferenceReader, References } from '../market/references.ts';
import type { SamplesReader } from '../market/samples.ts';
import type { SqlMarket } from '../market/sql-market.ts';
import { unmatchedIn } from '../market/unmatched.ts';
import type { VocabularyReader } from '../market/vocabulary.ts';
import { cursorText } from '../plan/cursor.ts';
import { canonicalText, type Plan } from '../plan/plan.ts';
import type { Snapshot, SnapshotReader } from '../snapshot.ts';
import {
  meanWarnings,
  outcomesOf,
  type PlannedPrice,
  ratesByPrice,
  sampleWarnings,
  type Targets,
  targetsOf,
  vatMeanWarnings,
  vatUnknownWarnings,
  vatWarnings,
  withoutRefused,
} from './conversions.ts';
import { withMissingRates } from './missing-rates.ts';
import { withMissingVatRates } from './missing-vat-rates.ts';
import { unmatchedWarnings, type Warning } from './warnings.ts';

/** The readers of the database that answers need, beside the reader of their market. */
export interface Readers {
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
  readonly codeMarkets: CodeMarketsReader;
  readonly duePrices: DuePricesReader;
  /** Opens a reader of a market for one request. */
  readonly market: SqlMarket;
  /** Most cells of a wide table. */
  readonly wideCellsMax: number;
  /** Rows of a sheet of a workbook, from which the next one begins. */
  readonly sheetRowsMax: number;
}

/** Plan, reference data and conversion targets of a response, at one revision. */
export interface RenderContext {
  readonly plan: Plan;
  readonly references: References;
  readonly targets: Targets;
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

/** The reader and limits of the records of a response. */
export interface RecordContext extends RenderContext {
  readonly reader: MarketReader;
  /** Most cells of a wide table. */
  readonly wideCellsMax: number;
  /** Rows of a sheet of a workbook, from which the next one begins. */
  readonly sheetRowsMax: number;
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

/**
 * Answers a plan from one snapshot: it reads all data at the revision of the snapshot, whatever is
 * committed meanwhile. The reader of the market is at the same revision. Warnings and errors cover
 * the whole request, so they are the same on every page. Omitted prices do not count towards a
 * page.
 * @throws Problem for an unknown currency or unit, for unmatched values of a strict plan, and for
 *   unconvertible prices with `onUnconvertible: error`; errors of the database
 */
export async function answerAt(
  readers: Readers,
  reader: MarketReader,
  plan: Plan,
  { data, rates: source }: Snapshot,
  work: RecordContext['work'],
): Promise<Answer> {
  const db = () => readers.reads.db(work.signal);
  const references = await reader.references();
  const targets = targetsOf(plan.options, references);
  const rates = source && (await readers.rates(readers.db, data.epoch, source));
  const prices = await reader.select(plan);
  const unmatched = unmatchedWarnings(
    plan,
    await unmatchedIn(db, reader.vocabulary, plan, data, prices),
  );
  checkStrict(plan, unmatched);
  const ratesOf = await ratesByPrice(rates, () => readers.samples(plan.market, data));
  const outcomes = await outcomesOf(plan, prices, targets, references, ratesOf);
  const inUse = { source: source?.slug ?? null, ratesOf, references, targets };
  const rated = await withMissingRates(reader, plan, outcomes, inUse);
  const taxed = await withMissingVatRates(reader, plan, rated.planned, references);
  const { kept, warnings: omitted } = withoutRefused(plan, taxed.planned);
  const warnings = [
    ...unmatched,
    ...rated.warnings,
    ...taxed.warnings,
    ...sampleWarnings(source, kept),
    ...omitted,
    ...meanWarnings(kept),
    ...vatMeanWarnings(kept, daysNeeded(plan)),
    ...(await vatWarnings(kept)),
    ...vatUnknownWarnings(plan, kept),
  ];
  const { page, nextCursor } = pageOf(plan, data, kept);
  const metadata = {
    market: plan.market.slug,
    revision: revisionText(data),
    asOf: data.committedAt,
    count: page.length,
    nextCursor,
    warnings: await withPointers(plan, warnings),
  };
  const { wideCellsMax, sheetRowsMax } = readers;
  const context = { plan, references, targets, reader, wideCellsMax, sheetRowsMax, work };
  return { metadata, records: page, context };
}

/** The days of the points that an answer needs: a summary needs earlier ones too. */
const daysNeeded = ({ days, options }: Plan): Days =>
  options.includeSummary ? { first: -Infinity, last: days.last } : days;

/** The page of a plan, in the order of codes, and the cursor of the next page. */
function pageOf(plan: Plan, data: DataRevision, kept: readonly PlannedPrice[]) {
  const { limit, after } = plan.page;
  // Codes are ASCII, so that their order is the same here as in the database.
  const rest = after === null ? kept : kept.filter(({ price }) => price.code > after.code);
  const page = limit === null ? rest : rest.slice(0, limit);
  const last = page.at(-1);
  if (last === undefined || page.length === rest.length) return { page, nextCursor: null };
  const position = { revision: revisionText(data), code: last.price.code };
  return { page, nextCursor: cursorText(canonicalText(plan), position) };
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
 * Rejects unmatched values if the plan is strict.
 * @throws Problem `validation_failed` with the pointers of the warnings
 */
function checkStrict({ options }: Plan, warnings: readonly Warning[]): void {
  const unmatched = warnings.filter(({ code }) => code === 'unmatched_value');
  if (!options.strict || unmatched.length === 0) return;
  const errors = unmatched.map(({ pointer, detail }) => ({
    pointer,
    code: 'unmatched_value' as const,
    detail,
  }));
  throw new Problem(
    'validation_failed',
    'With strict every value must match; errors names those that do not',
    { errors },
  );
}
