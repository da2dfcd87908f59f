/**
 * The places of a text where a spreadsheet would find a formula: its start, and the character after
 * a separator, since a spreadsheet that splits cells at semicolons ignores the quotes of a cell in
 * the middle of a row. Quotes there may vanish when the cell is read. Apostrophes are part of the
 * place, so that the text can be restored: in it, each place has one apostrophe less.
 */
const FORMULA_START = /(?<![^;\t\r\n])(?=["']*[=+\-@\t\r\uff0b\uff0d\uff1d\uff20])/g;

/**
 * Cells that RFC 4180 quotes, and those with a semicolon: spreadsheets of many countries separate
 * cells by it.
 */
const QUOTED = /[",;\r\n]/;

/**
 * Writes a text as a CSV cell, with an apostrophe, which marks text, wherever a spreadsheet would
 * find a formula. `docs/formats.md` has the inverse.
 */
export function textCell(text: string | null): string {
  if (text === null) return '';
  const safe = text.replace(FORMULA_START, "'");
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
