/** The comparison key of codes: exact, except for the case of the 26 letters. */
export const codeKey = (code: string): string =>
  code.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

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
