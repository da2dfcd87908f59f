import { type Kysely, type RawBuilder, sql } from 'kysely';
import { withWriteLock } from './connection.ts';
import { instantOf } from './instant.ts';
import type { Database } from './schema.ts';

/*
 * Inside the service a revision is the text `<number>.<commit id>`, and "0" before the first. The
 * random id distinguishes two commits with the same number: one on a lost primary, the other on a
 * standby that lacked it. Equal texts name the same commit and, since each commit follows all
 * before it, the same data.
 */

/** The number of a revision. */
export const numberOf = (revision: string): string => revision.split('.', 1)[0] ?? revision;

/** The commit id of a revision; null if the text has none. */
export const commitIdOf = (revision: string): string | null => revision.split('.')[1] ?? null;

/** True if a revision has a greater number than another. */
export const isAfter = (revision: string, other: string): boolean =>
  BigInt(numberOf(revision)) > BigInt(numberOf(other));

/** The wire format of a revision, or of another number with a commit id: `<epoch><id>.<number>`. */
export const wireText = (epoch: string, revision: string): string =>
  `${epoch}${commitIdOf(revision) ?? ''}.${numberOf(revision)}`;

/** The number of a revision as an SQL parameter. */
export const numberIn = (revision: string): RawBuilder<string> =>
  sql<string>`${numberOf(revision)}::bigint`;

/**
 * A condition that is true if the server has the commit of a revision. Otherwise the statement
 * fails as unavailable: the link switched to a server that lacks the commit.
 */
export const requireCommit = (revision: string): RawBuilder<boolean> =>
  sql<boolean>`require_commit(${numberIn(revision)}, ${commitIdOf(revision)})`;

/** The row of a query of the table `service`. @throws Error if the table is empty */
export function onlyRow<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new Error('the table service has no row');
  return row;
}

/** The newest revision of some scopes, which an answer reads and names in `$metadata`. */
export interface DataRevision {
  /** Newest revision that touched one of the scopes; "0" if none did. */
  readonly revision: string;
  /** Commit time, RFC 3339 in UTC. */
  readonly committedAt: string;
  /** Newest revision that touched the scope `reference`. */
  readonly reference: string;
  readonly epoch: string;
}

/** A data revision in the wire format. */
export const revisionText = ({ epoch, revision }: Pick<DataRevision, 'epoch' | 'revision'>) =>
  wireText(epoch, revision);

/**
 * The newest revision of a set of scopes (markets by slug, `fx:<source>`) and of the reference
 * data, read in one statement and so from one snapshot.
 * @param until ignores later revisions; null for none
 */
