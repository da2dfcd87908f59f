import { type Kysely, sql } from 'kysely';
import type { Database } from '../db/schema.ts';

/** What changed of one price between two revisions. */
export interface ChangedPrice {
  readonly priceId: number;
  /** The days between which its points changed; null where none did. */
  readonly first: string | null;
  readonly last: string | null;
  /** How many points changed. */
  readonly points: number;
}

/** What changed of the prices of a market after one revision, up to another. */
export async function changedPrices(
  db: Kysely<Database>,
  slug: string,
  after: string,
  until: string,
): Promise<readonly ChangedPrice[]> {
  const { rows } = await sql<ChangedPrice>`
    select price_id as "priceId", min(first_date) as first, max(last_date) as last,
      sum(points)::int as points
    from change_segment
    where revision > ${after}::bigint and revision <= ${until}::bigint
      and market_id = (select id from market where slug = ${slug})
    group by price_id`.execute(db);
  return rows;
}
