import { distance } from 'fastest-levenshtein';
import { isScope, SCOPES, type Scope } from '../catalog/scopes.ts';

/** A text that is not a scope. The message is one line for a terminal. */
export class UnknownScopeError extends Error {
  override readonly name = 'UnknownScopeError';
}

/** The scope that was probably meant, or undefined when none is near. */
function nearestScope(text: string): Scope | undefined {
  const folded = text.trim().toLowerCase();
  const full = folded.includes(':') ? folded : `prices:${folded}`;
  const ranked = SCOPES.map((scope) => ({ scope, far: distance(full, scope) }));
  const [best] = ranked.sort((a, b) => a.far - b.far);
  return best !== undefined && best.far <= 3 ? best.scope : undefined;
}

/**
 * The scopes named by texts, each once, in the order of the catalog.
 * @throws UnknownScopeError naming the first text that is not a scope, and the nearest one
 */
export function scopesOf(texts: readonly string[]): Scope[] {
  const unknown = texts.find((text) => !isScope(text));
  if (unknown !== undefined) {
    const nearest = nearestScope(unknown);
    const hint =
      nearest === undefined ? `the scopes are ${SCOPES.join(', ')}` : `did you mean "${nearest}"?`;
    throw new UnknownScopeError(`"${unknown.slice(0, 64)}" is not a scope; ${hint}`);
  }
  return SCOPES.filter((scope) => texts.includes(scope));
}
