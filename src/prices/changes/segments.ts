import { type Kysely, type RawBuilder, sql } from 'kysely';
import { instantOf } from '../../db/instant.ts';
import { NEWEST, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';

/** How far the feed goes at a moment. */
export interface Tip {
  readonly epoch: string;
  /** The newest revision, "0" when there is none. */
  readonly revision: string;
  /** Number of the newest change and the id of its commit; "0" when there is none. */
  readonly number: string;
  /** Ids of the markets, by slug. */
  readonly markets: Readonly<Record<string, number>>;
  /** Whether this database has the change of the position that was asked for. */
  readonly isKnown: boolean;
}

/**
 * Whether a change was made by the commit that its position names. An archive of some markets has
 * no segment of the others, whose commits lie between those of the segments around it.
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

/**
 * The newest revision and change, in one statement: what is read later is read up to them.
 * @param after a position on the wire, or null for the beginning
 */
export async function tipOf(db: Kysely<Database>, after: string | null): Promise<Tip> {
  const { rows } = await sql<Tip>`
    select s.epoch, ${NEWEST} as revision,
      coalesce((select concat_ws('.', c.number, r.commit_id)
        from (select first_seq + price_changes + points - 1 as number, revision
          from change_segment where first_seq is not null order by first_seq desc limit 1) as c
        join revision r on r.number = c.revision), '0') as number,
      (select json_object_agg(slug, id) from market) as markets,
      ${after === null ? sql`true` : isKnown(after)} as "isKnown"
    from service s`.execute(db);
  const [tip] = rows;
  if (!tip) throw new Error('the table service has no row');
  return tip;
}

/** A part of what one revision changed of one price, to be read in one go. */
export interface Stretch {
  readonly revision: string;
  /** When the revision was committed, RFC 3339 in UTC. */
  readonly recordedAt: string;
  readonly priceId: number;
  readonly market: string;
  readonly code: string;
  readonly firstDate: string | null;
  readonly lastDate: string | null;
  /** Number of the first change of the stretch. */
  readonly number: bigint;
  /** Whether the first change of the stretch is that of the price itself. */
  readonly hasPrice: boolean;
  /** Points of the segment that come before the stretch, and those that it takes. */
  readonly skipped: number;
  readonly points: number;
}

interface Segment {
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

/** What a page is made of: the changes of some markets after one number and up to another. */
interface Wanted {
  /** Slugs of the markets, by id. */
  readonly markets: ReadonlyMap<number, string>;
  readonly after: string;
  readonly until: string;
  /** The newest revision; see `requireCommit`. */
  readonly revision: string;
  /** The most changes. */
  readonly limit: number;
}

/** Up to so many markets are looked up one by one. */
const FEW = 8;

/**
 * The next segments of the wanted markets; at most `limit`, as each holds one change at least. A
 * few markets are looked up each by itself, so that those of others need not be passed over; many
 * are read as they come. The ids stand in the statement: how rare a market is decides its plan.
 */
function laterSegments({ markets, after, until, limit }: Wanted) {
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

/**
 * The segments that hold the wanted changes: the one in which `after` lies, and those after it, up
 * to the one with which the page is full.
 */
const segmentsOf = (db: Kysely<Database>, wanted: Wanted) =>
  sql<Segment>`
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
      cross join lateral (
        select code from price where id = c.price_id
        union all select code from price_history where id = c.price_id
        limit 1) as p
    where c.before < ${wanted.limit} and ${requireCommit(wanted.revision)}
    order by c.first_seq`.execute(db);

function stretchOf(segment: Segment, market: string, after: bigint, room: number): Stretch {
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
    points: Math.min(segment.points - skipped, room - (hasPrice ? 1 : 0)),
  };
}

/** How many changes a stretch holds. */
export const lengthOf = ({ hasPrice, points }: Stretch): number => points + (hasPrice ? 1 : 0);

/** The wanted changes, in order and as stretches. Throws what the database throws. */
export async function stretchesOf(db: Kysely<Database>, wanted: Wanted): Promise<Stretch[]> {
  const { rows } = await segmentsOf(db, wanted);
  const after = BigInt(wanted.after);
  const stretches: Stretch[] = [];
  let room = wanted.limit;
  for (const segment of rows) {
    if (room === 0) break;
    const market = wanted.markets.get(segment.market_id) ?? '';
    const stretch = stretchOf(segment, market, after, room);
    stretches.push(stretch);
    room -= lengthOf(stretch);
  }
  return stretches;
}
