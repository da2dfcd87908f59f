import { MARKETS, type MarketSlug } from './markets.ts';
import { nearest } from './nearest.ts';

/** Opens every market. */
export const ALL_MARKETS = 'prices:*';

export type Scope = `prices:${MarketSlug}` | typeof ALL_MARKETS;

/** The scope that opens one market: `prices:<slug>`, compared to the letter. */
export const scopeOf = (slug: MarketSlug): Scope => `prices:${slug}`;

/** Every scope there is. */
export const SCOPES: readonly Scope[] = [...MARKETS.map((each) => scopeOf(each.slug)), ALL_MARKETS];

const known: ReadonlySet<string> = new Set(SCOPES);

/** Whether a text is one of the scopes; nothing is trimmed, folded or globbed. */
const isScope = (text: string): text is Scope => known.has(text);

/** Whether a holder of `held` may read the market of `needed`. */
export const allows = (held: ReadonlySet<string>, needed: Scope): boolean =>
  held.has(needed) || held.has(ALL_MARKETS);

/** The markets that a holder of `held` may read, in the order of the catalog. */
export const marketsOpenTo = (held: ReadonlySet<string>): MarketSlug[] =>
  MARKETS.map(({ slug }) => slug).filter((slug) => allows(held, scopeOf(slug)));

/** A text that is not a scope. The message is one line for a terminal. */
export class UnknownScopeError extends Error {
  override readonly name = 'UnknownScopeError';
  readonly exitCode = 2;
}

/** What all scopes begin with; it says nothing about which one was meant. */
const PREFIX = 'prices:';

/** The scope that was probably meant, or undefined when none is near. */
function nearestScope(text: string): string | undefined {
  const folded = text.trim().toLowerCase();
  const sent = folded.startsWith(PREFIX) ? folded.slice(PREFIX.length) : folded;
  const names = SCOPES.map((scope) => scope.slice(PREFIX.length));
  const [best] = nearest(sent, names, 1);
  return best === undefined ? undefined : PREFIX + best;
}

/**
 * The scopes named by texts, each once, in the order of the catalog.
 * @throws UnknownScopeError naming the first text that is not a scope, and the nearest one
 */
export function scopesOf(texts: readonly string[]): Scope[] {
  const unknown = texts.find((text) => !isScope(text));
  if (unknown !== undefined) {
    const near = nearestScope(unknown);
    const hint =
      near === undefined ? `the scopes are ${SCOPES.join(', ')}` : `did you mean "${near}"?`;
    throw new UnknownScopeError(`"${unknown.slice(0, 64)}" is not a scope; ${hint}`);
  }
  return SCOPES.filter((scope) => texts.includes(scope));
}
