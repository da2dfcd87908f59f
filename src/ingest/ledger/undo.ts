import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import { openRevision, withSession } from '../../db/connection.ts';
import { type LoadCounts, NO_COUNTS, nextBatch, writeBatch } from '../../db/ledger.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { withLockOrSnapshot } from '../load/apply.ts';
import { type Batch, readBatch } from '../load/batches.ts';
import type { ChangeRequest } from '../load/request.ts';
import {
  changedTargets,
  firstOf,
  type Listed,
  listChanges,
  PREVIEW_MAX,
  type RowMetadata,
  type ValueChange,
  type Values,
  writeChanges,
} from '../staging/change-set.ts';
import { DROP_STAGING_TABLES, STAGING_TABLES } from '../staging/stage.ts';
import { previewCalendars, type UndoneCalendars, undoCalendars } from './calendars.ts';
import { type Conflict, conflictsOf, secondLoad, secondUndo } from './conflicts.ts';
import { pricesChangedIn, removedIn, restoreRows, stageUndone } from './history.ts';

/*
 * The ledger: each change of data is a batch, and a batch can be shown (`history.ts`) and undone.
 * An undo stages the reversal of a revision, unless later revisions depend on it (`conflicts.ts`).
 * A withdrawal is a load whose file names points (`withdraw.ts`).
 */

interface NamedPrice {
  readonly code: string;
  readonly name: string;
}

/** A withdrawn or restored value; the code of a rate is "source currency". */
export interface DatedValue {
  readonly code: string;
  readonly date: string;
  readonly values: Values;
}

/** The changes that an undo will make, reported before they are written. */
export interface UndoPreview extends UndoneCalendars {
  readonly removedPrices: Listed<NamedPrice>;
  readonly restoredPrices: Listed<NamedPrice>;
  /** Prices whose earlier attributes are restored. */
  readonly changedPrices: Listed<NamedPrice>;
  /** Products, dimension values and currencies without other references. */
  readonly removedNames: Listed<{ readonly kind: string; readonly name: string }>;
  readonly withdrawn: Listed<DatedValue>;
  readonly corrected: Listed<ValueChange>;
  readonly restored: Listed<DatedValue>;
}

export interface UndoRequest extends ChangeRequest<UndoPreview> {
  /** Number of the batch to undo. */
  readonly batch: number;
  /** Later batches that are undone before this one, for a dry run of several undos. */
  readonly after?: readonly number[];
  /** True for a preview with all entries of its lists, however many. */
  readonly previewAll?: boolean;
}

/** Result of an undo. */
export interface UndoReport {
  readonly status: 'applied' | 'previewed';
  /** Number of the undo's own batch; null for a dry run. */
  readonly batch: number | null;
  readonly undoes: number;
  /** In the wire format; null if the batch had changed nothing. */
  readonly revision: string | null;
  readonly preview: UndoPreview;
}

/** The batch cannot be undone. Nothing was changed. */
export class UndoRefusal extends ExpectedError {
  override readonly name = 'UndoRefusal';
  override readonly exitCode = EXIT.refused;
  /** Batches to undo first, newest first. */
  readonly conflicts: readonly Conflict[];

  constructor(message: string, conflicts: readonly Conflict[] = []) {
    super(message);
    this.conflicts = conflicts;
  }
}

const LISTED_MAX = 20;

const listText = (conflicts: readonly Conflict[]): string => {
  const names = conflicts
    .slice(0, LISTED_MAX)
    .map(({ batch, revision, what }) =>
      batch === null ? `revision ${revision} (${what})` : `batch ${batch} (${what})`,
    );
  const more = conflicts.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};

/** @throws UndoRefusal if the batch is not in force, or all of its rows were rejected */
function checkState({ batch, status, undoneBy, ...its }: Batch): void {
  if (status === 'refused') {
    throw new UndoRefusal(`batch ${batch} was refused: there is nothing to undo`);
  }
  // A batch without changes still has coverage: it protects its values from older editions.
  const holdsNothing = its.vintage === null || its.rejected === its.rows;
  if (its.revision === null && its.rejected > 0 && holdsNothing) {
    throw new UndoRefusal(`batch ${batch} changed nothing: there is nothing to undo`);
  }
  if (undoneBy !== null) {
    throw new UndoRefusal(`batch ${batch} is undone already, by batch ${undoneBy}`);
  }
}

/**
 * @param after later batches that do not count
 * @throws UndoRefusal with the later batches that depend on this one
 */
async function checkLater(
  trx: Trx,
  batch: Batch,
  number: string | null,
  after: readonly number[],
): Promise<void> {
  const changed = number === null ? [] : await conflictsOf(trx, number);
  const later = changed.length > 0 ? changed : await secondUndo(trx, batch);
  const conflicts = later.filter((each) => each.batch === null || !after.includes(each.batch));
  if (conflicts.length > 0) {
    throw new UndoRefusal(
      `later changes depend on batch ${batch.batch}: ${listText(conflicts)}; undo them ` +
        'first, newest first',
      conflicts,
    );
  }
  const again = await secondLoad(trx, batch);
  if (again.length === 0) return;
  throw new UndoRefusal(`the same file was loaded again since: ${listText(again)}`, again);
}

