import { type Kysely, sql } from 'kysely';
import { inApplyTransaction } from '../../db/connection.ts';
import { instantOf } from '../../db/instant.ts';
import type { Database } from '../../db/schema.ts';
import type { Trx } from '../descriptions/reference.ts';
import type { ChangeRequest, LoadCounts, OpenedLoad } from './request.ts';

/** A line of the ledger as it is written. */
export interface BatchEntry {
  readonly format: string;
  readonly fileName: string;
  readonly sha256: Buffer;
  /** Of the mapping with which the file was read; null for formats without one. */
  readonly mappingSha256: Buffer | null;
  readonly vintage: string | null;
  readonly actor: string;
  readonly reason: string | null;
  readonly startedAt: string;
  readonly counts: LoadCounts;
  /** The batch that an undo takes back. */
  readonly undoes?: number;
}

/** Sorting and hashing of millions of rows, a few times at once; else it goes through files. */
const WORK_MEMORY = sql`set local work_mem = '128MB'`;

/**
 * One transaction that changes data, under the lock of all writers; a dry run looks at one state
 * of the data, and no writer waits for it.
 */
export function inChangeTransaction<T>(
  db: Kysely<Database>,
  { dryRun, onHeld }: Pick<ChangeRequest<never>, 'dryRun' | 'onHeld'>,
  work: (trx: Trx) => Promise<T>,
): Promise<T> {
  const withMemory = async (trx: Trx): Promise<T> => {
    await WORK_MEMORY.execute(trx);
    return work(trx);
  };
  return dryRun
    ? db.transaction().setIsolationLevel('repeatable read').execute(withMemory)
    : inApplyTransaction(db, withMemory, onHeld);
}

/** Takes the number of the batch before it is written, so that its rows can carry it. */
export async function nextBatch(trx: Trx): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    select nextval(pg_get_serial_sequence('load_batch', 'id')) as id`.execute(trx);
  return Number(rows[0]?.id);
}

/** Writes a line of the ledger; `revision` is null when nothing was changed. */
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

export interface EarlierBatch {
  readonly id: number;
  readonly vintage: string | null;
}

/**
 * The batch that loaded the same file before, all of it, and is in force. A file of which rows were
 * rejected may be loaded again, once the reasons are gone.
 */
export async function earlierBatch(
  db: Kysely<Database>,
  { sha256, formatName, format }: OpenedLoad,
): Promise<EarlierBatch | null> {
  const { rows } = await sql<EarlierBatch>`
    select id, vintage from load_batch
    where sha256 = ${sha256} and format = ${formatName} and status = 'applied'
      and mapping_sha256 is not distinct from ${format.mappingSha256 ?? null}::bytea
      and undone_by is null and rejected = 0`.execute(db);
  return rows[0] ?? null;
}

/** A line of the ledger as it is shown. */
export interface Batch extends Required<LoadCounts> {
  readonly batch: number;
  readonly status: 'applied' | 'refused';
  readonly format: string;
  /** Name of the file, or what was named in its place. */
  readonly file: string;
  /** In hexadecimal. */
  readonly sha256: string;
  readonly mappingSha256: string | null;
  readonly vintage: string | null;
  /** RFC 3339 in UTC. */
  readonly startedAt: string;
  readonly finishedAt: string;
  /** As an answer of the service shows it; null when nothing changed. */
  readonly revision: string | null;
  readonly actor: string;
  readonly reason: string | null;
  /** The batch that this one took back. */
  readonly undoes: number | null;
  /** The batch that took this one back; null while it is in force. */
  readonly undoneBy: number | null;
}

/** A number that no batch has. */
export class UnknownBatchError extends Error {
  override readonly name = 'UnknownBatchError';
  readonly exitCode = 2;
}

/** Counts as PostgreSQL's float8, which the driver gives as numbers. */
const LINE = sql`
  b.id as batch, b.status, b.format, b.file_name as file, encode(b.sha256, 'hex') as sha256,
  encode(b.mapping_sha256, 'hex') as "mappingSha256", b.vintage, b.started_at as "startedAt",
  b.finished_at as "finishedAt", revision_text(b.revision) as revision,
  b.actor, b.reason, b.rows::float8, b.inserted::float8, b.unchanged::float8,
  b.corrected::float8, b.outdated::float8, b.withdrawn::float8, b.rejected::float8,
  b.prices_added as "pricesAdded", b.prices_changed as "pricesChanged",
  b.prices_removed as "pricesRemoved", b.undoes, b.undone_by as "undoneBy"`;

const batchOf = (row: Batch): Batch => ({
  ...row,
  startedAt: instantOf(row.startedAt),
  finishedAt: instantOf(row.finishedAt),
});

/**
 * The newest lines of the ledger, the newest first.
 * @param market only batches that changed prices of the market with this slug; null for all
 */
export async function readLog(
  db: Kysely<Database>,
  { limit, market }: { readonly limit: number; readonly market: string | null },
): Promise<Batch[]> {
  const { rows } = await sql<Batch>`
    select ${LINE} from load_batch b
    where ${market}::text is null or exists (select from revision_scope r
      where r.revision = b.revision and r.scope = ${market})
    order by b.id desc limit ${limit}`.execute(db);
  return rows.map(batchOf);
}

/** A line of the ledger. @throws UnknownBatchError when no batch has this number */
export async function readBatch(db: Kysely<Database>, number: number): Promise<Batch> {
  const { rows } = await sql<Batch>`
    select ${LINE} from load_batch b where b.id = ${number}`.execute(db);
  const [row] = rows;
  if (!row) throw new UnknownBatchError(`there is no batch ${number}; load log lists them`);
  return batchOf(row);
}
