import { lettersOf, rowXml, STYLE, textCell } from './cells.ts';

/** Most columns of a sheet in Excel. */
export const SHEET_COLUMNS_MAX = 16_384;

const NAMESPACE = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';

/** The row of names, which stays in view. */
const FROZEN =
  '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>' +
  '<selection pane="bottomLeft"/>';

/**
 * The beginning of a sheet, up to its first row.
 * @param widths of the columns in characters
 * @param isFirst true for the sheet that is shown when the workbook is opened
 */
export const sheetStart = (
  widths: readonly number[],
  { isFrozen, isFirst }: { readonly isFrozen: boolean; readonly isFirst: boolean },
): string =>
  `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<worksheet xmlns="${NAMESPACE}">` +
  `<sheetViews><sheetView ${isFirst ? 'tabSelected="1" ' : ''}workbookViewId="0">` +
  `${isFrozen ? FROZEN : ''}</sheetView></sheetViews>` +
  `${columnsXml(widths)}<sheetData>`;

/** The row of names. */
export const namesRow = (names: readonly string[]): string =>
  rowXml(
    1,
    names.map((name) => textCell(name, STYLE.heading)),
  );

/** The cells of a table with its row of names, such as `A1:C9`. */
export const rangeOf = (columns: number, lastRow: number, mark = ''): string =>
  `${mark}A${mark}1:${mark}${lettersOf(columns - 1)}${mark}${lastRow}`;

/** The end of a sheet, with a filter in its row of names. */
export const tableEnd = (columns: number, lastRow: number): string =>
  `</sheetData><autoFilter ref="${rangeOf(columns, lastRow)}"/></worksheet>`;

/** The end of a sheet that is no table. */
export const SHEET_END = '</sheetData></worksheet>';

/** A written sheet of a workbook. */
export interface SheetTable {
  readonly name: string;
  readonly columns: number;
  /** The last row, 1 without rows below the names. */
  readonly lastRow: number;
}

const columnsXml = (widths: readonly number[]): string =>
  `<cols>${widths
    .map((width, place) => {
      const at = place + 1;
      return `<col min="${at}" max="${at}" width="${width}" customWidth="1"/>`;
    })
    .join('')}</cols>`;