/**
 * Collects the changes that the undo of a revision will make; its values are staged.
 * @param revision null if the batch changed nothing
 * @param most null for all entries of each list
 */
async function previewUndo(
  trx: Trx,
  revision: string | null,
  most: number | null,
): Promise<UndoPreview> {
  const dated = async (state: 'gone' | 'new'): Promise<Listed<DatedValue>> => {
    const { total, shown } = await listChanges(trx, state, most);
    const values = shown.map(({ code, date, before, after }) => ({
      code,
      date,
      values: (before ?? after) as Values,
    }));
    return { total, shown: values };
  };
  const prices = (query: RawBuilder<unknown>) =>
    firstOf(trx, sql<NamedPrice>`select h.code, h.name ${query}`, most);
  return {
    removedPrices: await prices(
      sql`from price h where h.id in (select prices_made_in(${revision}::bigint))`,
    ),
    restoredPrices: await prices(removedIn('price', revision)),
    changedPrices: await prices(pricesChangedIn(revision)),
    removedNames: await firstOf(
      trx,
      sql<{ kind: string; name: string }>`
        select kind, name from names_made_in(${revision}::bigint)`,
      most,
    ),
    withdrawn: await dated('gone'),
    corrected: await listChanges(trx, 'changed', most),
    restored: await dated('new'),
    ...(await previewCalendars(trx, revision, most)),
  };
}

/** An undo restores the original metadata of values. */
const ORIGINAL_METADATA: RowMetadata = {
  batch: sql`c.batch_id`,
  publishedAt: sql`c.published_at`,
  correctedAt: sql`c.published_at`,
};

/** Writes the changes of the preview, and counts them. */
async function write(trx: Trx, number: string, preview: UndoPreview): Promise<LoadCounts> {
  await restoreRows(trx, number);
  const written = {
    withdrawn: preview.withdrawn.total,
    corrected: preview.corrected.total,
    inserted: preview.restored.total,
  };
  await writeChanges(trx, await changedTargets(trx), ORIGINAL_METADATA, written);
  await undoCalendars(trx, number);
  const counted = {
    withdrawn: written.withdrawn + preview.calendarsRemoved.total + preview.vatRatesRemoved.total,
    corrected: written.corrected + preview.calendarsAsBefore.total + preview.vatRatesAsBefore.total,
    inserted: written.inserted + preview.calendarsRestored.total + preview.vatRatesRestored.total,
  };
  return {
    ...NO_COUNTS,
    ...counted,
    rows: counted.withdrawn + counted.corrected + counted.inserted,
    pricesAdded: preview.restoredPrices.total,
    pricesChanged: preview.changedPrices.total,
    pricesRemoved: preview.removedPrices.total,
  };
}

async function undoIn(trx: Trx, request: UndoRequest): Promise<UndoReport> {
  const { actor, reason, dryRun } = request;
  const { rows } = await sql<{ now: string }>`select clock_timestamp() as now`.execute(trx);
  const batch = await readBatch(trx, request.batch);
  checkState(batch);
  const number = batch.revision?.split('.')[1] ?? null;
  await sql.raw(STAGING_TABLES).execute(trx);
  if (number !== null) await stageUndone(trx, number);
  await checkLater(trx, batch, number, request.after ?? []);
  const preview = await previewUndo(trx, number, request.previewAll ? null : PREVIEW_MAX);
  await request.onPreview?.(preview);
  const common = { undoes: batch.batch, preview };
  if (dryRun) return { status: 'previewed', batch: null, revision: null, ...common };
  const changes = Object.values(preview).some(({ total }) => total > 0);
  const revision = changes ? await openRevision(trx, reason) : null;
  const counts =
    number === null || revision === null ? NO_COUNTS : await write(trx, number, preview);
  const id = await nextBatch(trx);
  // The trigger of this ledger row removes the new prices: only the owner of the tables may delete
  // them.
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
 * Undoes a batch in one transaction and one revision: withdraws what it published, restores what it
 * corrected or withdrew, and removes prices that it added. The undo is a batch itself and can be
 * undone. The file of an undone batch may be loaded again.
 * @throws UnknownBatchError for an unknown number, UndoRefusal for a batch that cannot be undone;
 *   nothing has changed then
 */
export const undo = (client: Client, request: UndoRequest): Promise<UndoReport> =>
  withSession(client, request.signal, (connection) =>
    withLockOrSnapshot(connection, request, async (trx) => {
      const report = await undoIn(trx, request);
      await sql.raw(DROP_STAGING_TABLES).execute(trx);
      return report;
    }),
  );
