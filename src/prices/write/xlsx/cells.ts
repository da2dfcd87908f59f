import { dayText } from '../../../std/days.ts';
import { ascii, putInstant } from '../bytes.ts';

/*
 * A workbook (`workbook.ts`) has sheets of rows (`rows.ts`) or of a wide table (`wide-sheet.ts`),
 * and a sheet about them (`about.ts`). This file has the notation of their cells.
 *
 * The XML is written here, because the libraries for workbooks take numbers as doubles, which would
 * change digits, and most hold a sheet in memory. yazl, the pair of yauzl that reads the workbooks
 * of loads, makes the archive.
 */

/** The styles of cells, in the order of `STYLES_XML`. */
export const STYLE = {
  ...{ plain: 0, day: 1, instant: 2, heading: 3, quoted: 4, wrapped: 5 },
  quotedWrapped: 6,
} as const;

/** Styles: ISO days in every locale, instants to the second. */
export const STYLES_XML = [
  '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">',
  '<numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>',
  '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>',
  '<fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font><font>',
  '<b/><sz val="11"/><name val="Calibri"/><family val="2"/></font></fonts><fills count="2">',
  '<fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/>',
  '</fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/>',
  '</border></borders><cellStyleXfs count="1">',
  '<xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="7">',
  '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>',
  '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>',
  '<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>',
  '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>',
  '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/>',
  '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" applyAlignment="1">',
  '<alignment vertical="top" wrapText="1"/></xf>',
  '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1" ',
  'applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf></cellXfs>',
  '<cellStyles count="1">',
  '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
].join('');

/** Most characters of a cell in Excel, which repairs a file with more. */
const TEXT_MAX = 32_767;

/** A text that a reader of XML or the escapes of a workbook (ECMA-376, 22.4.2.4) would change. */
const ESCAPED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 cannot hold them.
  /[&<>"]|[\u0000-\u0008\u000b-\u001f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)/gu;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** A text in XML, with the escapes of workbooks. */
export const xmlText = (text: string): string =>
  text.replace(
    ESCAPED,
    (one) => ENTITIES[one] ?? `_x${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`,
  );

/** Texts that a spreadsheet would read as a formula once somebody edits their cell. */
const FORMULA = /^[=+\-@\t\r\uff0b\uff0d\uff1d\uff20']/;

const cut = (text: string): string =>
  text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - 1)}…`;

const inline = (text: string): string =>
  `t="inlineStr"><is><t xml:space="preserve">${xmlText(cut(text))}</t></is></c>`;

/*
 * A cell is `<c r="`, its reference, and one of the texts below, which begin with the quote after
 * the reference. References are optional in the standard, and some readers need them.
 */

/** The style with a mark that keeps a text a text, by the style without. */
const MARKED: Readonly<Record<number, number>> = {
  [STYLE.plain]: STYLE.quoted,
  [STYLE.wrapped]: STYLE.quotedWrapped,
};

/** A text; with a mark that keeps it a text if it looks like a formula. */
export const textCell = (text: string, style: number = STYLE.plain): string => {
  const shown = FORMULA.test(text) ? (MARKED[style] ?? style) : style;
  return `" ${shown === STYLE.plain ? '' : `s="${shown}" `}${inline(text)}`;
};

/** A number, as the text of its digits. */
export const numberCell = (digits: string): string => `"><v>${digits}</v></c>`;

/** True or false. */
export const booleanCell = (value: boolean): string => `" t="b"><v>${value ? 1 : 0}</v></c>`;

/** Days from the first of a workbook, 1899-12-30, to 1970-01-01. */
const SERIAL_1970 = 25_569;

/**
 * The first day that all spreadsheets count alike, 1900-03-01: Excel has a day before it that the
 * calendar lacks. Earlier days and instants are texts.
 */
const SERIAL_MIN = 61;

const DAYS_TO_2000 = 10_957;
const MICROS_TO_2000 = 946_684_800_000_000;
const MICROS_PER_DAY = 86_400_000_000;

/** The number of a day in a workbook; null for a day that is a text. @param day since 1970 */
export const serialOf = (day: number): number | null =>
  day + SERIAL_1970 < SERIAL_MIN ? null : day + SERIAL_1970;

/** A day. @param day days since 1970 */
export const dayCell = (day: number): string => {
  const serial = serialOf(day);
  if (serial === null) return textCell(dayText(day - DAYS_TO_2000));
  return `" s="${STYLE.day}"><v>${serial}</v></c>`;
};

const instantText = (micros: number): string => {
  const bytes = Buffer.alloc(32);
  return bytes.toString('latin1', 0, putInstant(bytes, 0, micros - MICROS_TO_2000));
};

/**
 * An instant as a date and time in UTC. The nearest double to a fraction of a day is within half a
 * microsecond of the instant.
 * @param micros microseconds since 1970
 */
export const instantCell = (micros: number): string => {
  const day = Math.floor(micros / MICROS_PER_DAY);
  const serial = serialOf(day);
  if (serial === null) return textCell(instantText(micros));
  const fraction = (micros - day * MICROS_PER_DAY) / MICROS_PER_DAY;
  return `" s="${STYLE.instant}"><v>${serial + fraction}</v></c>`;
};

/** A cell without a value. */
export const EMPTY = ascii('"/>');

/** The bytes around a number, a decimal as text, and a day of a point. */
export const NUMBER = { before: ascii('"><v>'), after: ascii('</v></c>') };
export const NUMBER_TEXT = {
  before: ascii('" t="inlineStr"><is><t>'),
  after: ascii('</t></is></c>'),
};

export const DAY = { before: ascii(`" s="${STYLE.day}"><v>`), after: NUMBER.after };

/** The letters of a column. @param place 0 for `A` */
export function lettersOf(place: number): string {
  let letters = '';
  for (let rest = place; rest >= 0; rest = Math.floor(rest / 26) - 1) {
    letters = String.fromCharCode(65 + (rest % 26)) + letters;
  }
  return letters;
}

/** A row of texts and other cells. @param cells each with the quote after its reference */
export const rowXml = (row: number, cells: readonly (string | null)[]): string => {
  const xml = cells.map((cell, place) => cell && `<c r="${lettersOf(place)}${row}${cell}`);
  return `<row r="${row}">${xml.join('')}</row>`;
};
