import { maskedEscaped } from '../secrets.ts';

/** Longest path that is shown anywhere, in characters. */
const SHOWN_MAX = 256;

/**
 * The path of a request target: without query and fragment, and without scheme and authority,
 * which a client may write before it (RFC 9112, section 3.2.2).
 */
export const pathOf = (target: string): string =>
  target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '';

/** The path as logs and problems show it: without secrets, and not too long. */
export const shownPath = (target: string): string =>
  maskedEscaped(pathOf(target)).slice(0, SHOWN_MAX);
