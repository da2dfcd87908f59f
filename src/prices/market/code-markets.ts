import { type Kysely, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { type Market, type MarketSlug, marketOf } from '../../catalog/markets.ts';
import type { Database } from '../../db/schema.ts';

/** A request for the markets of codes. */
interface SoughtCodes {
  /** See `codeKey`. */
  readonly keys: readonly string[];
  /** The only markets that may be found. */
  readonly markets: readonly MarketSlug[];
  /** Keys whose known market turned out not to have them. */
  readonly isElsewhere: ReadonlySet<string>;
}

/** Finds the markets of codes, by their keys. A code of no market is absent. */
export type CodeMarketsReader = (
  lazyDb: () => Kysely<Database>,
  sought: SoughtCodes,
) => Promise<ReadonlyMap<string, Market>>;

/** Codes whose markets are remembered, of some 100 bytes each. */
const REMEMBERED = 20_000;

/** A reader that remembers the market of each code that it found. */
export function codeMarketsReader(): CodeMarketsReader {
  const remembered = new LRUCache<string, Market>({ max: REMEMBERED });
  return async (lazyDb, { keys, markets, isElsewhere }) => {
    const found = new Map<string, Market>();
    for (const key of keys) {
      const market = isElsewhere.has(key) ? undefined : remembered.get(key);
      if (market !== undefined && markets.includes(market.slug)) found.set(key, market);
    }
    const rest = keys.filter((key) => !found.has(key));
    if (rest.length === 0) return found;
    for (const [key, market] of await storedMarkets(lazyDb(), rest, markets)) {
      found.set(key, market);
      remembered.set(key, market);
    }
    return found;
  };
}

/**
 * The markets of codes. A removed price has a market too: an old revision still has it. The market
 * of a code never changes while the price exists.
 */
async function storedMarkets(
  db: Kysely<Database>,
  keys: readonly string[],
  markets: readonly MarketSlug[],
): Promise<ReadonlyMap<string, Market>> {
  const { rows } = await sql<{ key: string; slug: string }>`
    select p.code_key as key, market.slug
    from (select code_key, market_id, true as "isPresent" from price
      union all select code_key, market_id, false from price_history) as p
      join market on market.id = p.market_id
    where p.code_key = any(${[...keys]}::text[])
      and market.slug = any(${[...markets]}::text[])
    order by p."isPresent"`.execute(db);
  return new Map(rows.map(({ key, slug }) => [key, marketOf(slug) as Market]));
}
