/** A word that begins like an API key, well-formed or not. */
const KEY = /cps_(?:live|test|cal)_[^\s/"]+/g;

/** A word that begins like a secret of a webhook. */
const WEBHOOK_SECRET = /whsec_[^\s"]+/g;

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

/** Masks everything that looks like an API key, a token or a secret of a webhook. */
export function masked(text: string): string {
  const signed = text.includes('whsec_') ? text.replace(WEBHOOK_SECRET, MASK) : text;
  const keyless = signed.includes('cps_') ? signed.replace(KEY, MASK) : signed;
  if (!keyless.includes(OBJECT)) return keyless;
  return keyless.replace(DOTTED, (word) => (word.includes(OBJECT) ? MASK : word));
}

/** Leading characters of a credential that a cut text must show to be found in it. */
const CUT_MIN = 12;

/**
 * Leading characters that are compared in order. A pattern of the 8 KiB of a token would take
 * seconds to compile; this one takes at most 5 ms.
 */
const IN_ORDER = 64;

/** A pattern of a character: plain, percent-encoded or JSON-escaped. */
function formOf(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return `(?:\\\\{0,4}\\x${code}|%(?:25){0,4}${code}|\\\\{1,4}u00${code})`;
}

/**
 * Masks one given credential, which a server may echo, in plain, percent-encoded or JSON-escaped
 * form. A credential that is cut after 12 characters or later is found too. After its first 64
 * characters, everything that consists of characters of its rest is masked.
 * @param secret printable ASCII characters
 */
export function maskerOf(secret: string): (text: string) => string {
  const forms = [...secret].map(formOf);
  const cut = forms.slice(CUT_MIN, IN_ORDER).map((form) => `${form}?`);
  const rest = [...new Set(forms.slice(IN_ORDER))];
  const tail = rest.length > 0 ? `(?:${rest.join('|')})*` : '';
  const pattern = new RegExp([...forms.slice(0, CUT_MIN), ...cut, tail].join(''), 'gi');
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
