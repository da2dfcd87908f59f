/** The key by which codes are compared: exact but for the case of the 26 letters. */
export const codeKey = (code: string): string =>
  code.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * The key by which names and ids are compared: NFKC, trimmed, inner white space folded to
 * one space, case-folded. It is also what is stored beside each name, so that both sides of every
 * comparison come from this one function and never from SQL `lower()`.
 *
 * Upper-casing before lower-casing folds letters such as ß and ſ that lower-casing alone leaves
 * apart; the second NFKC recomposes what case mapping decomposed.
 */
export const matchKey = (text: string): string =>
  text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC').replace(/\s+/gu, ' ').trim();
