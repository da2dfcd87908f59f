import { distance } from 'fastest-levenshtein';
import { matchKey } from '../catalog/match-key.ts';

/** Up to three names that look like what was written, best first. */
export function nearest(written: string, names: Iterable<string>): string[] {
  const key = matchKey(written.slice(0, 128));
  const scored: { name: string; score: number }[] = [];
  for (const name of names) {
    const candidate = matchKey(name);
    const score = distance(key, candidate);
    const near = score <= Math.max(2, Math.ceil(candidate.length / 3));
    if (near || (key.length >= 3 && candidate.includes(key))) scored.push({ name, score });
  }
  scored.sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1));
  return scored.slice(0, 3).map((each) => each.name);
}

/** A sentence that offers the nearest names; empty when none is near. */
export function offer(written: string, names: Iterable<string>): string {
  const found = nearest(written, names).map((name) => `"${name}"`);
  return found.length === 0 ? '' : `; did you mean ${found.join(' or ')}?`;
}
