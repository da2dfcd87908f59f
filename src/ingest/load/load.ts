import { sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import { type Connection, openRevision, withSession } from '../../db/connection.ts';
import { instantOf } from '../../db/instant.ts';
import { textOf } from '../../db/revisions.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { writeCurrencies, writeSource } from '../descriptions/new-names.ts';
import { writePrices } from '../descriptions/prices.ts';
import { openFormat } from '../formats/formats.ts';
import { DATE_MIN, isDay } from '../parsing/dates.ts';
import type { FileFormat } from '../records/format.ts';
import { type LoadErrorCode, problemOf } from '../records/load-error.ts';
import { RejectsFile } from '../records/rejects-file.ts';
import { openSource, type SourceFile } from '../records/source-file.ts';
import { writeChanges, writeCoverage } from '../staging/change-set.ts';
import { DROP_STAGING_TABLES, stage } from '../staging/stage.ts';
import { resolveCreated } from '../staging/staged-series.ts';
import {
  type BatchEntry,
  type EarlierBatch,
  earlierBatch,
  inChangeTransaction,
  nextBatch,
  writeBatch,
} from './batches.ts';
import { changesAnything, classifyLoad, LoadRefused } from './classify.ts';
import {
  type Load,
  type LoadReport,
  type LoadRequest,
  NO_COUNTS,
  newLoad,
  type OpenedLoad,
} from './request.ts';

/** The part of a report that depends on the outcome. */
type LoadOutcome = Pick<LoadReport, 'status' | 'batch' | 'revision' | 'vintage' | 'counts'>;

/** The outcome of a finished load. */
const outcomeOf = (
  status: LoadReport['status'],
  { vintage, counts }: Load,
  batch: number | null = null,
  revision: string | null = null,
): LoadOutcome => ({ status, batch, revision, vintage, counts });

/** The vintage that the file states, otherwise that of the request; the two must not differ. */
function vintageOf({ request, format, problems, bounds, rows, ...load }: Load): string | null {
  const stated = load.vintage;
  const given = request.vintage ?? null;
  const vintage = stated ?? given;
  const fail = (message: string): null => {
    problems.refuse(problemOf('invalid_vintage', message, { value: given ?? stated }));
    return null;
  };
  if (given !== null && stated !== null && given !== stated) {
    return fail(`The file states the vintage ${stated}, but another vintage was given`);
  }
  if (vintage === null) {
    // A file without values has a problem of its own.
    const isMissed = format.needsVintage && rows > 0;
    return isMissed ? fail('The file does not state its vintage: give it with --vintage') : null;
  }
  if (isDay(vintage) && vintage >= DATE_MIN && vintage <= bounds.dateMax) return vintage;
  return fail(`The vintage is not a day from ${DATE_MIN} to ${bounds.dateMax}, written YYYY-MM-DD`);
}

/** Hashes a file and reports progress. @param rows read before */
const hashOf = (file: SourceFile, { onProgress, signal }: OpenedLoad['request'], rows: number) =>
  file.sha256(signal, (bytes) =>
    onProgress?.({ step: 'hashing', rows, bytes, bytesTotal: file.size }),
  );

/** Validates the file as a whole after reading, and reports problems. */
async function checkFile(load: Load): Promise<void> {
  const { file, problems, request, rowsRead } = load;
  const refuse = (code: LoadErrorCode, message: string) =>
    problems.refuse(problemOf(code, message, {}));
  const hash = await hashOf(file, request, rowsRead);
  if (!hash.equals(load.sha256)) {
    refuse('file_changed', 'The file was changed while it was read: load it again');
  }
  const isEmpty = rowsRead === 0 && load.descriptions.count === 0 && problems.total === 0;
  if (isEmpty && !load.withdraws) refuse('empty_file', 'The file holds no values');
}

/** The database lacks the currencies, units and frequencies that every load needs. */
export class NoReferenceError extends ExpectedError {
  override readonly name = 'NoReferenceError';
  override readonly exitCode = EXIT.usage;
}

/** @throws NoReferenceError for a database without reference data */
async function requireReference({ driver }: Connection): Promise<void> {
  const { rows } = await driver.query<{ has: boolean }>(
    'select exists (select from currency) and exists (select from unit_of_measure) as has',
  );
  if (rows[0]?.has) return;
  throw new NoReferenceError(
    `the database has no reference data; run: ${PROGRAM} db seed --reference`,
  );
}

/** The ledger row of a load. */
const entryOf = ({ request, format, file, ...load }: Load): BatchEntry => ({
  format: load.formatName,
  fileName: file.name,
  sha256: load.sha256,
  mappingSha256: format.mappingSha256 ?? null,
  vintage: load.vintage,
  actor: request.actor,
  reason: load.reason,
  startedAt: load.startedAt,
  counts: load.counts,
});

/** Records a refused load in the ledger, in a transaction of its own; a dry run is not recorded. */
async function refuse({ db }: Connection, load: Load): Promise<LoadOutcome> {
  load.counts = { ...NO_COUNTS, rows: load.rowsRead, rejected: load.problems.rejected };
  const record = () =>
    db.transaction().execute(async (trx) => {
      const id = await nextBatch(trx);
      await writeBatch(trx, id, 'refused', null, entryOf(load));
      return id;
    });
  const batch = load.request.dryRun || load.withdraws ? null : await record();
  return outcomeOf('refused', load, batch);
}

/** The outcome for a file that an earlier batch loaded. */
const alreadyLoaded = ({ id, vintage }: EarlierBatch): LoadOutcome => ({
  status: 'already-loaded',
  batch: id,
  revision: null,
  vintage,
  counts: NO_COUNTS,
});

/** Writes a classified load in one revision. @returns the revision number */
async function write(trx: Trx, load: Load, batch: number): Promise<string> {
  const { target, format, file, startedAt, counts, ranges } = load;
  const why = load.reason ?? `load ${load.formatName} ${file.name}`;
  const number = await openRevision(trx, why);
  await writeCurrencies(trx, load.currencies);
  if (format.source) await writeSource(trx, format.source);
  await writePrices(trx, load.prices, load.problems);
  await resolveCreated(trx, target);
  // A value without a publication time counts as published when it is loaded.
  const publishedAt = sql`coalesce(c.published_at, ${startedAt})`;
  const day = format.correctedAt === 'vintage' ? load.vintage : null;
  const correctedAt = sql`coalesce(${day}::date::timestamp at time zone 'UTC', ${publishedAt})`;
  const metadata = { batch: sql`${batch}`, publishedAt, correctedAt };
  await writeChanges(trx, [target], metadata, { withdrawn: 0, ...counts }, ranges.isInOrder);
  return number;
}

/** Classifies a staged load or withdrawal. @throws LoadRefused */
type Classifier = (trx: Trx, load: Load) => Promise<void>;

/** Reports that a step after reading begins. */
const reportStep = ({ request, rowsRead, file }: Load, step: 'comparing' | 'writing'): void =>
  request.onProgress?.({ step, rows: rowsRead, ...file.meter });

/**
 * Classifies and writes staged values in one transaction under the write lock, so that the
 * comparison still holds when the values are written. A dry run only classifies.
 * @throws LoadRefused after a rollback
 */
const apply = (connection: Connection, load: Load, classify: Classifier): Promise<LoadOutcome> =>
  inChangeTransaction(connection, load.request, async (trx) => {
    const { withdraws, vintage, request } = load;
    const earlier = withdraws || request.dryRun ? null : await earlierBatch(trx, load);
    if (earlier) return alreadyLoaded(earlier);
    await classify(trx, load);
    if (request.dryRun) return outcomeOf('previewed', load);
    reportStep(load, 'writing');
    const batch = await nextBatch(trx);
    const number = changesAnything(load) ? await write(trx, load, batch) : null;
    await writeBatch(trx, batch, 'applied', number, entryOf(load));
    if (vintage !== null && !withdraws) await writeCoverage(trx, batch, load.target);
    const revision = number === null ? null : await textOf(trx, number);
    // The last step that can fail before the commit: a committed load has its rejects file.
    await load.rejects?.place();
    return outcomeOf(number === null ? 'unchanged' : 'applied', load, batch, revision);
  });

/** Number of written rows after which table statistics are outdated. */
const MANY_ROWS = 10_000;

/**
 * Updates table statistics after a bulk load; autovacuum would take minutes. An account that does
 * not own the table only gets a warning from PostgreSQL.
 */
async function refreshStatistics({ driver }: Connection, { format, counts }: Load): Promise<void> {
  if (counts.inserted + counts.corrected < MANY_ROWS) return;
  await driver.query(format.source ? 'analyze fx_rate' : 'analyze series');
}

/** Stages, classifies and writes a file, or records its refusal. */
async function run(connection: Connection, load: Load, classify: Classifier): Promise<LoadOutcome> {
  const { signal, onProgress } = load.request;
  try {
    const isWhole = await stage(connection.driver, load, signal, (progress) =>
      onProgress?.({ step: 'reading', ...progress }),
    );
    load.vintage = isWhole ? vintageOf(load) : null;
    if (!isWhole) throw new LoadRefused();
    await checkFile(load);
    reportStep(load, 'comparing');
    return await apply(connection, load, classify);
  } catch (error) {
    if (!(error instanceof LoadRefused)) throw error;
    return refuse(connection, load);
  }
}

/** Runs a load or withdrawal whose file is open. */
export async function runLoad(
  connection: Connection,
  load: Load,
  classify: Classifier,
): Promise<LoadOutcome> {
  const done = await run(connection, load, classify);
  // The load is committed, so a later error must not fail it.
  if (done.status === 'applied') await refreshStatistics(connection, load).catch(() => {});
  await connection.driver.query(DROP_STAGING_TABLES).catch(() => {});
  return done;
}

/**
 * Hashes the file and takes the start time from the database server, so that all loads share one
 * clock.
 */
export async function openLoad(
  connection: Connection,
  file: SourceFile,
  request: OpenedLoad['request'],
  formatName: OpenedLoad['formatName'],
  format: FileFormat,
): Promise<OpenedLoad> {
  const { rows } = await connection.driver.query<{ now: string; tomorrow: string }>(`
    select clock_timestamp() as now, (clock_timestamp() at time zone 'UTC')::date + 1 as tomorrow`);
  const { now = '', tomorrow = '' } = rows[0] ?? {};
  const sha256 = await hashOf(file, request, 0);
  const bounds = { dateMax: tomorrow, now: instantOf(now) };
  return { request, formatName, format, file, sha256, startedAt: now, bounds };
}

/** Loads on one connection, unless the same file was loaded before. */
async function loadOn(
  connection: Connection,
  file: SourceFile,
  request: LoadRequest,
): Promise<LoadReport> {
  await requireReference(connection);
  const format = request.reader ?? (await openFormat(request.format));
  const opened = await openLoad(connection, file, request, request.format, format);
  const earlier = await earlierBatch(connection.db, opened);
  if (earlier) {
    const nothing = { errors: [], errorsTotal: 0, preview: null, rejects: null };
    return { ...alreadyLoaded(earlier), ...nothing };
  }
  const { file: path, overwrite } = request.rejects ?? { file: null, overwrite: false };
  const rejects = path === null ? null : await RejectsFile.begin(path, file, overwrite);
  let failed = true;
  try {
    const load = newLoad(opened, rejects);
    const { status, ...done } = await runLoad(connection, load, classifyLoad);
    failed = false;
    return {
      status,
      ...done,
      errors: load.problems.inOrder().map((problem) => ({ file: file.path, ...problem })),
      errorsTotal: load.problems.total,
      preview: load.preview,
      rejects: status === 'refused' || !rejects?.isPlaced ? null : rejects.path,
    };
  } finally {
    await rejects?.end({ failed });
  }
}

/**
 * Loads a file completely, in one transaction and one revision, or not at all. Readers see the data
 * before or after the load. Every load is recorded in `load_batch`, including refused ones, except
 * dry runs and loads that fail with an error.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing has
 *   changed then
 */
export async function load(client: Client, request: LoadRequest): Promise<LoadReport> {
  const { signal } = request;
  signal?.throwIfAborted();
  const file = await openSource(request.file);
  try {
    return await withSession(client, signal, (connection) => loadOn(connection, file, request));
  } finally {
    await file.close();
  }
}
