/** What looks like an API key, to the end of its word, whatever is wrong with it. */
const KEY = /cps_(?:live|test)_[^\s/"]+/g;

/**
 * Three parts with dots between them, which a token is where one of them is the base64url of a JSON
 * object. It begins a word, so that a long text is looked through once.
 */
const DOTTED = /(?<![\w-])[\w-]+\.[\w-]+\.[^\s/"]*/g;

/** How the base64url of a JSON object begins. */
const OBJECT = 'eyJ';

const MASK = '[secret]';

/** How often a text may have been escaped on its way. */
const ESCAPED_MAX = 3;

/** The text without what looks like an API key or a token. */
export function masked(text: string): string {
  const keyless = text.includes('cps_') ? text.replace(KEY, MASK) : text;
  if (!keyless.includes(OBJECT)) return keyless;
  return keyless.replace(DOTTED, (word) => (word.includes(OBJECT) ? MASK : word));
}

/** True if a text looks as if it held an API key or a token. */
export const holdsSecret = (text: string): boolean => masked(text) !== text;

/**
 * The same of a part of an address: a key may be hidden behind percent escapes, and these behind
 * others. The text is as it was where nothing is hidden.
 */
export function maskedEscaped(text: string): string {
  const plain = masked(text);
  let read = plain;
  for (let times = 0; times < ESCAPED_MAX; times += 1) read = decoded(read);
  return holdsSecret(read) ? masked(read) : plain;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/%([0-7][0-9a-f])/gi, (_escape, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}
