import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { ChangeOperation } from '../../contract/schemas/changes.ts';
import { instantOf } from '../../db/instant.ts';
import type { Database } from '../../db/schema.ts';
import { priceCode } from './segments.ts';

/** Counts of changes by their kind; kinds without a change are absent. */
export type ChangeCounts = Readonly<Partial<Record<ChangeOperation, number>>>;

/** The changes that a commit made to one price. */
interface CommittedPrice {
  readonly market: string;
  readonly code: string;
  /** Numbers of the first and the last change in the feed. */
  readonly first: string;
  readonly last: string;
  readonly counts: ChangeCounts;
}

/** A commit with its changes, in the order of the feed. */
export interface Commit {
  /** Its revision and the one before, each with its commit id; "0" before the first. */
  readonly revision: string;
  readonly previous: string;
  /** RFC 3339 in UTC. */
  readonly recordedAt: string;
  readonly prices: readonly CommittedPrice[];
}

/** Most prices that a statement counts: a commit may have changed every point of every price. */
const SLICE = 100;

/**
 * Reads the first commit after a revision, and counts its changes by kind without reading values.
 * @param after number of a revision; 0 for the beginning
 * @returns null if there is none, or if the signal was aborted meanwhile
 */
export async function commitAfter(
  db: Kysely<Database>,
  after: string,
  signal?: AbortSignal,
): Promise<Commit | null> {
  const { rows: revisions } = await sql<RevisionRow>`
    select r.number, concat_ws('.', r.number, r.commit_id) as revision, r.committed_at,
      coalesce((select concat_ws('.', b.number, b.commit_id) from revision b
        where b.number = r.number - 1), '0') as previous
    from revision r where r.number > ${after}::bigint order by r.number limit 1`.execute(db);
  const [found] = revisions;
  if (found === undefined) return null;
  const prices: CommittedPrice[] = [];
  let counted = '0';
  for (let hasMore = true; hasMore; ) {
    if (signal?.aborted) return null;
    const { rows } = await segmentsAfter(sql`${found.number}::bigint`, counted).execute(db);
    for (const { id, market, code, first, last, ...counts } of rows) {
      prices.push({ market, code, first, last, counts: countsOf(counts) });
      counted = id;
    }
    hasMore = rows.length === SLICE;
  }
  prices.sort((a, b) => (BigInt(a.first) < BigInt(b.first) ? -1 : 1));
  return {
    revision: found.revision,
    previous: found.previous,
    recordedAt: instantOf(found.committed_at),
    prices,
  };
}

interface RevisionRow {
  readonly number: string;
  readonly revision: string;
  readonly committed_at: string;
  readonly previous: string;
}

/** Counts of one segment. */
interface SegmentCounts {
  readonly points: number;
  /** Points of an earlier revision that this one corrected or withdrew, and those corrected. */
  readonly superseded: number;
  readonly corrected: number;
  readonly price_changes: number;
  /** True if the price existed before and after the commit. */
  readonly had_price: boolean;
  readonly has_price: boolean;
}

type SegmentRow = SegmentCounts & Omit<CommittedPrice, 'counts'> & { readonly id: string };

/**
 * The segments of a revision after a price id, with the numbers that tell the kinds of their
 * changes apart. Only superseded points are looked up, so that a first load of any size is counted
 * by its segments.
 */
const segmentsAfter = (revision: RawBuilder<unknown>, after: string) => sql<SegmentRow>`
  select c.price_id::text as id, m.slug as market, (${priceCode(sql`c.price_id`)}) as code,
    c.first_seq as first,
    c.first_seq + c.price_changes + c.points - 1 as last, c.points, c.price_changes,
    h.superseded, h.corrected,
    exists (select from price_history where id = c.price_id and revision_to = ${revision})
      as had_price,
    exists (select from price where id = c.price_id and revision <= ${revision}
      union all select from price_history
        where id = c.price_id and revision <= ${revision} and revision_to > ${revision})
      as has_price
  from (select * from change_segment
      where revision = ${revision} and price_id > ${after}::integer and first_seq is not null
      order by price_id limit ${SLICE}::integer) as c
    join market m on m.id = c.market_id
    cross join lateral (
      select count(*)::integer as superseded,
        (count(*) filter (where exists (select from series s
          where s.price_id = h.price_id and s.date = h.date and s.revision = ${revision}
          union all select from series_history later where later.price_id = h.price_id
            and later.date = h.date and later.revision = ${revision})))::integer as corrected
      from series_history h
      where h.price_id = c.price_id and h.revision_to = ${revision}) as h
  order by c.price_id`;

function countsOf(row: SegmentCounts): ChangeCounts {
  const { points, superseded, corrected, price_changes: ofPrice } = row;
  const isAdded = ofPrice > 0 && !row.had_price && row.has_price;
  const isChanged = ofPrice > 0 && row.had_price && row.has_price;
  const isWithdrawn = ofPrice > 0 && !row.has_price;
  const counts: Record<ChangeOperation, number> = {
    'price-added': isAdded ? 1 : 0,
    'price-changed': isChanged ? 1 : 0,
    published: points - superseded,
    corrected,
    withdrawn: superseded - corrected + (isWithdrawn ? 1 : 0),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}
