const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

/**
 * The comparison key of codes: exact, except for the case of the 26 letters. Codes of prices are
 * ASCII, and all of a market get their keys in one turn of the event loop.
 */
export const codeKey = (code: string): string =>
  isAscii(code) ? code.toLowerCase() : code.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * The comparison key of names and ids: NFKC, trimmed, white space folded to one space, case-folded.
 * It is also stored beside each name, so that both sides of every comparison come from this
 * function and never from SQL `lower()`.
 *
 * Upper-casing before lower-casing folds letters such as ß and ſ that lower-casing alone leaves
 * apart; the second NFKC recomposes what case mapping decomposed.
 */
export const matchKey = (text: string): string =>
  text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC').replace(/\s+/gu, ' ').trim();
