import { Problem } from '../../../errors.ts';
import { type ZipEntry, zipSlices } from '../../../std/zip.ts';
import type { Answer, RecordContext } from '../../answer/answer.ts';
import type { Plan } from '../../plan/plan.ts';
import { type Contents, contentsOfAll } from '../points.ts';
import { tableColumns } from '../table.ts';
import { wideSlices } from '../wide.ts';
import { aboutSheet, Collected } from './about.ts';
import { STYLES_XML, xmlText } from './cells.ts';
import { RecordRows, widthsOf } from './rows.ts';
import {
  namesRow,
  rangeOf,
  SHEET_COLUMNS_MAX,
  type SheetTable,
  sheetStart,
  tableEnd,
} from './sheet.ts';
import { wideSheet } from './wide-sheet.ts';

/**
 * Checks that a sheet has the columns of an answer.
 * @throws Problem `validation_failed` for a wide table of too many prices
 */
export function checkSheets({ context, records }: Answer): void {
  if (!isWide(context.plan) || records.length < SHEET_COLUMNS_MAX) return;
  const detail = `A sheet has at most ${SHEET_COLUMNS_MAX - 1} prices; request fewer, or text/csv`;
  throw new Problem('validation_failed', 'The table is too large; errors names the option', {
    errors: [{ pointer: '/options/layout', code: 'out_of_range', detail }],
  });
}

/**
 * The rows of an answer as a workbook (ECMA-376), in slices: a sheet for each million of rows, or
 * one with the wide table, and the sheet `About`.
 * @throws Problem if a wide table is too large, see `wideSlices`
 */
export const xlsxSlices = (answer: Answer): AsyncGenerator<Buffer> => zipSlices(entriesOf(answer));

/** Bytes of a sheet from which the next one begins; spreadsheets open no larger ones. */
const SHEET_BYTES_MAX = 1_073_741_824;

/** Rows between two checks of the size of a sheet. */
const ROWS_AT_ONCE = 16_384;

/** The rows of an answer, which sheets take one after the other. */
class RowsLeft {
  readonly #context: RecordContext;
  readonly #records: AsyncIterator<Contents>;
  #rows: RecordRows | null = null;
  #next = 0;

  constructor(context: RecordContext, records: AsyncIterable<Contents>) {
    this.#context = context;
    this.#records = records[Symbol.asyncIterator]();
  }

  /** The record of the next row; null after the last row. */
  async #record(): Promise<RecordRows | null> {
    if (this.#rows !== null && this.#next < this.#rows.length) return this.#rows;
    const { value, done } = await this.#records.next();
    if (done) return null;
    this.#next = 0;
    this.#rows = new RecordRows(this.#context, value);
    return this.#rows;
  }

