/**
 * What looks like an API key or a token, to the end of its word, whatever is wrong with it. A token
 * begins a word, so that a long text is looked through once.
 */
const SECRET = /cps_(?:live|test)_[^\s/"]+|(?<![\w-])eyJ[\w-]*\.[\w-]+\.[^\s/"]*/g;

/** Whether a text looks as if it held an API key or a token. */
export const holdsSecret = (text: string): boolean => text.search(SECRET) >= 0;

/** The text without what looks like an API key or a token. */
export const masked = (text: string): string => text.replace(SECRET, '[secret]');
