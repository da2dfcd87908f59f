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
export const shownPath = (target: string): string =>
  pathOf(target).replace(SECRET, '[secret]').slice(0, SHOWN_MAX);
