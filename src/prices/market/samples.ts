import { type Kysely, sql } from 'kysely';
import { MARKETS, type Market } from '../../catalog/markets.ts';
import { type DataRevision, numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { SEED_FORMAT } from '../../db/seed/format.ts';
import { cachedByRevision } from '../../db/shared-work.ts';

/**
 * Reads the ids of the sample prices of a market at a revision: prices that seeds have made,
 * without any point of another origin. The batch of a point decides, because nobody can edit it: a
 * description can be edited, and own numbers can be loaded under the code of a sample.
 *
 * The aggregate makes PostgreSQL read the points of one price by their index. With `not exists`, it
 * joins each price with the points of all markets.
 */
async function samplesOf(
  db: Kysely<Database>,
  { slug }: Market,
  revision: string,
): Promise<ReadonlySet<number>> {
  const at = numberIn(revision);
  const { rows } = await sql<{ id: number }>`
    with seeded as (
      select distinct g.price_id as id
      from load_batch as b join change_segment as g on g.revision = b.revision
      where b.format = ${SEED_FORMAT} and g.revision <= ${at}
        and g.market_id = (select id from market where slug = ${slug}))
    select id from seeded
      cross join lateral (
        select count(*) as points
        from series_at(${at}) as s left join load_batch as own on own.id = s.batch_id
        where s.price_id = seeded.id and own.format is distinct from ${SEED_FORMAT}) as others
    where others.points = 0 and ${requireCommit(revision)}`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Reads the ids of the sample prices of a market at a data revision. */
export type SamplesReader = (market: Market, data: DataRevision) => Promise<ReadonlySet<number>>;

/** Cached sets of ids: the newest of each market, and one before. */
const CACHED = 2 * MARKETS.length;

/**
 * A reader with an LRU cache.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 */
export const samplesReader = (shared: Kysely<Database>): SamplesReader =>
  cachedByRevision(
    CACHED,
    (market, { epoch, revision }) => `${market.slug} ${epoch}.${revision}`,
    (market, { revision }) => samplesOf(shared, market, revision),
  );