export async function readDataRevision(
  db: Kysely<Database>,
  scopes: readonly string[],
  until: string | null = null,
): Promise<DataRevision> {
  const newest = (names: readonly string[]) => sql<string>`
    (select coalesce(max(newest.revision), 0) from unnest(${names}::text[]) as s (scope)
      cross join lateral (select r.revision from revision_scope r
        where r.scope = s.scope and r.revision <= bounds.until
        order by r.revision desc limit 1) as newest)`;
  const number = until && numberOf(until);
  const { rows } = await sql<Record<keyof DataRevision, string>>`
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
  const found = onlyRow(rows);
  return { ...found, committedAt: instantOf(found.committedAt) };
}

/** SQL expression for the newest revision. */
export const NEWEST = sql<string>`coalesce((select concat_ws('.', number, commit_id) from revision
      order by number desc limit 1), '0')`;

/** The newest revision of all scopes, and the epoch. */
export async function newestRevision(
  db: Kysely<Database>,
): Promise<{ readonly epoch: string; readonly revision: string }> {
  const { rows } = await sql<{ epoch: string; revision: string }>`
    select epoch, ${NEWEST} as revision from service`.execute(db);
  return onlyRow(rows);
}

/** The wire format of a revision that is committed, or opened by this transaction. */
export async function textOf(db: Kysely<Database>, number: string): Promise<string> {
  const { rows } = await sql<{ text: string }>`
    select revision_text(${number}::bigint) as text`.execute(db);
  return onlyRow(rows).text;
}

/**
 * The last revision committed at or before an instant (RFC 3339), "0" before the first, null for an
 * instant in the future. The result for an instant never changes.
 */
export async function revisionAsOf(db: Kysely<Database>, instant: string): Promise<string | null> {
  // `revision_as_of` may have waited for a commit that this statement does not see.
  const { rows } = await sql<{ revision: string | null }>`
    select case when number is not null then concat_ws('.', number, commit_id_of(number)) end
      as revision
    from revision_as_of(${instant}::timestamptz) as number`.execute(db);
  return rows[0]?.revision ?? null;
}

/** The commit that a revision in the wire format names. */
interface FoundRevision {
  readonly epoch: string;
  readonly newest: string;
  /** Null if the database has no such commit. */
  readonly revision: string | null;
}

/** Looks up a revision in the wire format; "0" has no commit id. */
export async function findRevision(db: Kysely<Database>, text: string): Promise<FoundRevision> {
  const [prefix, number] = text.split('.');
  const { rows } = await sql<FoundRevision>`
    select s.epoch, ${NEWEST} as newest,
      case when ${number}::bigint = 0 and s.epoch = ${prefix} then '0'
        else (select concat_ws('.', r.number, r.commit_id) from revision r
          where r.number = ${number}::bigint and s.epoch || r.commit_id = ${prefix}) end as revision
    from service s`.execute(db);
  return onlyRow(rows);
}

/** The epochs before and after a renewal. */
interface RenewedEpoch {
  readonly before: string;
  readonly after: string;
  /** The newest revision in the wire format, with the new epoch. */
  readonly revision: string;
}

/**
 * Renews the epoch: all revisions, cursors, ETags and feed positions sent so far become invalid.
 * Waits for a running writer; does not block readers.
 */
export const renewEpoch = (db: Kysely<Database>): Promise<RenewedEpoch> =>
  withWriteLock(db, async (trx) => {
    const { rows } = await sql<{ before: string; after: string }>`
      with before as materialized (select epoch from service),
      fresh as materialized (
        select substr(md5(gen_random_uuid()::text), 1, 6) as epoch from generate_series(1, 20)),
      changed as (
        update service set epoch =
          (select epoch from fresh where epoch <> (select epoch from before) limit 1)
        returning epoch)
      select before.epoch as before, changed.epoch as after from before, changed`.execute(trx);
    const renewed = onlyRow(rows);
    const { revision } = await newestRevision(trx);
    // Services run a revision check and end the requests of followers at old positions.
    await sql`select pg_notify('revision', ${numberOf(revision)})`.execute(trx);
    return { ...renewed, revision: wireText(renewed.after, revision) };
  });

/** The clock of the database, compared with its newest revision. */
interface Clock {
  /** Seconds by which the newest revision is later than the clock; 0 if it is not. */
  readonly behindSeconds: number;
  /** Commit time of the newest revision, RFC 3339; null without one. */
  readonly newestAt: string | null;
}

/** The clock, and its jumps in the past. */
interface ClockHistory extends Clock {
  /**
   * Number of revisions dated a microsecond after the one before: the clock had jumped back, and
   * commit times increase.
   */
  readonly redated: number;
  /** Number of the last of them; null without one. */
  readonly lastRedated: string | null;
}

/** Compares the clock of the primary with the newest revision. A standby has another clock. */
async function readClock(db: Kysely<Database>): Promise<Clock> {
  const { rows } = await sql<{ newest: string; behind: number }>`
    select committed_at as newest, case when pg_is_in_recovery() then 0
      else extract(epoch from committed_at - clock_timestamp())::float8 end as behind
    from revision order by number desc limit 1`.execute(db);
  const [row] = rows;
  if (row === undefined) return { behindSeconds: 0, newestAt: null };
  return { behindSeconds: Math.max(0, row.behind), newestAt: instantOf(row.newest) };
}

/** Reads the clock and all revisions. */
export async function readClockHistory(db: Kysely<Database>): Promise<ClockHistory> {
  const { rows } = await sql<{ redated: number; last: string | null }>`
    select count(*)::float8 as redated, max(number) as last
    from (
      select number, committed_at, lag(committed_at) over (order by number) as before
      from revision) as r
    where committed_at = before + interval '1 microsecond'`.execute(db);
  const { redated, last } = onlyRow(rows);
  return { ...(await readClock(db)), redated, lastRedated: last };
}

/** Seconds below which a clock counts as right: it is read after the commit time. */
const CLOCK_SECONDS_MIN = 1;

/** A line about a clock that is behind, with the effect on `asOf`; null if it is not. */
function clockLine({ behindSeconds, newestAt }: Clock): string | null {
  if (behindSeconds < CLOCK_SECONDS_MIN) return null;
  return (
    `the clock of the database is ${Math.round(behindSeconds)} s behind its newest revision ` +
    `(${newestAt}): it jumped back. Until it passes that time, each new revision is dated a ` +
    'microsecond after the one before. An asOf before that time does not show those revisions; ' +
    'requests without asOf do'
  );
}

/** Reads the clock. @returns a line if the clock of the database jumped back; otherwise null */
export const clockFault = async (db: Kysely<Database>): Promise<string | null> =>
  clockLine(await readClock(db));

/** Lines about a clock that jumped back now or before, with the effect on `asOf`. */
export function clockLines(history: ClockHistory): string[] {
  const now = clockLine(history);
  const { redated, lastRedated } = history;
  const past =
    `${redated} ${redated === 1 ? 'revision is' : 'revisions are'} dated a microsecond after the ` +
    `one before, the last of them number ${lastRedated}: the clock of the database had jumped ` +
    'back. An asOf before these dates does not show them';
  return [...(now === null ? [] : [now]), ...(redated === 0 ? [] : [past])];
}
