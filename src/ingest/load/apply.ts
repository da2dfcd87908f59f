import { sql } from 'kysely';
import { type Connection, openRevision, withWriteLock } from '../../db/connection.ts';
import { type BatchEntry, type LoadCounts, nextBatch, writeBatch } from '../../db/ledger.ts';
import { textOf } from '../../db/revisions.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { writeCurrencies, writeSource } from '../descriptions/new-names.ts';
import { writePrices } from '../descriptions/prices.ts';
import { writeChanges } from '../staging/change-set.ts';
import { resolveCreated } from '../staging/staged-series.ts';
import type { ClassifiedLoad, StagedLoad } from './phases.ts';
import type { ChangeRequest } from './request.ts';

/**
 * Writes a classified load as a batch, in one revision; without changes it writes only the batch.
 * @returns the batch, and the revision in the wire format; null if nothing changed
 */
export async function write(
  trx: Trx,
  load: ClassifiedLoad<unknown>,
): Promise<{ readonly batch: number; readonly revision: string | null }> {
  const { request, rowsRead, file } = load;
  request.onProgress?.({ step: 'writing', rows: rowsRead, ...file.meter });
  const batch = await nextBatch(trx);
  const number = changesAnything(load) ? await writeRevision(trx, load, batch) : null;
  await writeBatch(trx, batch, 'applied', number, entryOf(load, load.counts));
  return { batch, revision: number === null ? null : await textOf(trx, number) };
}

/** True if a classified load changes anything. */
const changesAnything = ({ currencies, prices, counts }: ClassifiedLoad<unknown>): boolean =>
  [currencies, prices.newNames, prices.created, prices.changed].some(({ length }) => length > 0) ||
  counts.inserted + counts.corrected + (counts.withdrawn ?? 0) > 0;

/** Writes the changes of a load in one revision. @returns the revision number */
async function writeRevision(
  trx: Trx,
  load: ClassifiedLoad<unknown>,
  batch: number,
): Promise<string> {
  const { target, format, startedAt, counts, ranges } = load;
  const why = load.reason ?? `load ${load.formatName} ${load.file.name}`;
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

/** The ledger row of a load. */
export const entryOf = (
  { request, format, file, formatName, sha256, vintage, reason, startedAt }: StagedLoad,
  counts: LoadCounts,
): BatchEntry => ({
  format: formatName,
  fileName: file.name,
  sha256,
  mappingSha256: format.mappingSha256 ?? null,
  vintage,
  actor: request.actor,
  reason,
  startedAt,
  counts,
});

/** Enough to sort and hash millions of rows in memory instead of temporary files. */
const WORK_MEMORY = sql`set local work_mem = '128MB'`;

/**
 * Runs a change in one transaction under the write lock, so that a comparison still holds when its
 * changes are written. A dry run reads one snapshot instead, and blocks no writer.
 */
export function withLockOrSnapshot<T>(
  { db }: Connection,
  { dryRun, onHeld }: Pick<ChangeRequest<never>, 'dryRun' | 'onHeld'>,
  work: (trx: Trx) => Promise<T>,
): Promise<T> {
  const withMemory = async (trx: Trx): Promise<T> => {
    await WORK_MEMORY.execute(trx);
    return work(trx);
  };
  return dryRun
    ? db.transaction().setIsolationLevel('repeatable read').execute(withMemory)
    : withWriteLock(db, withMemory, onHeld);
}
