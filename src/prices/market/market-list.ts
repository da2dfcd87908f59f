import { type Kysely, sql } from 'kysely';
import { MARKETS } from '../../catalog/markets.ts';
import { scopeOf } from '../../catalog/scopes.ts';
import { filtersOf } from '../../contract/schemas/market.ts';
import { instantOf } from '../../db/instant.ts';
import type { NewestRevision } from '../../db/newest-revision.ts';
import { requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';

interface MarketExtent {
  readonly slug: string;
  readonly prices: number;
  readonly firstDate: string | null;
  readonly lastDate: string | null;
  /** Newest publication of the latest points, as PostgreSQL prints it. */
  readonly publishedAt: string | null;
}

/** The extent of each market, by slug. */
type Extents = ReadonlyMap<string, MarketExtent>;

/**
 * The current number of prices of each market and the first and last day of their points.
 * @param revision the server must have its commit, see `requireCommit`
 */
export async function extentsNow(db: Kysely<Database>, revision = '0'): Promise<Extents> {
  const end = (column: 'date' | 'published_at', order: 'asc' | 'desc') =>
    sql`(select series.${sql.raw(column)} from series
    where price_id = price.id order by date ${sql.raw(order)} limit 1)`;
  const { rows } = await sql<MarketExtent>`
    select market.slug, count(price.id)::int as prices,
      min(${end('date', 'asc')}) as "firstDate", max(${end('date', 'desc')}) as "lastDate",
      max(${end('published_at', 'desc')}) as "publishedAt"
    from market left join price on price.market_id = market.id
    where ${requireCommit(revision)}
    group by market.slug`.execute(db);
  return new Map(rows.map((each) => [each.slug, each]));
}

/**
 * A reader that caches the extents at the newest revision, because the query reads both ends of
 * every series. It reads after the revision check, so its result is never older.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 */
export const extentReader = (
  shared: Kysely<Database>,
): ((newest: NewestRevision) => Promise<Extents>) =>
  cachedByRevision(
    1,
    ({ epoch, revision }) => `${epoch}.${revision}`,
    ({ revision }) => extentsNow(shared, revision),
  );

/** The markets as a credential sees them: unauthorized markets have only their names. */
export function marketList(
  extents: Extents,
  isAuthorized: (scope: ReturnType<typeof scopeOf>) => boolean,
) {
  return MARKETS.map((market) => {
    const { slug, name } = market;
    const scope = scopeOf(slug);
    if (!isAuthorized(scope)) return { slug, name, scope, authorized: false };
    const extent = extents.get(slug);
    return {
      slug,
      name,
      scope,
      filters: [...filtersOf(market), 'codes'],
      prices: extent?.prices ?? 0,
      firstDate: extent?.firstDate ?? null,
      lastDate: extent?.lastDate ?? null,
      latestPublishedAt: extent?.publishedAt ? instantOf(extent.publishedAt) : null,
      authorized: true,
    };
  });
}
