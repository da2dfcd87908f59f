import { holdsSecret, masked } from '../secrets.ts';

/** Longest path that is shown anywhere, in characters. */
const SHOWN_MAX = 256;

/** How often an address may have been escaped on its way. */
const ESCAPED_MAX = 3;

/**
 * The path of a request target: without query and fragment, and without scheme and authority,
 * which a client may write before it (RFC 9112, section 3.2.2).
 */
export const pathOf = (target: string): string =>
  target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '';

/** The path as logs and problems show it: without secrets, and not too long. */
export function shownPath(target: string): string {
  const path = pathOf(target);
  let read = path;
  // A key may be hidden behind percent escapes, and these behind others.
  for (let times = 0; times < ESCAPED_MAX; times += 1) read = decoded(read);
  if (holdsSecret(path) || holdsSecret(read)) return masked(read).slice(0, SHOWN_MAX);
  return path.slice(0, SHOWN_MAX);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path.replace(/%([0-7][0-9a-f])/gi, (_escape, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}
