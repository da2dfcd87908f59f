/** The beginning of a text that spreadsheets take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Cells that RFC 4180 quotes, and those with a semicolon: spreadsheets of many countries separate
 * cells by it.
 */
const QUOTED = /[",;\r\n]/;

/**
 * A text as a cell of CSV. A text that a spreadsheet would run as a formula gets an apostrophe
 * before it, which spreadsheets take for "this is text".
 */
export function textCell(text: string | null): string {
  if (text === null) return '';
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
