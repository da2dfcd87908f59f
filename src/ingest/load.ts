import type { Client } from '../db/client.ts';
import { type Connection, withConnection } from '../db/connection.ts';
import { instantOf } from '../db/instant.ts';
import { type Applied, alreadyLoaded, apply, NO_COUNTS } from './apply.ts';
import { DATE_MIN, isDay } from './dates.ts';
import { openSource, type SourceFile } from './file.ts';
import type { Format } from './format.ts';
import { FORMATS } from './formats.ts';
import { type BatchEntry, earlierBatch, type LoadCounts, nextBatch, writeBatch } from './ledger.ts';
import { Refused } from './plan.ts';
import { Problems } from './problems.ts';
import type { LoadReport, LoadRequest } from './request.ts';
import { type Staged, stage, UNSTAGE } from './stage.ts';

interface Job {
  readonly request: LoadRequest;
  readonly format: Format;
  readonly file: SourceFile;
  readonly problems: Problems;
  readonly entry: Omit<BatchEntry, 'counts' | 'vintage'>;
  /** Tomorrow, in UTC. */
  readonly dateMax: string;
  /** When the load began, RFC 3339 in UTC. */
  readonly now: string;
}

/** The time of the server, so that all loads are measured by one clock, and who serves us. */
async function greet({
  driver,
}: Connection): Promise<{ now: string; tomorrow: string; pid: number }> {
  const { rows } = await driver.query<{ now: string; tomorrow: string; pid: number }>(`
    select clock_timestamp() as now, (clock_timestamp() at time zone 'UTC')::date + 1 as tomorrow,
      pg_backend_pid() as pid`);
  const [greeting] = rows;
  if (!greeting) throw new Error('the database told no time');
  return greeting;
}

/** The edition: what the file states, else what the caller says; the two never contradict. */
function vintageOf(read: Staged, { request, format, problems, dateMax }: Job): string | null {
  const stated = read.vintage;
  const given = request.vintage ?? null;
  const vintage = stated ?? given;
  const fail = (message: string): null => {
    problems.add('invalid_vintage', message, { value: given ?? stated });
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

/** Looks at the file as a whole, once it has been read; notes problems. */
async function checkFile({ file, problems, entry, request }: Job, read: Staged): Promise<void> {
  const hash = await file.sha256(request.signal);
  if (!hash.equals(entry.sha256)) {
    problems.add('file_changed', 'The file was changed while it was read: load it again');
  }
  if (read.rowsRead === 0 && read.descriptions.isEmpty && problems.total === 0) {
    problems.add('empty_file', 'The file holds no values');
  }
}

const reportOf = (applied: Applied): LoadReport => ({ ...applied, errors: [], errorsTotal: 0 });

/** Writes a refusal into the ledger, in a transaction of its own. */
async function refuse(
  { db }: Connection,
  { problems, entry, file }: Job,
  { rowsRead }: Staged,
  vintage: string | null,
): Promise<LoadReport> {
  const rejected = Math.min(problems.rejected, rowsRead);
  const counts = { ...NO_COUNTS, rows: rowsRead, rejected };
  const batch = await db.transaction().execute(async (trx) => {
    const id = await nextBatch(trx);
    await writeBatch(trx, id, 'refused', null, { ...entry, vintage, counts });
    return id;
  });
  const errors = problems.inOrder().map((problem) => ({ file: file.path, ...problem }));
  const errorsTotal = problems.total;
  return { status: 'refused', batch, revision: null, vintage, counts, errors, errorsTotal };
}

/** Rows from which on the planner's picture of a table is out of date. */
const MANY_ROWS = 10_000;

/**
 * Tells the planner of a bulk load, which it would else learn from autovacuum minutes later. An
 * account that does not own the table gets a warning from PostgreSQL, and nothing fails.
 */
async function refreshPlans({ driver }: Connection, format: Format, counts: LoadCounts) {
  if (counts.inserted + counts.corrected < MANY_ROWS) return;
  await driver.query(format.source ? 'analyze fx_rate' : 'analyze series');
}

async function loadFile(connection: Connection, job: Job): Promise<LoadReport> {
  const { request, format, file, problems, dateMax, now } = job;
  const staged = await stage(connection.driver, format.read({ file, problems }), {
    bounds: { dateMax, now },
    problems,
    onProgress: (rows) => request.onProgress?.({ rows, ...file.meter }),
    signal: request.signal,
  });
  const vintage = staged.isWhole ? vintageOf(staged, job) : null;
  if (staged.isWhole) await checkFile(job, staged);
  let report: LoadReport;
  try {
    if (!staged.isWhole) throw new Refused();
    const entry = { ...job.entry, vintage };
    const isPermitted = request.allowCorrections === true && Boolean(request.reason?.trim());
    report = reportOf(await apply(connection.db, { format, staged, entry, isPermitted, problems }));
    await refreshPlans(connection, format, report.counts);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    report = await refuse(connection, job, staged, vintage);
  }
  // After an error the connection is thrown away, and the tables with it.
  await connection.driver.query(UNSTAGE);
  return report;
}

/** Loads on one connection, unless the very file was loaded before. */
async function loadOn(
  connection: Connection,
  file: SourceFile,
  request: LoadRequest,
  greeting: { readonly now: string; readonly tomorrow: string },
): Promise<LoadReport> {
  const entry = {
    format: request.format,
    fileName: file.name,
    sha256: await file.sha256(request.signal),
    actor: request.actor,
    reason: request.reason?.trim() || null,
    startedAt: greeting.now,
  };
  const earlier = await earlierBatch(connection.db, entry);
  if (earlier) return reportOf(alreadyLoaded(earlier));
  const problems = new Problems();
  const bounds = { dateMax: greeting.tomorrow, now: instantOf(greeting.now) };
  const format = request.reader ?? FORMATS[request.format];
  return loadFile(connection, { request, format, file, problems, entry, ...bounds });
}

/**
 * Loads a file: all of it, in one transaction and one revision, or nothing. Readers see the data
 * as before or as after. Every load but one that fails is written into `load_batch`, a refused
 * one as such.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing
 * has changed then
 */
export async function load(client: Client, request: LoadRequest): Promise<LoadReport> {
  const { signal } = request;
  signal?.throwIfAborted();
  const file = await openSource(request.file);
  try {
    return await withConnection(client.pool, async (connection) => {
      const greeting = await greet(connection);
      // A statement that runs on the server does not hear the signal by itself.
      const cancel = () => {
        client.pool.query('select pg_cancel_backend($1)', [greeting.pid]).catch(() => {});
      };
      signal?.addEventListener('abort', cancel);
      try {
        return await loadOn(connection, file, request, greeting);
      } finally {
        signal?.removeEventListener('abort', cancel);
      }
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    await file.close();
  }
}
