import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Database } from './schema.ts';

type Trx = Transaction<Database>;

/**
 * Numbers of values by outcome; `rows` is the sum of inserted, unchanged, corrected, outdated and
 * rejected. For a refused file only invalid values are counted, each once.
 */
export interface LoadCounts {
  readonly rows: number;
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
  readonly rejected: number;
  readonly pricesAdded: number;
  readonly pricesChanged: number;
  /** Only for a withdrawal or an undo. */
  readonly withdrawn?: number;
  /** Only for an undo. */
  readonly pricesRemoved?: number;
}

/** Counts of a change without effect. */
export const NO_COUNTS: LoadCounts = {
  rows: 0,
  inserted: 0,
  unchanged: 0,
  corrected: 0,
  outdated: 0,
  rejected: 0,
  pricesAdded: 0,
  pricesChanged: 0,
};

/** Numbers of entries that changes of reference data add, change and end. */
export const countEntries = (
  changes: readonly { readonly before: unknown; readonly after: unknown }[],
) => ({
  inserted: changes.filter(({ before }) => before === null).length,
  corrected: changes.filter(({ before, after }) => before !== null && after !== null).length,
  withdrawn: changes.filter(({ after }) => after === null).length,
});

/** A new row of the ledger. */
export interface BatchEntry {
  readonly format: string;
  readonly fileName: string;
  readonly sha256: Buffer;
  /** SHA-256 of the mapping; null for formats without one. */
  readonly mappingSha256: Buffer | null;
  readonly vintage: string | null;
  readonly actor: string;
  readonly reason: string | null;
  readonly startedAt: string | RawBuilder<string>;
  readonly counts: LoadCounts;
  /** The batch that an undo reverses. */
  readonly undoes?: number;
}

/** Reserves the number of a batch, so that its rows can refer to it before it is written. */
export async function nextBatch(trx: Trx): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    select nextval(pg_get_serial_sequence('load_batch', 'id')) as id`.execute(trx);
  return Number(rows[0]?.id);
}

/** Writes a row of the ledger; `revision` is null if nothing changed. */
export async function writeBatch(
  trx: Trx,
  id: number,
  status: 'applied' | 'refused',
  revision: string | null,
  entry: BatchEntry,
): Promise<void> {
  const { counts } = entry;
  await sql`
    insert into load_batch (id, format, file_name, sha256, mapping_sha256, vintage, actor,
      reason, status, started_at, finished_at, revision, prices_added, prices_changed,
      prices_removed, rows, inserted, unchanged, corrected, outdated, withdrawn, rejected, undoes)
    overriding system value
    values (${id}, ${entry.format}, ${entry.fileName}, ${entry.sha256},
      ${entry.mappingSha256}, ${entry.vintage}, ${entry.actor}, ${entry.reason}, ${status},
      ${entry.startedAt}, clock_timestamp(),
      ${revision}, ${counts.pricesAdded}, ${counts.pricesChanged},
      ${counts.pricesRemoved ?? 0}, ${counts.rows},
      ${counts.inserted}, ${counts.unchanged}, ${counts.corrected}, ${counts.outdated},
      ${counts.withdrawn ?? 0}, ${counts.rejected}, ${entry.undoes ?? null})`.execute(trx);
}
