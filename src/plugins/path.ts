/** Longest path that is shown anywhere, in characters. */
const SHOWN_MAX = 256;

/** What looks like an API key or a token: somebody may have put one into the address. */
const SECRET = /cps_(?:live|test)_\w+|eyJ[\w-]*\.[\w-]+\.[\w-]*/g;

/**
 * The path of a request target: without query and fragment, and without scheme and authority,
 * which a client may write before it (RFC 9112, section 3.2.2).
 */
export const pathOf = (target: string): string =>
  target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '';

/** The path as logs and problems show it: without secrets, and not too long. */
export function shownPath(target: string): string {
  const path = pathOf(target);
  // A key may be hidden behind percent escapes.
  const shown = holdsSecret(decoded(path)) ? decoded(path).replace(SECRET, '[secret]') : path;
  return shown.slice(0, SHOWN_MAX);
}

/** Whether a text looks as if it held an API key or a token. */
export const holdsSecret = (text: string): boolean => text.search(SECRET) >= 0;

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path.replace(/%([0-7][0-9a-f])/gi, (_escape, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}
