import { type Kysely, type RawBuilder, sql } from 'kysely';
import { instantOf } from '../../db/instant.ts';
import { commitIdOf, NEWEST, onlyRow, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';

/** The newest revision and change of the feed. */
export interface Tip {
  readonly epoch: string;
  /** The newest revision; "0" if there is none. */
  readonly revision: string;
  /** The number of the newest change and the id of its commit; "0" if there is none. */
  readonly number: string;
  /** Ids of the markets, by slug. */
  readonly markets: Readonly<Record<string, number>>;
  /**
   * The number of the change that the requested position continues after; null if this database
   * does not have it. `LATEST` continues after `number`.
   */
  readonly start: string | null;
  /** True if the requested instant is later than the clock and every commit. */
  readonly isFuture: boolean;
}

/** The requested start of a page: a position, an instant, or null for the beginning of the feed. */
export type ChangesStart =
  | { readonly after: string }
  /** In UTC with microseconds. */
  | { readonly since: string }
  | null;

/** The position after every change that is committed now. */
export const LATEST = 'latest';

/** The revision of a position `revision:<revision>`; null for another position. */
export const revisionIn = (position: string): string | null =>
  /^revision:(.*)$/.exec(position)?.[1] ?? null;

/**
 * The condition that the commit of a position made its change. An archive of some markets has no
 * segments of the others; their commits lie between the commits of the neighbouring segments.
 */
const isKnown = (position: string) => {
  const [prefix, number] = position.split('.');
  return sql<boolean>`(${number}::bigint = 0 and s.epoch = ${prefix}) or exists (
    select from revision r
    where r.number between
        coalesce((select revision from change_segment where first_seq <= ${number}::bigint
          order by first_seq desc limit 1), 0)
      and coalesce((select revision from change_segment where first_seq > ${number}::bigint
          order by first_seq limit 1), 9223372036854775807)
      and s.epoch || r.commit_id = ${prefix})`;
};

/** The number of the last change up to a revision as on the wire, if that was committed. */
const endOf = (revision: string) => {
  const [prefix, number] = revision.split('.');
  return sql<string | null>`(select coalesce(
      (select first_seq + price_changes + points - 1 from change_segment
        where revision <= ${number}::bigint order by revision desc, price_id desc limit 1), 0)
    where (${number}::bigint = 0 and s.epoch = ${prefix}) or exists (
      select from revision r where r.number = ${number}::bigint
        and s.epoch || r.commit_id = ${prefix}))`;
};

/** The number of the last change of the commits before an instant. */
const endBefore = (instant: string) => sql<string>`coalesce((
    select first_seq + price_changes + points - 1 from change_segment
    where revision < coalesce((select number from revision
      where committed_at >= ${instant}::timestamptz order by committed_at limit 1),
      9223372036854775807)
    order by revision desc, price_id desc limit 1), 0)`;

/**
 * The condition that no commit can have been recorded at an instant. The commits of a primary whose
 * clock was set back are later than its clock.
 */
const isFuture = (instant: string) => sql<boolean>`${instant}::timestamptz > greatest(
    clock_timestamp(), (select committed_at from revision order by number desc limit 1))`;

function startOf(start: ChangesStart): RawBuilder<string | null> {
  if (start === null) return sql`0`;
  if ('since' in start) return endBefore(start.since);
  const { after } = start;
  if (after === LATEST) return sql`0`;
  const revision = revisionIn(after);
  if (revision !== null) return endOf(revision);
  return sql`case when ${isKnown(after)} then ${after.split('.')[1]}::bigint end`;
}

/**
 * Reads the newest revision and change in one statement. Later statements read up to them.
 * @param start its position is one as on the wire, `LATEST`, or `revision:` and a revision
 */
export async function tipOf(db: Kysely<Database>, start: ChangesStart): Promise<Tip> {
  const { rows } = await sql<Tip>`
    select s.epoch, ${NEWEST} as revision,
      coalesce((select concat_ws('.', c.number, r.commit_id)
        from (select first_seq + price_changes + points - 1 as number, revision
          from change_segment where first_seq is not null order by first_seq desc limit 1) as c
        join revision r on r.number = c.revision), '0') as number,
      (select json_object_agg(slug, id) from market) as markets,
      (${startOf(start)})::text as start,
      ${start !== null && 'since' in start ? isFuture(start.since) : sql`false`} as "isFuture"
    from service s`.execute(db);
  return onlyRow(rows);
}

/** Consecutive changes that one revision made to one price. */
export interface ChangeRun {
  readonly revision: string;
  /** Commit time of the revision, RFC 3339 in UTC. */
  readonly recordedAt: string;
  readonly priceId: number;
  readonly market: string;
  readonly code: string;
  readonly firstDate: string | null;
  readonly lastDate: string | null;
  /** Number of the first change. */
  readonly number: bigint;
  /** True if the first change is that of the price itself. */
  readonly hasPrice: boolean;
  /** Number of points of the segment before the run, and in the run. */
  readonly skipped: number;
  readonly points: number;
}

/** All changes that one revision made to one price: a row of `change_segment`. */
export interface ChangeSegment {
  readonly revision: string;
  readonly committed_at: string;
  readonly price_id: number;
  readonly market_id: number;
  readonly code: string;
  readonly first_seq: string;
  readonly price_changes: number;
  readonly points: number;
  readonly first_date: string | null;
  readonly last_date: string | null;
}

/** The changes of a page: those of some markets after one number, up to another. */
export interface PageRange {
  /** Slugs of the markets, by id. */
  readonly markets: ReadonlyMap<number, string>;
  readonly after: string;
  readonly until: string;
  /** The newest revision; see `requireCommit`. */
  readonly revision: string;
  /** Most changes. */
  readonly limit: number;
}

/** Most markets that are looked up one by one. */
const FEW = 8;

/**
 * The next segments of the wanted markets: at most `limit`, because each has at least one change.
 * Few markets are looked up one by one, which skips the segments of all others. Many markets are
 * read in the order of the feed. The ids are literals, because the planner needs to know how rare a
 * market is.
 */
function laterSegments({ markets, after, until, limit }: PageRange) {
  const part = (which: RawBuilder<unknown>) => sql`(select * from change_segment
    where ${which} and first_seq > ${after}::bigint and first_seq <= ${until}::bigint
    order by first_seq limit ${limit})`;
  const ids = [...markets.keys()];
  if (ids.length > FEW) return part(sql`market_id = any(${ids}::smallint[])`);
  return sql.join(
    ids.map((id) => part(sql`market_id = ${id}::smallint`)),
    sql` union all `,
  );
}

/** The code of a price, which it keeps for ever. */
export const priceCode = (id: RawBuilder<unknown>) => sql<string>`
  select code from price where id = ${id}
  union all select code from price_history where id = ${id}
  limit 1`;

/**
 * The segments with the wanted changes: the segment that contains `after`, and later ones until the
 * page is full.
 */
const segmentsOf = (db: Kysely<Database>, wanted: PageRange) =>
  sql<ChangeSegment>`
    with found as (
      (select * from change_segment where first_seq <= ${wanted.after}::bigint
        order by first_seq desc limit 1)
      union all ${laterSegments(wanted)}),
    unread as (
      select *, first_seq + price_changes + points
        - greatest(first_seq, ${wanted.after}::bigint + 1) as rest
      from found where market_id = any(${[...wanted.markets.keys()]}::smallint[])),
    counted as (
      select *, sum(rest) over (order by first_seq) - rest as before from unread where rest > 0)
    select concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id,
      c.market_id, p.code, c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
    from counted c join revision r on r.number = c.revision
      cross join lateral (${priceCode(sql`c.price_id`)}) as p
    where c.before < ${wanted.limit} and ${requireCommit(wanted.revision)}
    order by c.first_seq`.execute(db);

function runOf(
  segment: ChangeSegment,
  market: string,
  after: bigint,
  remaining: number,
): ChangeRun {
  const first = BigInt(segment.first_seq);
  const read = after < first ? 0 : Number(after - first + 1n);
  const hasPrice = read < segment.price_changes;
  const skipped = Math.max(0, read - segment.price_changes);
  return {
    revision: segment.revision,
    recordedAt: instantOf(segment.committed_at),
    priceId: segment.price_id,
    market,
    code: segment.code,
    firstDate: segment.first_date,
    lastDate: segment.last_date,
    number: first + BigInt(read),
    hasPrice,
    skipped,
    points: Math.min(segment.points - skipped, remaining - (hasPrice ? 1 : 0)),
  };
}

/** The number of changes of a run. */
export const lengthOf = ({ hasPrice, points }: ChangeRun): number => points + (hasPrice ? 1 : 0);

/** The number of the last change of a run, and its commit id. */
export const endOfRun = (run: ChangeRun): string =>
  `${run.number + BigInt(lengthOf(run) - 1)}.${commitIdOf(run.revision)}`;

/** Reads the runs of the wanted changes, in order. @throws errors of the database */
export async function runsOf(db: Kysely<Database>, wanted: PageRange): Promise<ChangeRun[]> {
  const { rows } = await segmentsOf(db, wanted);
  return runsIn(rows, wanted);
}

/** The wanted changes of segments, which are in the order of their numbers. */
export function runsIn(rows: readonly ChangeSegment[], wanted: PageRange): ChangeRun[] {
  const after = BigInt(wanted.after);
  const runs: ChangeRun[] = [];
  let remaining = wanted.limit;
  for (const segment of rows) {
    if (remaining === 0) break;
    const market = wanted.markets.get(segment.market_id) ?? '';
    const run = runOf(segment, market, after, remaining);
    runs.push(run);
    remaining -= lengthOf(run);
  }
  return runs;
}
