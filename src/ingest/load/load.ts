import { sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import { type Connection, openRevision, withSession } from '../../db/connection.ts';
import { instantOf } from '../../db/instant.ts';
import { textOf } from '../../db/revisions.ts';
import { writeCurrencies, writeSource } from '../descriptions/new-names.ts';
import { writePrices } from '../descriptions/prices.ts';
import type { Trx } from '../descriptions/reference.ts';
import { openFormat } from '../formats/formats.ts';
import { DATE_MIN, isDay } from '../parsing/dates.ts';
import type { FileFormat } from '../records/format.ts';
import { type LoadErrorCode, problemOf } from '../records/load-error.ts';
import { RejectsFile } from '../records/rejects-file.ts';
import { openSource, type SourceFile } from '../records/source-file.ts';
import { writeChanges, writeCoverage } from '../staging/change-set.ts';
import { resolveCreated } from '../staging/series.ts';
import { stage, UNSTAGE } from '../staging/stage.ts';
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

/** Result of a load but for what its report has in any case. */
type LoadOutcome = Pick<LoadReport, 'status' | 'batch' | 'revision' | 'vintage' | 'counts'>;

/** What is reported of a load that has ended. */
const outcomeOf = (
  status: LoadReport['status'],
  { vintage, counts }: Load,
  batch: number | null = null,
  revision: string | null = null,
): LoadOutcome => ({ status, batch, revision, vintage, counts });

/** The edition: what the file states, else what the caller says; the two never contradict. */
function vintageOf({ request, format, problems, bounds, rows, ...load }: Load): string | null {
  const stated = load.vintage;
  const given = request.vintage ?? null;
  const vintage = stated ?? given;
  const fail = (message: string): null => {
    problems.refuse(problemOf('invalid_vintage', message, { value: given ?? stated }));
    return null;
  };
  if (given !== null && stated !== null && given !== stated) {
    return fail(`The file is the edition of ${stated}, and another vintage was given`);
  }
  if (vintage === null) {
    // Without a single value there is another problem, of which this would be an echo.
    const isMissed = format.needsVintage && rows > 0;
    return isMissed ? fail('The file does not state its edition: give its vintage') : null;
  }
  if (isDay(vintage) && vintage >= DATE_MIN && vintage <= bounds.dateMax) return vintage;
  return fail(`The vintage is not a day from ${DATE_MIN} to ${bounds.dateMax}, written YYYY-MM-DD`);
}

/** SHA-256 of a file, told as progress. @param rows that were read of it before */
const hashOf = (file: SourceFile, { onProgress, signal }: OpenedLoad['request'], rows: number) =>
  file.sha256(signal, (bytes) =>
    onProgress?.({ step: 'hashing', rows, bytes, bytesTotal: file.size }),
  );

/** Looks at the file as a whole, once it has been read; notes problems. */
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

/** A database that was never given the currencies, units and frequencies that every load needs. */
export class NoReferenceError extends Error {
  override readonly name = 'NoReferenceError';
  readonly exitCode = 2;
}

/** @throws NoReferenceError for a database without reference data */
async function requireReference({ driver }: Connection): Promise<void> {
  const { rows } = await driver.query<{ has: boolean }>(
    'select exists (select from currency) and exists (select from unit_of_measure) as has',
  );
  if (rows[0]?.has) return;
  throw new NoReferenceError(
    'the database has no reference data; run: npm run --silent prices -- db seed --reference',
  );
}

/** The line of the ledger about a load. */
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

/**
 * Writes the refusal of a load into the ledger, in a transaction of its own; a dry run leaves no
 * line.
 */
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

/** A file that an earlier batch loaded changes nothing. */
const alreadyLoaded = ({ id, vintage }: EarlierBatch): LoadOutcome => ({
  status: 'already-loaded',
  batch: id,
  revision: null,
  vintage,
  counts: NO_COUNTS,
});

/** Writes what is planned in one revision, which it returns as text. */
async function write(trx: Trx, load: Load, batch: number): Promise<string> {
  const { target, format, file, startedAt, counts, ranges } = load;
  const why = load.reason ?? `load ${load.formatName} ${file.name}`;
  const number = await openRevision(trx, why);
  await writeCurrencies(trx, load.currencies);
  if (format.source) await writeSource(trx, format.source);
  await writePrices(trx, load.prices, load.problems);
  await resolveCreated(trx, target);
  // A value that was published without a time is published when it is loaded.
  const publishedAt = sql`coalesce(c.published_at, ${startedAt})`;
  const day = format.correctedAt === 'vintage' ? load.vintage : null;
  const correctedAt = sql`coalesce(${day}::date::timestamp at time zone 'UTC', ${publishedAt})`;
  const stamp = { batch: sql`${batch}`, publishedAt, correctedAt };
  await writeChanges(trx, [target], stamp, { withdrawn: 0, ...counts }, ranges.isInOrder);
  return number;
}

/** Finds out what a staged load does. @throws LoadRefused */
type Classifier = (trx: Trx, load: Load) => Promise<void>;

/** Tells that a step of a load that was read has begun. */
const reportStep = ({ request, rowsRead, file }: Load, step: 'comparing' | 'writing'): void =>
  request.onProgress?.({ step, rows: rowsRead, ...file.meter });

/**
 * Brings staged values into the database: one transaction, under the one lock of all writers, so
 * that what was compared is still so when it is written. A dry run finds out what it would bring.
 * @throws LoadRefused after a rollback
 */
const apply = ({ db }: Connection, load: Load, plan: Classifier): Promise<LoadOutcome> =>
  inChangeTransaction(db, load.request, async (trx) => {
    const { withdraws, vintage, request } = load;
    const earlier = withdraws || request.dryRun ? null : await earlierBatch(trx, load);
    if (earlier) return alreadyLoaded(earlier);
    await plan(trx, load);
    if (request.dryRun) return outcomeOf('previewed', load);
    await sql`set local synchronous_commit = on`.execute(trx);
    reportStep(load, 'writing');
    const batch = await nextBatch(trx);
    const number = changesAnything(load) ? await write(trx, load, batch) : null;
    await writeBatch(trx, batch, 'applied', number, entryOf(load));
    if (vintage !== null && !withdraws) await writeCoverage(trx, batch, load.target);
    const revision = number === null ? null : await textOf(trx, number);
    // The last thing that can fail: what is committed has its rejected rows beside it.
    await load.rejects?.place();
    return outcomeOf(number === null ? 'unchanged' : 'applied', load, batch, revision);
  });

/** Rows from which on the planner's picture of a table is out of date. */
const MANY_ROWS = 10_000;

/**
 * Tells the planner of a bulk load, which it would else learn from autovacuum minutes later. An
 * account that does not own the table gets a warning from PostgreSQL, and nothing fails.
 */
async function refreshStatistics({ driver }: Connection, { format, counts }: Load): Promise<void> {
  if (counts.inserted + counts.corrected < MANY_ROWS) return;
  await driver.query(format.source ? 'analyze fx_rate' : 'analyze series');
}

/** Reads a file, compares it with the database and writes it, or finds out that it may not be. */
async function run(connection: Connection, load: Load, plan: Classifier): Promise<LoadOutcome> {
  const { signal, onProgress } = load.request;
  try {
    const isWhole = await stage(connection.driver, load, signal, (progress) =>
      onProgress?.({ step: 'reading', ...progress }),
    );
    load.vintage = isWhole ? vintageOf(load) : null;
    if (!isWhole) throw new LoadRefused();
    await checkFile(load);
    reportStep(load, 'comparing');
    return await apply(connection, load, plan);
  } catch (error) {
    if (!(error instanceof LoadRefused)) throw error;
    return refuse(connection, load);
  }
}

/** Does a load or a withdrawal whose file is open. */
export async function runLoad(
  connection: Connection,
  load: Load,
  plan: Classifier,
): Promise<LoadOutcome> {
  const done = await run(connection, load, plan);
  // What is committed was done: a load does not fail because of what comes after it.
  if (done.status === 'applied') await refreshStatistics(connection, load).catch(() => {});
  await connection.driver.query(UNSTAGE).catch(() => {});
  return done;
}

/** Notes the file and the time of a load that begins: the server's, so all loads have one clock. */
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

/** Loads on one connection, unless the very file was loaded before. */
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
 * Loads a file: all of it, in one transaction and one revision, or nothing. Readers see the data
 * as before or as after. Every load but one that fails, and a dry run, is written into
 * `load_batch`, a refused one as such.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing
 * has changed then
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
