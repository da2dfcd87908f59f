import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { ChangeOperation } from '../../contract/schemas/changes.ts';
import { requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import {
  type ChangeRun,
  type ChangeSegment,
  endOfRun,
  lengthOf,
  type PageRange,
  priceCode,
  runsIn,
} from './segments.ts';

/*
 * Pages of some prices or some kinds of changes. A segment does not record the kinds of its
 * changes, so the feed is examined in windows: a statement reads the next segments of the wanted
 * markets or prices, and drops those that cannot have a wanted change. The caller reads the changes
 * of the others and drops the unwanted ones.
 */

/** Reads the next window after `wanted.after`. @throws errors of the database */
export async function windowOf(db: Kysely<Database>, wanted: FilteredRange): Promise<Window> {
  if ((wanted.prices?.length ?? wanted.markets.size) === 0) return { runs: [], end: null };
  // Without kinds every change of a candidate is wanted.
  const limit = wanted.operations === null ? wanted.limit : CHANGES;
  const { rows } = await windowStatement(wanted, limit).execute(db);
  const segments = rows.flatMap((row) => (row.price_id === null ? [] : [row]));
  const runs = runsIn(segments, { ...wanted, limit });
  const last = runs.at(-1);
  const length = runs.reduce((sum, run) => sum + lengthOf(run), 0);
  if (last !== undefined && length === limit) return { runs, end: endOfRun(last) };
  return { runs, end: rows[0]?.end ?? null };
}

/** Segments that one window examines. */
const EXAMINED = 10_000;

/** Most changes of the candidates of one window. */
const CHANGES = 5_000;

/** The changes of a page: those of some prices, or of some kinds. */
export interface FilteredRange extends PageRange {
  /** Ids of the wanted prices; null for all prices of the markets. */
  readonly prices: readonly number[] | null;
  /** The wanted kinds of changes; null for all. */
  readonly operations: readonly ChangeOperation[] | null;
}

/** A part of the feed. */
interface Window {
  /** Changes in the order of the feed, among them all wanted ones. */
  readonly runs: readonly ChangeRun[];
  /** The number of its last change and the id of the commit; null for the end of the feed. */
  readonly end: string | null;
}

/**
 * The number of points that a segment corrected or withdrew. A scalar subquery: the planner turns
 * a condition with `exists` into a hash of the whole history.
 */
const SUPERSEDED = sql`(select count(*) from (
    select from series_history h where h.price_id = c.price_id and h.revision_to = c.revision
    limit c.points) as h)`;

const HAS_SUPERSEDED = sql`(select true from series_history h
    where h.price_id = c.price_id and h.revision_to = c.revision limit 1)`;

/** The condition that a segment can have a change of some kinds. */
function canHave(operations: readonly ChangeOperation[] | null): RawBuilder<unknown> {
  if (operations === null) return sql`true`;
  const wants = (...some: readonly ChangeOperation[]) =>
    some.some((each) => operations.includes(each));
  const conditions: RawBuilder<unknown>[] = [];
  if (wants('price-added', 'price-changed', 'withdrawn')) conditions.push(sql`c.price_changes = 1`);
  if (wants('corrected', 'withdrawn')) conditions.push(sql`c.points > 0 and ${HAS_SUPERSEDED}`);
  if (wants('published')) conditions.push(sql`c.points > ${SUPERSEDED}`);
  return sql.join(
    conditions.map((each) => sql`(${each})`),
    sql` or `,
  );
}

/**
 * The next segments of each wanted price or market, at most `quota` of each, with their places. The
 * segments of a price are found by their revisions, since no index has both the price and the
 * number.
 */
function partsOf({ prices, markets, after, until }: FilteredRange, quota: number) {
  const numbers = sql`first_seq > ${after}::bigint and first_seq <= ${until}::bigint`;
  const placed = sql`row_number() over (partition by c.price_id order by c.first_seq) as place`;
  if (prices !== null) {
    return sql`select c.*, ${placed}
      from unnest(${[...prices]}::integer[]) as wanted (id)
      cross join lateral (select * from change_segment
        where price_id = wanted.id and ${numbers} and revision >= coalesce((
          select revision from change_segment where first_seq <= ${after}::bigint
          order by first_seq desc limit 1), 0)
        order by revision limit ${quota}) as c`;
  }
  return sql.join(
    [...markets.keys()].map(
      (id) => sql`select c.*, row_number() over (order by c.first_seq) as place
        from (select * from change_segment where market_id = ${id}::smallint and ${numbers}
          order by first_seq limit ${quota}) as c`,
    ),
    sql` union all `,
  );
}

/** A row of the statement: a candidate, or only the end of the window. */
type WindowRow = { readonly end: string | null } & (
  | ChangeSegment
  | Readonly<Record<keyof ChangeSegment, null>>
);

/**
 * The statement of a window. Where a price or a market has as many segments as were read, further
 * ones may follow, so the window ends at the first such place.
 */
function windowStatement(wanted: FilteredRange, changesMax: number) {
  const groups = wanted.prices?.length ?? wanted.markets.size;
  const quota = Math.max(1, Math.ceil(EXAMINED / groups));
  const isWanted =
    wanted.prices === null
      ? sql`c.market_id = any(${[...wanted.markets.keys()]}::smallint[])`
      : sql`c.price_id = any(${[...wanted.prices]}::integer[])`;
  const columns = sql`c.revision, c.price_id, c.market_id, c.first_seq, c.price_changes, c.points,
    c.first_date, c.last_date`;
  return sql<WindowRow>`
    with parts as materialized (${partsOf(wanted, quota)}),
    bound as materialized (
      select first_seq, concat_ws('.', first_seq + price_changes + points - 1, r.commit_id) as end
      from parts join revision r on r.number = parts.revision
      where place = ${quota} order by first_seq limit 1),
    examined as (
      (select ${columns} from change_segment c where first_seq <= ${wanted.after}::bigint
        order by first_seq desc limit 1)
      union all
      select ${columns} from parts c
        where c.first_seq <= coalesce((select first_seq from bound), ${wanted.until}::bigint)),
    candidates as (
      select c.*, c.first_seq + c.price_changes + c.points
        - greatest(c.first_seq, ${wanted.after}::bigint + 1) as rest
      from examined c
      where ${isWanted}
        and c.first_seq + c.price_changes + c.points > ${wanted.after}::bigint + 1
        and (${canHave(wanted.operations)})),
    counted as (
      select *, sum(rest) over (order by first_seq) - rest as before from candidates)
    select (select bound.end from bound) as end,
      concat_ws('.', c.revision, r.commit_id) as revision, r.committed_at, c.price_id, c.market_id,
      (${priceCode(sql`c.price_id`)}) as code,
      c.first_seq, c.price_changes, c.points, c.first_date, c.last_date
    from (values (1)) as one
      left join (counted c join revision r on r.number = c.revision and c.before < ${changesMax})
        on true
    where ${requireCommit(wanted.revision)}
    order by c.first_seq`;
}
