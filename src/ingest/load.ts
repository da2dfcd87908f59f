import type { Client } from '../db/client.ts';
import { type Connection, withSession } from '../db/connection.ts';
import { instantOf } from '../db/instant.ts';
import { alreadyLoaded, apply, NO_COUNTS, rehearse } from './apply.ts';
import { openSource, type SourceFile } from './file.ts';
import type { Format } from './formats/format.ts';
import { FORMATS } from './formats/formats.ts';
import {
  type BatchEntry,
  type EarlierBatch,
  earlierBatch,
  type LoadCounts,
  nextBatch,
  writeBatch,
} from './ledger.ts';
import { DATE_MIN, isDay } from './parsing/dates.ts';
import { type ApplyInput, Refused } from './plan.ts';
import type { LoadPreview } from './preview.ts';
import { type LoadErrorCode, Problems, problemOf } from './rejects/problems.ts';
import { RejectsFile } from './rejects/rejects-file.ts';
import type { LoadReport, LoadRequest } from './request.ts';
import { type Staged, stage } from './staging/stage.ts';
import { UNSTAGE } from './staging/stage-tables.ts';

/** One load, while it is done. */
interface Job {
  readonly request: LoadRequest;
  readonly format: Format;
  readonly file: SourceFile;
  readonly problems: Problems;
  readonly rejects: RejectsFile | null;
  readonly entry: Omit<BatchEntry, 'counts' | 'vintage'>;
  /** Tomorrow, in UTC. */
  readonly dateMax: string;
  /** Start of the load, RFC 3339 in UTC. */
  readonly now: string;
}

/** The edition: what the file states, else what the caller says; the two never contradict. */
function vintageOf(read: Staged, { request, format, problems, dateMax }: Job): string | null {
  const stated = read.vintage;
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
    const isMissed = format.needsVintage && read.rows > 0;
    return isMissed ? fail('The file does not state its edition: give its vintage') : null;
  }
  if (isDay(vintage) && vintage >= DATE_MIN && vintage <= dateMax) return vintage;
  return fail(`The vintage is not a day from ${DATE_MIN} to ${dateMax}, written YYYY-MM-DD`);
}

/** SHA-256 of a file, told as progress. @param rows that were read of it before */
const hashOf = (file: SourceFile, { onProgress, signal }: LoadRequest, rows: number) =>
  file.sha256(signal, (bytes) =>
    onProgress?.({ step: 'hashing', rows, bytes, bytesTotal: file.size }),
  );

/** Looks at the file as a whole, once it has been read; notes problems. */
async function checkFile({ file, problems, entry, request }: Job, read: Staged): Promise<void> {
  const refuse = (code: LoadErrorCode, message: string) =>
    problems.refuse(problemOf(code, message, {}));
  const hash = await hashOf(file, request, read.rowsRead);
  if (!hash.equals(entry.sha256)) {
    refuse('file_changed', 'The file was changed while it was read: load it again');
  }
  if (read.rowsRead === 0 && read.descriptions.count === 0 && problems.total === 0) {
    refuse('empty_file', 'The file holds no values');
  }
}

