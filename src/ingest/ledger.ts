import { type Kysely, sql } from 'kysely';
import type { OnHeld } from '../db/connection.ts';
import type { Database } from '../db/schema.ts';
import type { Trx } from './reference.ts';
import type { LoadCounts, Opened } from './request.ts';
import type { Target } from './targets.ts';

/** The common members of a request for a withdrawal and for an undo. */
export interface ChangeRequest<Preview> {
  /** Account that makes the change. */
  readonly actor: string;
  readonly reason: string;
  /** Stops before anything is written. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the sessions that hold the lock of writers, when the wait for it takes long. */
  readonly onHeld?: OnHeld | undefined;
  /** Called before anything is written. */
  readonly onPreview?: ((preview: Preview) => void) | undefined;
}

/** One line of the ledger. */
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

/**
 * Notes what the edition of a batch held, so that no older one overwrites it later: for each price
 * or currency the ranges of its dates. A range ends where the database has a value on a day on
 * which the file has none, for of that day the edition says nothing.
 */
export async function writeCoverage(trx: Trx, batch: number, target: Target): Promise<void> {
  const column = sql.ref(target.covered);
  await sql`
    with span as materialized (
      -- Of the dates of the file the database lacks those that stay withdrawn.
      select u.id, min(v.date) as first, max(v.date) as last,
        count(*) - coalesce(max(w.dates), 0) as dates
      from pg_temp.load_value v join pg_temp.load_subject u using (subject)
        left join (select subject, count(*) as dates from pg_temp.load_change
          where state = 'withdrawn' group by subject) as w using (subject)
      where u.id is not null group by u.id
    ), gapped as materialized (
      select u.id, u.first, u.last from span u
      where dates < (select count(*) from ${target.held} and s.date between u.first and u.last)
    ), ranges as (
      select id, first, last from span where id not in (select id from gapped)
      union all
      select id, min(date), max(date)
      from (
        select id, date, is_in_file,
          count(*) filter (where not is_in_file) over (partition by id order by date) as gaps
        from (
          select u.id, s.date, exists (
            select from pg_temp.load_value v join pg_temp.load_subject w using (subject)
            where w.id = u.id and v.date = s.date) as is_in_file
          from gapped u cross join lateral
            (select s.date from ${target.held} and s.date between u.first and u.last) as s
        ) as days
      ) as numbered
      where is_in_file group by id, gaps
    )
    insert into load_coverage (batch_id, ${column}, first_date, last_date)
    select ${batch}, id, first, last from ranges`.execute(trx);
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
  { sha256, formatName, format }: Opened,
): Promise<EarlierBatch | null> {
  const { rows } = await sql<EarlierBatch>`
    select id, vintage from load_batch
    where sha256 = ${sha256} and format = ${formatName} and status = 'applied'
      and mapping_sha256 is not distinct from ${format.mappingSha256 ?? null}::bytea
      and undone_by is null and rejected = 0`.execute(db);
  return rows[0] ?? null;
}
