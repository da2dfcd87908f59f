/** A word that begins like an API key, well-formed or not. */
const KEY = /cps_(?:live|test)_[^\s/"]+/g;

/**
 * Three parts separated by dots: a token if one of them is the base64url of a JSON object. The
 * lookbehind keeps the search linear in the length of the text.
 */
const DOTTED = /(?<![\w-])[\w-]+\.[\w-]+\.[^\s/"]*/g;

/** The first characters of the base64url of a JSON object. */
const OBJECT = 'eyJ';

const MASK = '[secret]';

/** Most nested percent encodings that are decoded. */
const ENCODINGS_MAX = 3;

/** Masks everything that looks like an API key or a token. */
export function masked(text: string): string {
  const keyless = text.includes('cps_') ? text.replace(KEY, MASK) : text;
  if (!keyless.includes(OBJECT)) return keyless;
  return keyless.replace(DOTTED, (word) => (word.includes(OBJECT) ? MASK : word));
}

/** Leading characters of a credential that a cut text must show to be found in it. */
const CUT_MIN = 12;

/**
 * Masks one given credential, which a server may echo, in plain, percent-encoded or JSON-escaped
 * form. A credential that is cut after 12 characters or later is found too.
 * @param secret printable ASCII characters
 */
export function maskerOf(secret: string): (text: string) => string {
  const forms = [...secret].map((each, place) => {
    const code = each.charCodeAt(0).toString(16);
    const form = `(?:\\\\{0,4}\\x${code}|%(?:25){0,4}${code}|\\\\{1,4}u00${code})`;
    return place < CUT_MIN ? form : `${form}?`;
  });
  const pattern = new RegExp(forms.join(''), 'gi');
  return (text) => text.replace(pattern, MASK);
}

/** True if a text contains something that looks like an API key or a token. */
export const containsSecret = (text: string): boolean => masked(text) !== text;

/**
 * Masks secrets in a part of an address, where a key may be percent-encoded, also several times.
 * A text without secrets is returned as it is.
 */
export function maskedEncoded(text: string): string {
  const plain = masked(text);
  let decodedText = plain;
  for (let times = 0; times < ENCODINGS_MAX; times += 1) decodedText = decoded(decodedText);
  return containsSecret(decodedText) ? masked(decodedText) : plain;
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
