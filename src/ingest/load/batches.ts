import { type Kysely, sql } from 'kysely';
import { instantOf } from '../../db/instant.ts';
import type { LoadCounts } from '../../db/ledger.ts';
import type { Database } from '../../db/schema.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import type { FileFormat } from '../records/format.ts';

/** The digest that identifies the content of a load. */
interface LoadIdentity {
  readonly sha256: Buffer;
  readonly formatName: string;
  readonly format: Pick<FileFormat, 'mappingSha256'>;
}

export interface EarlierBatch {
  readonly id: number;
  readonly vintage: string | null;
}

/**
 * Finds the batch in force that loaded the same file completely. A file with rejected rows may be
 * loaded again.
 */
export async function earlierBatch(
  db: Kysely<Database>,
  { sha256, formatName, format }: LoadIdentity,
): Promise<EarlierBatch | null> {
  const { rows } = await sql<EarlierBatch>`
    select id, vintage from load_batch
    where sha256 = ${sha256} and format = ${formatName} and status = 'applied'
      and mapping_sha256 is not distinct from ${format.mappingSha256 ?? null}::bytea
      and undone_by is null and rejected = 0`.execute(db);
  return rows[0] ?? null;
}

/** A row of the ledger. */
export interface Batch extends Required<LoadCounts> {
  readonly batch: number;
  readonly status: 'applied' | 'refused';
  readonly format: string;
  /** Name of the file, or the command line that took its place. */
  readonly file: string;
  /** In hexadecimal. */
  readonly sha256: string;
  readonly mappingSha256: string | null;
  readonly vintage: string | null;
  /** RFC 3339 in UTC. */
  readonly startedAt: string;
  readonly finishedAt: string;
  /** In the wire format; null if nothing changed. */
  readonly revision: string | null;
  readonly actor: string;
  /** The account of the database that logged in; null in batches from before it was recorded. */
  readonly account: string | null;
  readonly reason: string | null;
  /** The batch that this one reversed. */
  readonly undoes: number | null;
  /** The batch that reversed this one; null while it is in force. */
  readonly undoneBy: number | null;
}

/** No batch has this number. */
export class UnknownBatchError extends ExpectedError {
  override readonly name = 'UnknownBatchError';
  override readonly exitCode = EXIT.usage;
}

/** Counts as float8, which the driver returns as numbers. */
const LEDGER_COLUMNS = sql`
  b.id as batch, b.status, b.format, b.file_name as file, encode(b.sha256, 'hex') as sha256,
  encode(b.mapping_sha256, 'hex') as "mappingSha256", b.vintage, b.started_at as "startedAt",
  b.finished_at as "finishedAt", revision_text(b.revision) as revision,
  b.actor, b.account, b.reason, b.rows::float8, b.inserted::float8, b.unchanged::float8,
  b.corrected::float8, b.outdated::float8, b.withdrawn::float8, b.rejected::float8,
  b.prices_added as "pricesAdded", b.prices_changed as "pricesChanged",
  b.prices_removed as "pricesRemoved", b.undoes, b.undone_by as "undoneBy"`;

const batchOf = (row: Batch): Batch => ({
  ...row,
  startedAt: instantOf(row.startedAt),
  finishedAt: instantOf(row.finishedAt),
});

/**
 * Reads the newest rows of the ledger, newest first.
 * @param market slug of a market: only batches that changed its prices; null for all
 */
export async function readLog(
  db: Kysely<Database>,
  { limit, market }: { readonly limit: number; readonly market: string | null },
): Promise<Batch[]> {
  const { rows } = await sql<Batch>`
    select ${LEDGER_COLUMNS} from load_batch b
    where ${market}::text is null or exists (select from revision_scope r
      where r.revision = b.revision and r.scope = ${market})
    order by b.id desc limit ${limit}`.execute(db);
  return rows.map(batchOf);
}

/** Reads a row of the ledger. @throws UnknownBatchError if no batch has this number */
export async function readBatch(db: Kysely<Database>, number: number): Promise<Batch> {
  const { rows } = await sql<Batch>`
    select ${LEDGER_COLUMNS} from load_batch b where b.id = ${number}`.execute(db);
  const [row] = rows;
  if (!row) throw new UnknownBatchError(`there is no batch ${number}; load log lists them`);
  return batchOf(row);
}
