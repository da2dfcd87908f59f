import { type Kysely, type RawBuilder, sql } from 'kysely';
import { inApplyTransaction } from './connection.ts';
import { instantOf } from './instant.ts';
import type { Database } from './schema.ts';

/*
 * Inside the service a revision is the text `<number>.<commit id>`, and "0" before the first. The
 * random id tells commits apart that took the same number: one on a primary that was lost, the
 * other on the standby that lacked it. Equal texts are the same commit and, as each commit follows
 * all before it, the same state.
 */

/** The number of a revision. */
export const numberOf = (revision: string): string => revision.split('.', 1)[0] ?? revision;

/** The commit id of a revision; null where the text has none. */
export const commitIdOf = (revision: string): string | null => revision.split('.')[1] ?? null;

/** True if a revision has a greater number than another. */
export const isAfter = (revision: string, other: string): boolean =>
  BigInt(numberOf(revision)) > BigInt(numberOf(other));

/** A revision, or another number with a commit id, as it is on the wire: `<epoch><id>.<number>`. */
export const wireText = (epoch: string, revision: string): string =>
  `${epoch}${commitIdOf(revision) ?? ''}.${numberOf(revision)}`;

/** The number of a revision as a parameter. */
export const numberIn = (revision: string): RawBuilder<string> =>
  sql<string>`${numberOf(revision)}::bigint`;

/**
 * A condition that holds where the server has the commit of a revision. Else the statement fails
 * with 503: another server took over since the revision was found, and lacks it.
 */
export const requireCommit = (revision: string): RawBuilder<boolean> =>
  sql<boolean>`require_commit(${numberIn(revision)}, ${commitIdOf(revision)})`;

/** The newest state of some scopes: what an answer reads at, and names in `$metadata`. */
export interface Head {
  /** Newest revision that touched one of the scopes; "0" when none did. */
  readonly revision: string;
  /** When it was committed, RFC 3339 in UTC. */
  readonly committedAt: string;
  /** Newest revision that touched the scope `reference`. */
  readonly reference: string;
  readonly epoch: string;
}

/** The revision of a head as it is on the wire. */
export const revisionText = (head: Pick<Head, 'epoch' | 'revision'>): string =>
  wireText(head.epoch, head.revision);

/**
 * The newest revision of a set of scopes (markets by slug, `fx:<source>`) and of the reference
 * data. One statement, so all of it is one state of the database.
 * @param until the last revision that counts, or null for all there are
 */
export async function headOf(
  db: Kysely<Database>,
  scopes: readonly string[],
  until: string | null = null,
): Promise<Head> {
  const newest = (names: readonly string[]) => sql<string>`
    (select coalesce(max(newest.revision), 0) from unnest(${names}::text[]) as s (scope)
      cross join lateral (select r.revision from revision_scope r
        where r.scope = s.scope and r.revision <= bounds.until
        order by r.revision desc limit 1) as newest)`;
  const number = until && numberOf(until);
  const { rows } = await sql<Record<keyof Head, string>>`
    select service.epoch as "epoch",
      concat_ws('.', heads.revision, revision.commit_id) as "revision",
      concat_ws('.', heads.reference, reference.commit_id) as "reference",
      coalesce(revision.committed_at, 'epoch'::timestamptz) as "committedAt"
    from service
      cross join (select coalesce(${number}::bigint, 9223372036854775807) as until) as bounds
      cross join lateral (select ${newest([...scopes, 'reference'])} as revision,
        ${newest(['reference'])} as reference) as heads
      left join revision on revision.number = heads.revision
      left join revision as reference on reference.number = heads.reference
    where require_commit(bounds.until, ${until && commitIdOf(until)})`.execute(db);
  const [head] = rows;
  if (!head) throw new Error('the table service has no row');
  return { ...head, committedAt: instantOf(head.committedAt) };
}

/** The newest revision there is, in SQL. */
export const NEWEST = sql<string>`coalesce((select concat_ws('.', number, commit_id) from revision
      order by number desc limit 1), '0')`;

/** The newest revision of all and the epoch, in one statement. */
export async function newestRevision(
  db: Kysely<Database>,
): Promise<{ readonly epoch: string; readonly revision: string }> {
  const { rows } = await sql<{ epoch: string; revision: string }>`
    select epoch, ${NEWEST} as revision from service`.execute(db);
  const [found] = rows;
  if (!found) throw new Error('the table service has no row');
  return found;
}

/** A revision that this transaction opened or that was committed, as it is on the wire. */
export async function textOf(db: Kysely<Database>, number: string): Promise<string> {
  const { rows } = await sql<{ text: string }>`
    select revision_text(${number}::bigint) as text`.execute(db);
  const [row] = rows;
  if (!row) throw new Error('the table service has no row');
  return row.text;
}

/**
 * The last revision committed at or before a moment (RFC 3339), "0" before the first; null when
 * the moment lies in the future. What it returns for a moment it returns for ever.
 */
export async function revisionAsOf(db: Kysely<Database>, instant: string): Promise<string | null> {
  // `revision_as_of` may have waited for a commit that this statement does not see.
  const { rows } = await sql<{ revision: string | null }>`
    select case when number is not null then concat_ws('.', number, commit_id_of(number)) end
      as revision
    from revision_as_of(${instant}::timestamptz) as number`.execute(db);
  return rows[0]?.revision ?? null;
}

/** What a database has for a text on the wire. */
interface FoundRevision {
  readonly epoch: string;
  readonly newest: string;
  /** Null where it has no such commit. */
  readonly revision: string | null;
}

/** The revision that a text on the wire names; "0" has no commit id. */
export async function findRevision(db: Kysely<Database>, text: string): Promise<FoundRevision> {
  const [prefix, number] = text.split('.');
  const { rows } = await sql<FoundRevision>`
    select s.epoch, ${NEWEST} as newest,
      case when ${number}::bigint = 0 and s.epoch = ${prefix} then '0'
        else (select concat_ws('.', r.number, r.commit_id) from revision r
          where r.number = ${number}::bigint and s.epoch || r.commit_id = ${prefix}) end as revision
    from service s`.execute(db);
  const [found] = rows;
  if (!found) throw new Error('the table service has no row');
  return found;
}

/** The epoch before and after it was renewed. */
interface RenewedEpoch {
  readonly before: string;
  readonly after: string;
  /** The newest revision, as it is on the wire from now on. */
  readonly revision: string;
}

/**
 * Gives the data a new epoch: every revision, cursor, ETag and position of the feed that was told
 * until now is unknown from now on. Waits for the writer that is under way; readers go on.
 */
export const renewEpoch = (db: Kysely<Database>): Promise<RenewedEpoch> =>
  inApplyTransaction(db, async (trx) => {
    const { rows } = await sql<{ before: string; after: string }>`
      with before as materialized (select epoch from service),
      fresh as materialized (
        select substr(md5(gen_random_uuid()::text), 1, 6) as epoch from generate_series(1, 20)),
      changed as (
        update service set epoch =
          (select epoch from fresh where epoch <> (select epoch from before) limit 1)
        returning epoch)
      select before.epoch as before, changed.epoch as after from before, changed`.execute(trx);
    const [renewed] = rows;
    if (!renewed) throw new Error('the table service has no row');
    const { revision } = await newestRevision(trx);
    // Services look again, and tell those who wait for changes at a place that is no more.
    await sql`select pg_notify('revision', ${numberOf(revision)})`.execute(trx);
    return { ...renewed, revision: wireText(renewed.after, revision) };
  });
