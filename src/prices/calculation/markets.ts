import { type Kysely, sql } from 'kysely';
import {
  MARKETS,
  type Market,
  type MarketSlug,
  marketOf,
  marketOfPrefix,
} from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import type { Database } from '../../db/schema.ts';

/** The markets of the codes of a calculation. */
interface CodeMarkets {
  /** By the keys of the codes. */
  readonly known: ReadonlyMap<string, Market>;
  /** The markets that the codes name by their prefixes, and that the principal cannot read. */
  readonly closed: readonly Market[];
  /** The codes that no readable market has, as sent. */
  readonly unknown: readonly string[];
}

/**
 * Finds the market of each code among those that the principal can read. Only the form of a code
 * decides whether it is of a closed market, so that nothing shows which codes a closed market has.
 * @param isElsewhere the keys of codes that the market of their prefix turned out not to have
 * @param isReference the keys of codes that a readable payable names: their market is no secret
 */
export async function codeMarkets(
  lazyDb: () => Kysely<Database>,
  codes: readonly string[],
  readable: readonly MarketSlug[],
  isElsewhere: ReadonlySet<string>,
  isReference: ReadonlySet<string>,
): Promise<CodeMarkets> {
  const known = new Map<string, Market>();
  for (const code of codes) {
    const market = marketOfPrefix(code);
    const isNamed = market !== undefined && readable.includes(market.slug);
    if (isNamed && !isElsewhere.has(codeKey(code))) known.set(codeKey(code), market);
  }
  const rest = codes.filter((code) => !known.has(codeKey(code)));
  if (rest.length === 0) return { known, closed: [], unknown: [] };
  const found = await storedMarkets(lazyDb(), rest.map(codeKey), readable);
  const missing = rest.filter((code) => !found.has(codeKey(code)));
  const named = missing.map(codeKey).filter((key) => isReference.has(key));
  const slugs = MARKETS.map(({ slug }) => slug);
  const marketOfReference =
    named.length === 0 ? new Map() : await storedMarkets(lazyDb(), named, slugs);
  const closedOf = (code: string): Market | undefined => {
    const market = marketOfReference.get(codeKey(code)) ?? marketOfPrefix(code);
    return market === undefined || readable.includes(market.slug) ? undefined : market;
  };
  return {
    known: new Map([...known, ...found]),
    closed: [...new Set(missing.flatMap((code) => closedOf(code) ?? []))],
    unknown: missing.filter((code) => closedOf(code) === undefined),
  };
}

/**
 * The markets of codes, by the keys of the codes. A removed price has a market too: an old revision
 * still has it. The market of a code never changes while the price exists.
 */
async function storedMarkets(
  db: Kysely<Database>,
  keys: readonly string[],
  readable: readonly MarketSlug[],
): Promise<ReadonlyMap<string, Market>> {
  const { rows } = await sql<{ key: string; slug: string }>`
    select p.code_key as key, market.slug
    from (select code_key, market_id, true as "isPresent" from price
      union all select code_key, market_id, false from price_history) as p
      join market on market.id = p.market_id
    where p.code_key = any(${[...keys]}::text[])
      and market.slug = any(${[...readable]}::text[])
    order by p."isPresent"`.execute(db);
  return new Map(rows.map(({ key, slug }) => [key, marketOf(slug) as Market]));
}
