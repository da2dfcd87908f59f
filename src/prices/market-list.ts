import { type Kysely, sql } from 'kysely';
import { MARKETS } from '../catalog/markets.ts';
import { scopeOf } from '../catalog/scopes.ts';
import { filtersOf } from '../contract/market.ts';
import type { Database } from '../db/schema.ts';

interface Extent {
  readonly slug: string;
  readonly prices: number;
  readonly firstDate: string | null;
  readonly lastDate: string | null;
}

/** How many prices each market has and which days they span, now. */
async function extents(db: Kysely<Database>): Promise<ReadonlyMap<string, Extent>> {
  const end = (order: 'asc' | 'desc') => sql`(select date from series
    where price_id = price.id order by date ${sql.raw(order)} limit 1)`;
  const { rows } = await sql<Extent>`
    select market.slug, count(price.id)::int as prices,
      min(${end('asc')}) as "firstDate", max(${end('desc')}) as "lastDate"
    from market left join price on price.market_id = market.id
    group by market.slug`.execute(db);
  return new Map(rows.map((each) => [each.slug, each]));
}

/** The markets as a holder of some scopes sees them. */
export async function marketList(
  db: Kysely<Database>,
  isAuthorized: (scope: ReturnType<typeof scopeOf>) => boolean,
) {
  const found = await extents(db);
  return MARKETS.map((market) => {
    const extent = found.get(market.slug);
    const scope = scopeOf(market.slug);
    return {
      slug: market.slug,
      name: market.name,
      scope,
      filters: [...filtersOf(market), 'codes'],
      prices: extent?.prices ?? 0,
      firstDate: extent?.firstDate ?? null,
      lastDate: extent?.lastDate ?? null,
      authorized: isAuthorized(scope),
    };
  });
}
