import { type Kysely, sql } from 'kysely';
import { instantOf } from '../../db/instant.ts';
import type { Database } from '../../db/schema.ts';

/** A line of the ledger. */
export interface Batch {
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
  readonly rows: number;
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
  readonly withdrawn: number;
  readonly rejected: number;
  readonly pricesAdded: number;
  readonly pricesChanged: number;
  readonly pricesRemoved: number;
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

type Row = { readonly [K in keyof Batch]: Batch[K] extends number ? string : Batch[K] };

const LINE = sql`
  b.id as batch, b.status, b.format, b.file_name as file, encode(b.sha256, 'hex') as sha256,
  encode(b.mapping_sha256, 'hex') as "mappingSha256", b.vintage, b.started_at as "startedAt",
  b.finished_at as "finishedAt", revision_text(b.revision) as revision,
  b.actor, b.reason, b.rows, b.inserted, b.unchanged, b.corrected, b.outdated, b.withdrawn,
  b.rejected, b.prices_added as "pricesAdded", b.prices_changed as "pricesChanged",
  b.prices_removed as "pricesRemoved", b.undoes, b.undone_by as "undoneBy"`;

const batchOf = (row: Row): Batch => ({
  ...row,
  batch: Number(row.batch),
  startedAt: instantOf(row.startedAt),
  finishedAt: instantOf(row.finishedAt),
  rows: Number(row.rows),
  inserted: Number(row.inserted),
  unchanged: Number(row.unchanged),
  corrected: Number(row.corrected),
  outdated: Number(row.outdated),
  withdrawn: Number(row.withdrawn),
  rejected: Number(row.rejected),
  pricesAdded: Number(row.pricesAdded),
  pricesChanged: Number(row.pricesChanged),
  pricesRemoved: Number(row.pricesRemoved),
});

/**
 * The newest lines of the ledger, the newest first.
 * @param market only batches that changed prices of the market with this slug; null for all
 */
export async function readLog(
  db: Kysely<Database>,
  { limit, market }: { readonly limit: number; readonly market: string | null },
): Promise<Batch[]> {
  const { rows } = await sql<Row>`
    select ${LINE} from load_batch b
    where ${market}::text is null or exists (select from revision_scope r
      where r.revision = b.revision and r.scope = ${market})
    order by b.id desc limit ${limit}`.execute(db);
  return rows.map(batchOf);
}

/** A line of the ledger. @throws UnknownBatchError when no batch has this number */
export async function readBatch(db: Kysely<Database>, number: number): Promise<Batch> {
  const { rows } = await sql<Row>`
    select ${LINE} from load_batch b where b.id = ${number}`.execute(db);
  const [row] = rows;
  if (!row) throw new UnknownBatchError(`there is no batch ${number}; load log lists them`);
  return batchOf(row);
}
