import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import { inApplyTransaction, openRevision, withSession } from '../../db/connection.ts';
import { NO_COUNTS } from '../apply.ts';
import { type Batch, readBatch } from '../batches/log.ts';
import {
  type ChangeRequest,
  type LoadCounts,
  nextBatch,
  type TakenBack,
  writeBatch,
} from '../ledger.ts';
import type { Trx } from '../reference.ts';
import { type Conflict, conflictsOf, secondLoad } from './conflicts.ts';
import { previewUndo, type UndoPreview } from './preview.ts';
import { restoreRows, restoreValues, stageUndo } from './stage.ts';

interface UndoRequest extends ChangeRequest<UndoPreview> {
  /** The number of the batch to take back. */
  readonly batch: number;
}

/** Result of an undo. */
export interface UndoReport {
  readonly status: 'applied' | 'previewed';
  /** Its own number in the ledger; null of a dry run. */
  readonly batch: number | null;
  readonly undoes: number;
  /** As an answer of the service shows it; null when the batch had changed nothing. */
  readonly revision: string | null;
  readonly preview: UndoPreview;
}

/** A batch that cannot be taken back. Nothing was changed. */
export class UndoRefusal extends Error {
  override readonly name = 'UndoRefusal';
  readonly exitCode = 3;
  /** What has to be undone first, the newest first. */
  readonly conflicts: readonly Conflict[];

  constructor(message: string, conflicts: readonly Conflict[] = []) {
    super(message);
    this.conflicts = conflicts;
  }
}

const NAMED_MAX = 20;

const named = (conflicts: readonly Conflict[]): string => {
  const names = conflicts
    .slice(0, NAMED_MAX)
    .map(({ batch, revision, what }) =>
      batch === null ? `revision ${revision} (${what})` : `batch ${batch} (${what})`,
    );
  const more = conflicts.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};

/** @throws UndoRefusal when the batch is not in force, or never was: none of its rows was taken */
function checkState({ batch, status, undoneBy, ...its }: Batch): void {
  if (status === 'refused') {
    throw new UndoRefusal(`batch ${batch} was refused: there is nothing to undo`);
  }
  // An edition holds older ones off by the rows that it found there already.
  const holdsNothing = its.vintage === null || its.rejected === its.rows;
  if (its.revision === null && its.rejected > 0 && holdsNothing) {
    throw new UndoRefusal(`batch ${batch} changed nothing: there is nothing to undo`);
  }
  if (undoneBy !== null) {
    throw new UndoRefusal(`batch ${batch} is undone already, by batch ${undoneBy}`);
  }
}

/** @throws UndoRefusal naming the later batches that stand on what this one did */
async function checkLater(trx: Trx, batch: Batch, number: string | null): Promise<void> {
  const conflicts = number === null ? [] : await conflictsOf(trx, number);
  if (conflicts.length > 0) {
    throw new UndoRefusal(
      `later changes stand on what batch ${batch.batch} did: ${named(conflicts)}; undo them ` +
        'first, the newest first',
      conflicts,
    );
  }
  const again = await secondLoad(trx, batch);
  if (again.length === 0) return;
  throw new UndoRefusal(`the same file was loaded again since: ${named(again)}`, again);
}

const nothing = <T>(): { total: number; shown: readonly T[] } => ({ total: 0, shown: [] });

/** What undoing a batch does that changed nothing. */
const NO_PREVIEW: UndoPreview = {
  removedPrices: nothing(),
  restoredPrices: nothing(),
  changedPrices: nothing(),
  removedNames: nothing(),
  withdrawn: nothing(),
  corrected: nothing(),
  restored: nothing(),
};

/** Writes what the preview tells, and counts it. */
async function write(
  trx: Trx,
  number: string,
  preview: UndoPreview,
): Promise<LoadCounts & TakenBack> {
  await restoreRows(trx, number);
  const { gone, back, again } = await restoreValues(trx);
  const planned = [preview.withdrawn, preview.corrected, preview.restored];
  const done = [gone, back, again];
  if (planned.some(({ total }, at) => total !== done[at])) {
    throw new Error(`wrote ${done.join(', ')} values where others were planned`);
  }
  return {
    ...NO_COUNTS,
    rows: gone + back + again,
    inserted: again,
    corrected: back,
    withdrawn: gone,
    pricesAdded: preview.restoredPrices.total,
    pricesChanged: preview.changedPrices.total,
    pricesRemoved: preview.removedPrices.total,
  };
}

async function undoIn(trx: Trx, request: UndoRequest): Promise<UndoReport> {
  const { actor, reason, dryRun } = request;
  await sql`set local work_mem = '128MB'`.execute(trx);
  const { rows } = await sql<{ now: string }>`select clock_timestamp() as now`.execute(trx);
  const batch = await readBatch(trx, request.batch);
  checkState(batch);
  const number = batch.revision?.split('.')[1] ?? null;
  if (number !== null) await stageUndo(trx, number);
  await checkLater(trx, batch, number);
  const preview = number === null ? NO_PREVIEW : await previewUndo(trx, number);
  request.onPreview?.(preview);
  const common = { undoes: batch.batch, preview };
  if (dryRun) return { status: 'previewed', batch: null, revision: null, ...common };
  const changes = Object.values(preview).some(({ total }) => total > 0);
  const revision = changes ? await openRevision(trx, reason) : null;
  const counts =
    number === null || revision === null ? NO_COUNTS : await write(trx, number, preview);
  const id = await nextBatch(trx);
  // The line of the ledger takes the new prices back: nobody but the owner of the tables may.
  await writeBatch(trx, id, 'applied', revision, {
    format: 'undo',
    fileName: `${batch.batch} (${batch.format} ${batch.file})`,
    sha256: createHash('sha256').update(`undo ${batch.batch}`).digest(),
    mappingSha256: null,
    vintage: null,
    actor,
    reason,
    startedAt: rows[0]?.now ?? '',
    counts,
    undoes: batch.batch,
  });
  const { revision: text } = await readBatch(trx, id);
  return { status: 'applied', batch: id, revision: text, ...common };
}

/**
 * Takes a batch back, in one transaction and one revision: what it published is withdrawn, what it
 * corrected gets the value of before, what it withdrew comes back, and prices that it added go.
 * It is a batch itself, which can be undone. A file that was undone may be loaded again.
 * @throws UnknownBatchError for a number that no batch has, UndoRefusal for a batch that cannot be
 * taken back; nothing has changed then
 */
export const undo = (client: Client, request: UndoRequest): Promise<UndoReport> =>
  withSession(client, request.signal, ({ db }) => {
    const work = (trx: Trx) => undoIn(trx, request);
    return request.dryRun
      ? db.transaction().setIsolationLevel('repeatable read').execute(work)
      : inApplyTransaction(db, work, request.onHeld);
  });