  async hasMore(): Promise<boolean> {
    return (await this.#record()) !== null;
  }

  /**
   * Takes rows of one record.
   * @param row the number of the first in its sheet
   * @returns how many they are, and their bytes in slices; null after the last row
   */
  async take(row: number) {
    const rows = await this.#record();
    if (rows === null) return null;
    const from = this.#next;
    const left = this.#context.sheetRowsMax + 1 - row;
    const count = Math.min(rows.length - from, ROWS_AT_ONCE, left);
    this.#next += count;
    return { count, slices: rows.slices(from, count, row) };
  }
}

/**
 * Writes a sheet with as many of the rows as it holds.
 * @param report receives the number of its last row
 */
async function* rowSheet(
  { plan, sheetRowsMax }: RecordContext,
  rows: RowsLeft,
  isFirst: boolean,
  report: (lastRow: number) => void,
): AsyncGenerator<Buffer> {
  const columns = tableColumns(plan);
  const names = columns.map(({ name }) => name);
  yield Buffer.from(sheetStart(widthsOf(columns), { isFrozen: true, isFirst }) + namesRow(names));
  let next = 2;
  for (let bytes = 0; next <= sheetRowsMax && bytes < SHEET_BYTES_MAX; ) {
    const taken = await rows.take(next);
    if (taken === null) break;
    next += taken.count;
    for (const slice of taken.slices) {
      bytes += slice.length;
      yield slice;
    }
  }
  yield Buffer.from(tableEnd(columns.length, next - 1));
  report(next - 1);
}

/** The name of the first sheet. */
const PRICES = 'Prices';

const sheetPath = (place: number): string => `xl/worksheets/sheet${place + 1}.xml`;

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml';
const PACKAGE = 'application/vnd.openxmlformats-package';
const RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

const part = (path: string, xml: string): ZipEntry => ({ path, slices: [Buffer.from(XML + xml)] });

/**
 * The types of the parts. It comes first, because programs tell a workbook from any archive by it,
 * so it does not list the sheets, whose number is not known yet: they have the type of other XML.
 */
const TYPES = part(
  '[Content_Types].xml',
  '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' +
    `<Default Extension="rels" ContentType="${PACKAGE}.relationships+xml"/>` +
    `<Default Extension="xml" ContentType="${TYPE}.worksheet+xml"/>` +
    `<Override PartName="/xl/workbook.xml" ContentType="${TYPE}.sheet.main+xml"/>` +
    `<Override PartName="/xl/styles.xml" ContentType="${TYPE}.styles+xml"/></Types>`,
);

const ROOT = part(
  '_rels/.rels',
  `<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" ` +
    'Target="xl/workbook.xml"/></Relationships>',
);

const STYLES = part('xl/styles.xml', STYLES_XML);

/** The list of sheets, and the range of each filter. */
function* outlineOf(tables: readonly SheetTable[]): Generator<ZipEntry> {
  const names = [...tables.map(({ name }) => name), 'About'];
  const sheets = names.map(
    (name, at) => `<sheet name="${xmlText(name)}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`,
  );
  const filters = tables.map(
    ({ name, columns, lastRow }, at) =>
      `<definedName name="_xlnm._FilterDatabase" localSheetId="${at}" hidden="1">` +
      `'${xmlText(name)}'!${rangeOf(columns, lastRow, '$')}</definedName>`,
  );
  yield part(
    'xl/workbook.xml',
    '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" ' +
      `xmlns:r="${OFFICE}"><bookViews><workbookView/></bookViews>` +
      `<sheets>${sheets.join('')}</sheets>` +
      `<definedNames>${filters.join('')}</definedNames></workbook>`,
  );
  const relations = names.map(
    (_, at) =>
      `<Relationship Id="rId${at + 1}" Type="${OFFICE}/worksheet" ` +
      `Target="worksheets/sheet${at + 1}.xml"/>`,
  );
  yield part(
    'xl/_rels/workbook.xml.rels',
    `<Relationships xmlns="${RELATIONS}">${relations.join('')}` +
      `<Relationship Id="rId${names.length + 1}" Type="${OFFICE}/styles" Target="styles.xml"/>` +
      '</Relationships>',
  );
}

/** The sheets of an answer, as many as its rows need. @param tables receives each written one */
async function* rowSheets(
  context: RecordContext,
  records: AsyncIterable<Contents>,
  tables: SheetTable[],
): AsyncGenerator<ZipEntry> {
  const rows = new RowsLeft(context, records);
  const columns = tableColumns(context.plan).length;
  do {
    const place = tables.length;
    const name = place === 0 ? PRICES : `${PRICES} ${place + 1}`;
    const report = (lastRow: number) => tables.push({ name, columns, lastRow });
    yield { path: sheetPath(place), slices: rowSheet(context, rows, place === 0, report) };
  } while (await rows.hasMore());
}

/** The sheet of a wide table. @param tables receives it once it is written */
function wideEntry(
  context: RecordContext,
  records: AsyncIterable<Contents>,
  tables: SheetTable[],
): ZipEntry {
  const { decimalsAsText } = context.plan.options;
  const slices = wideSlices(context, records, (names) =>
    wideSheet(names, decimalsAsText, (lastRow) =>
      tables.push({ name: PRICES, columns: names.length, lastRow }),
    ),
  );
  return { path: sheetPath(0), slices };
}

async function* collecting(
  records: AsyncIterable<Contents>,
  found: Collected,
): AsyncGenerator<Contents> {
  for await (const contents of records) {
    found.add(contents);
    yield contents;
  }
}

async function* entriesOf(answer: Answer): AsyncGenerator<ZipEntry> {
  const { context } = answer;
  const found = new Collected(answer);
  const tables: SheetTable[] = [];
  const records = collecting(contentsOfAll(context, answer.records), found);
  yield TYPES;
  yield ROOT;
  yield STYLES;
  if (isWide(context.plan)) yield wideEntry(context, records, tables);
  else yield* rowSheets(context, records, tables);
  yield { path: sheetPath(tables.length), slices: aboutSheet(answer, found, tables) };
  yield* outlineOf(tables);
}

const isWide = ({ options }: Plan): boolean => options.layout === 'wide';
