import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { MARKETS, type MarketSlug } from './markets.ts';
import { nearest } from './nearest.ts';

/** The scope of all markets. */
export const ALL_MARKETS = 'prices:*';

export type Scope = `prices:${MarketSlug}` | typeof ALL_MARKETS;

/** The scope of one market: `prices:<slug>`, compared exactly. */
export const scopeOf = (slug: MarketSlug): Scope => `prices:${slug}`;

/** All scopes. */
export const SCOPES: readonly Scope[] = [...MARKETS.map((each) => scopeOf(each.slug)), ALL_MARKETS];

const known: ReadonlySet<string> = new Set(SCOPES);

/** True if a text is exactly one of the scopes. */
const isScope = (text: string): text is Scope => known.has(text);

/** True if the scopes `held` allow the market of `needed`. */
export const allows = (held: ReadonlySet<string>, needed: Scope): boolean =>
  held.has(needed) || held.has(ALL_MARKETS);

/** The markets that the scopes `held` allow, in the order of the catalog. */
export const marketsOpenTo = (held: ReadonlySet<string>): MarketSlug[] =>
  MARKETS.map(({ slug }) => slug).filter((slug) => allows(held, scopeOf(slug)));

/** A text that is not a scope. The message is one line for a terminal. */
export class UnknownScopeError extends ExpectedError {
  override readonly name = 'UnknownScopeError';
  override readonly exitCode = EXIT.usage;
}

/** The common prefix of all scopes, not compared for suggestions. */
const PREFIX = 'prices:';

/** The most similar scope; undefined if none is similar. */
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
