import { MARKETS, type MarketSlug } from './markets.ts';

/** Opens every market. */
export const ALL_MARKETS = 'prices:*';

export type Scope = `prices:${MarketSlug}` | typeof ALL_MARKETS;

/** The scope that opens one market: `prices:<slug>`, compared to the letter. */
export const scopeOf = (slug: MarketSlug): Scope => `prices:${slug}`;

/** Every scope there is. */
export const SCOPES: readonly Scope[] = [...MARKETS.map((each) => scopeOf(each.slug)), ALL_MARKETS];

const known: ReadonlySet<string> = new Set(SCOPES);

/** Whether a text is one of the scopes; nothing is trimmed, folded or globbed. */
export const isScope = (text: string): text is Scope => known.has(text);

/** Whether a holder of `held` may read the market of `needed`. */
export const allows = (held: ReadonlySet<string>, needed: Scope): boolean =>
  held.has(needed) || held.has(ALL_MARKETS);

/** The markets that a holder of `held` may read, in the order of the catalog. */
export const marketsOpenTo = (held: ReadonlySet<string>): MarketSlug[] =>
  MARKETS.map(({ slug }) => slug).filter((slug) => allows(held, scopeOf(slug)));
