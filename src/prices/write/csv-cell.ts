/** First characters of a text that spreadsheets interpret as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Cells that RFC 4180 quotes, and those with a semicolon: spreadsheets of many countries separate
 * cells by it.
 */
const QUOTED = /[",;\r\n]/;

/**
 * Writes a text as a CSV cell. A text that a spreadsheet would interpret as a formula gets a
 * leading apostrophe, which marks text.
 */
export function textCell(text: string | null): string {
  if (text === null) return '';
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
