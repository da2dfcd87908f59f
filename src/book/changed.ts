import type { Reads } from '../db/reads.ts';
import { commitIdOf, numberOf } from '../db/revisions.ts';

/** What changed of one price between two revisions. */
export interface ChangedPrice {
  readonly priceId: number;
  /** The days between which its points changed; null where none did. */
  readonly first: string | null;
  readonly last: string | null;
  /** How many points changed. */
  readonly points: number;
}

/** Prepared once on each connection: planning it takes longer than answering it. */
const CHANGED = {
  name: 'changed_prices',
  text: `select price_id as "priceId", min(first_date) as first, max(last_date) as last,
      sum(points)::int as points
    from change_segment
    where revision > $1::bigint and revision <= $2::bigint and require_commit($2, $4)
      and market_id = (select id from market where slug = $3)
    group by price_id`,
};

/** What changed of the prices of a market after one revision, up to another. */
export const changedPrices = (
  ask: Reads['query'],
  slug: string,
  after: string,
  until: string,
  signal: AbortSignal,
): Promise<readonly ChangedPrice[]> => {
  const values = [numberOf(after), numberOf(until), slug, commitIdOf(until)];
  return ask({ ...CHANGED, values }, signal);
};
