import type { Client } from '../../db/client.ts';
import type { Connection } from '../../db/connection.ts';
import { NO_COUNTS, nextBatch, writeBatch } from '../../db/ledger.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { openFormat } from '../formats/formats.ts';
import { Problems } from '../records/problems.ts';
import { RejectsFile } from '../records/rejects-file.ts';
import { openSource } from '../records/source-file.ts';
import { writeCoverage } from '../staging/change-set.ts';
import { entryOf, withLockOrSnapshot, write } from './apply.ts';
import { type EarlierBatch, earlierBatch } from './batches.ts';
import { classify } from './classify.ts';
import { inPhases, open, requireReference } from './open.ts';
import type { LoadRefused, OpenedLoad, StagedLoad } from './phases.ts';
import type { LoadReport, LoadRequest } from './request.ts';
import { stage } from './stage.ts';

/*
 * A load in its phases. The value of each phase extends the one before (`phases.ts`).
 *
 *   open       OpenedLoad       file, format, start time            open.ts, ../formats
 *   stage      StagedLoad       valid values in staging tables      stage.ts, ../staging
 *   classify   ClassifiedLoad   new, changed and rejected values    classify.ts, ../descriptions
 *   write      a batch          in one revision                     apply.ts, batches.ts
 *
 * No lock is held until the file is staged. The comparison and the writes are one transaction.
 */

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
  return inPhases(client, { file, signal }, refuse, async (connection) => {
    await requireReference(connection);
    const format = request.reader ?? (await openFormat(request.format));
    const opened = await open(connection, { request, formatName: request.format, format, file });
    const earlier = await earlierBatch(connection.db, opened);
    if (earlier) return alreadyLoaded(earlier, opened, new Problems());
    return RejectsFile.during(request.rejects, file, async (rejects) => {
      const staged = await stage(connection, opened, new Problems(rejects), request);
      request.onProgress?.({ step: 'comparing', rows: staged.rowsRead, ...file.meter });
      const report = await withLockOrSnapshot(connection, request, (trx) =>
        apply(trx, staged, request),
      );
      // The load is committed, so a later error must not fail it.
      await refreshStatistics(connection, opened, report).catch(() => {});
      return report;
    });
  });
}

/** Classifies and writes a staged load, unless the same file was loaded meanwhile. */
async function apply(trx: Trx, staged: StagedLoad, request: LoadRequest): Promise<LoadReport> {
  const { problems, vintage, target } = staged;
  const earlier = request.dryRun ? null : await earlierBatch(trx, staged);
  if (earlier) return alreadyLoaded(earlier, staged, problems);
  const classified = await classify(trx, staged, request);
  const { counts, preview } = classified;
  if (request.dryRun) return reportOf('previewed', staged, { counts, preview });
  const written = await write(trx, classified);
  if (vintage !== null) await writeCoverage(trx, written.batch, target);
  // The last step that can fail before the commit: a committed load has its rejects file.
  await problems.rejects?.place();
  const status = written.revision === null ? 'unchanged' : 'applied';
  return reportOf(status, staged, { ...written, counts, preview });
}

/** Records a refused load in the ledger, in a transaction of its own. A dry run is not recorded. */
async function refuse({ db }: Connection, { load }: LoadRefused): Promise<LoadReport> {
  const { problems, request, rowsRead, preview = null } = load;
  const counts = { ...NO_COUNTS, rows: rowsRead, rejected: problems.rejected };
  const record = async (trx: Trx): Promise<number> => {
    const batch = await nextBatch(trx);
    await writeBatch(trx, batch, 'refused', null, entryOf(load, counts));
    return batch;
  };
  const batch = request.dryRun ? null : await db.transaction().execute(record);
  return reportOf('refused', load, { batch, counts, preview });
}

/** Number of written rows after which table statistics are outdated. */
const MANY_ROWS = 10_000;

/**
 * Updates table statistics after a bulk load; autovacuum would take minutes. An account that does
 * not own the table only gets a warning from PostgreSQL.
 */
async function refreshStatistics(
  { driver }: Connection,
  { format }: OpenedLoad,
  { status, counts }: LoadReport,
): Promise<void> {
  if (status !== 'applied' || counts.inserted + counts.corrected < MANY_ROWS) return;
  await driver.query(format.source ? 'analyze fx_rate' : 'analyze series');
}

/** The report on a file that an earlier batch loaded. */
const alreadyLoaded = (
  { id, vintage }: EarlierBatch,
  { file }: OpenedLoad,
  problems: Problems,
): LoadReport => reportOf('already-loaded', { file, problems, vintage }, { batch: id });

const reportOf = (
  status: LoadReport['status'],
  { file, problems, vintage }: Pick<StagedLoad, 'file' | 'problems' | 'vintage'>,
  outcome: Partial<Pick<LoadReport, 'batch' | 'revision' | 'counts' | 'preview'>>,
): LoadReport => ({
  status,
  batch: null,
  revision: null,
  vintage,
  counts: NO_COUNTS,
  errors: problems.inOrder().map((problem) => ({ file: file.path, ...problem })),
  errorsTotal: problems.total,
  preview: null,
  rejects: problems.rejects?.isPlaced ? problems.rejects.path : null,
  ...outcome,
});
