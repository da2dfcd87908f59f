import { Refusal } from '../problems.ts';
import { type Sheet, sheetOf, sheetRows, type Workbook } from '../xlsx.ts';
import { indexOfLetters, type SheetRow } from '../xlsx-rows.ts';
import type { Field, TableRow } from './fields.ts';

/**
 * The sheet with the table: the one that the mapping names, else the only one.
 * @throws Refusal when the workbook lacks it, or has several
 */
export function sheetWithTable(workbook: Workbook, wanted: string | number | undefined): Sheet {
  const [only, second] = workbook.sheets;
  if (wanted !== undefined || !only) return sheetOf(workbook, wanted ?? 1);
  if (!second) return only;
  const names = workbook.sheets.map(({ name }) => `"${name}"`).join(', ');
  const message = `The workbook has several sheets: say which, workbook.sheet, of ${names}`;
  throw new Refusal('invalid_layout', message);
}

function rowOf({ number, cells }: SheetRow): TableRow {
  const fields: (Field | undefined)[] = [];
  for (const [letters, cell] of cells) {
    const index = indexOfLetters(letters);
    while (fields.length < index) fields.push(undefined);
    fields.push(cell);
  }
  return { line: number, fields };
}

/**
 * The rows of a sheet in a stream. Where the file leaves out empty rows, one without fields
 * stands for them. Hidden rows and columns are read like others; of merged cells, the first holds
 * the value and the others are empty.
 * @throws Refusal when the sheet is damaged
 */
export async function* workbookRows(workbook: Workbook, sheet: Sheet): AsyncGenerator<TableRow[]> {
  let last = 0;
  for await (const rows of sheetRows(workbook, sheet)) {
    const table: TableRow[] = [];
    for (const row of rows) {
      if (row.number > last + 1) table.push({ line: last + 1, fields: [] });
      table.push(rowOf(row));
      last = row.number;
    }
    yield table;
  }
}
