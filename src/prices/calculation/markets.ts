import type { Kysely } from 'kysely';
import { MARKETS, type Market, type MarketSlug, marketOfPrefix } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import type { Database } from '../../db/schema.ts';
import type { CodeMarketsReader } from '../market/code-markets.ts';

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
  stored: CodeMarketsReader,
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
  const keys = rest.map(codeKey);
  const found = await stored(lazyDb, { keys, markets: readable, isElsewhere });
  const missing = rest.filter((code) => !found.has(codeKey(code)));
  const named = missing.map(codeKey).filter((key) => isReference.has(key));
  const slugs = MARKETS.map(({ slug }) => slug);
  const marketOfReference =
    named.length === 0
      ? new Map<string, Market>()
      : await stored(lazyDb, { keys: named, markets: slugs, isElsewhere });
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