/** The time of the server, so that all loads are measured by one clock. */
async function timeOf({ driver }: Connection): Promise<{ now: string; tomorrow: string }> {
  const { rows } = await driver.query<{ now: string; tomorrow: string }>(`
    select clock_timestamp() as now, (clock_timestamp() at time zone 'UTC')::date + 1 as tomorrow`);
  const [time] = rows;
  if (!time) throw new Error('the database told no time');
  return time;
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

/** The problems of a job, as its report has them. */
const errorsOf = ({ problems, file }: Job): Pick<LoadReport, 'errors' | 'errorsTotal'> => ({
  errors: problems.inOrder().map((problem) => ({ file: file.path, ...problem })),
  errorsTotal: problems.total,
});

/** Writes a refusal into the ledger, in a transaction of its own; a dry run leaves no line. */
async function refuse(
  { db }: Connection,
  job: Job,
  { rowsRead }: Staged,
  vintage: string | null,
): Promise<Omit<LoadReport, 'preview' | 'rejects'>> {
  const { problems, entry, request } = job;
  const counts = { ...NO_COUNTS, rows: rowsRead, rejected: problems.rejected };
  const record = () =>
    db.transaction().execute(async (trx) => {
      const id = await nextBatch(trx);
      await writeBatch(trx, id, 'refused', null, { ...entry, vintage, counts });
      return id;
    });
  const batch = request.dryRun ? null : await record();
  return { status: 'refused', batch, revision: null, vintage, counts, ...errorsOf(job) };
}

/** Rows from which on the planner's picture of a table is out of date. */
const MANY_ROWS = 10_000;

/**
 * Tells the planner of a bulk load, which it would else learn from autovacuum minutes later. An
 * account that does not own the table gets a warning from PostgreSQL, and nothing fails.
 */
async function refreshPlans({ driver }: Connection, { format }: Job, counts: LoadCounts) {
  if (counts.inserted + counts.corrected < MANY_ROWS) return;
  await driver.query(format.source ? 'analyze fx_rate' : 'analyze series');
}

/** What the apply step is given, and told while it works. */
function inputOf(
  { request, format, problems, entry, file }: Job,
  staged: Staged,
  vintage: string | null,
  onPreview: (preview: LoadPreview) => void,
): ApplyInput {
  const progress = { rows: staged.rowsRead, ...file.meter };
  const permissions = {
    corrections: request.allowCorrections === true && Boolean(request.reason?.trim()),
    jumps: request.acceptJumps === true,
    jumpFactor: request.jumpFactor,
  };
  request.onProgress?.({ step: 'comparing', ...progress });
  return {
    format,
    staged,
    entry: { ...entry, vintage },
    permissions,
    problems,
    async onPreview(preview) {
      onPreview(preview);
      await request.onPreview?.(preview);
      if (!problems.refuses && !request.dryRun)
        request.onProgress?.({ step: 'writing', ...progress });
    },
  };
}

async function loadFile(connection: Connection, job: Job): Promise<LoadReport> {
  const { request, format, file, problems, rejects, dateMax, now } = job;
  const { jumpFactor, signal } = request;
  const staged = await stage(connection.driver, format.read({ file, problems }), {
    bounds: { dateMax, now },
    problems,
    jumpFactor,
    hasPlaces: format.mappingSha256 !== undefined,
    onProgress: (rows) => request.onProgress?.({ step: 'reading', rows, ...file.meter }),
    signal,
  });
  const vintage = staged.isWhole ? vintageOf(staged, job) : null;
  if (staged.isWhole) await checkFile(job, staged);
  let preview: LoadPreview | null = null;
  let report: Omit<LoadReport, 'preview' | 'rejects'>;
  try {
    if (!staged.isWhole) throw new Refused();
    const input = inputOf(job, staged, vintage, (found) => {
      preview = found;
    });
    const { db } = connection;
    const done = request.dryRun
      ? await rehearse(db, input)
      : await apply(db, input, async () => rejects?.place(), request.onHeld);
    report = { ...done, ...errorsOf(job) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report = await refuse(connection, job, staged, vintage);
  }
  // What is committed was done: a load does not fail because of what comes after it.
  if (report.status === 'applied') {
    await refreshPlans(connection, job, report.counts).catch(() => {});
  }
  await connection.driver.query(UNSTAGE).catch(() => {});
  const rejected = report.status === 'refused' || !rejects?.isPlaced ? null : rejects.path;
  return { ...report, preview, rejects: rejected };
}

/** A report of a load for which there was nothing to do. */
const doneBefore = (earlier: EarlierBatch): LoadReport => ({
  ...alreadyLoaded(earlier),
  errors: [],
  errorsTotal: 0,
  preview: null,
  rejects: null,
});

/** Loads on one connection, unless the very file was loaded before. */
async function loadOn(
  connection: Connection,
  file: SourceFile,
  request: LoadRequest,
): Promise<LoadReport> {
  await requireReference(connection);
  const { now, tomorrow } = await timeOf(connection);
  const format: Format = request.reader ?? FORMATS[request.format];
  const entry = {
    format: request.format,
    fileName: file.name,
    sha256: await hashOf(file, request, 0),
    mappingSha256: format.mappingSha256 ?? null,
    actor: request.actor,
    reason: request.reason?.trim() || null,
    startedAt: now,
  };
  const earlier = await earlierBatch(connection.db, entry);
  if (earlier) return doneBefore(earlier);
  const { file: path, overwrite } = request.rejects ?? { file: null, overwrite: false };
  const rejects = path === null ? null : await RejectsFile.begin(path, file.path, overwrite);
  let failed = true;
  try {
    const problems = new Problems(rejects);
    const bounds = { dateMax: tomorrow, now: instantOf(now) };
    const job = { request, format, file, problems, rejects, entry, ...bounds };
    const report = await loadFile(connection, job);
    failed = false;
    return report;
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
