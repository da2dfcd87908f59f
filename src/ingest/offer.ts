import { nearest } from '../catalog/nearest.ts';

/** A sentence that offers up to three names that look like what was written; empty if none does. */
export function offer(written: string, names: Iterable<string>): string {
  const found = nearest(written, names, 3).map((name) => `"${name}"`);
  return found.length === 0 ? '' : `; did you mean ${found.join(' or ')}?`;
}
