import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { inUtf8 } from '../parsing/lines.ts';
import { rejectMisquoted, rows } from '../parsing/rows.ts';
import { openWorkbook, sheetOf, sheetRows } from '../parsing/xlsx.ts';
import { isZip } from '../parsing/zip.ts';
import type { FileFormat, RatePublisher, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  type Attributes,
  JSON_ATTRIBUTES,
  type PointRecord,
  type RateRecord,
  type SourceRecord,
} from '../records/source-record.ts';
import { DayReader, Fault, isEmpty, plainText, shownText, type TableRow } from './fields.ts';
import { mappingOf, type TableMapping } from './mapping.ts';
import { Preamble } from './preamble.ts';
import type { Mapping } from './schema.ts';
import {
  type ColumnNaming,
  lettersAndNames,
  namesOfSheet,
  namesOfText,
  pointColumnsOf,
  TableColumns,
} from './value-columns.ts';
import { PointReader, RateReader } from './values.ts';

/*
 * A table as its mapping describes it: a checked mapping (`mapping.ts`), the lines above the values
 * (`preamble.ts`), the columns that it names (`value-columns.ts`), then a record for each value of
 * a row (`values.ts`).
 */

/** Properties of a file besides its rows. */
interface TableSource {
  namesOf(header: TableRow | null): ColumnNaming;
  /** The descriptions of a shipped mapping, which precede the values. */
  descriptions(header: TableRow | null): readonly SourceRecord[];
  /** True if all rows must have as many fields as the first. */
  readonly hasFixedWidth: boolean;
  readonly is1904: boolean;
  /** True if problems that the database finds need the column names of the file. */
  readonly hasPlaces: boolean;
}

/** State after the lines above the values were read. */
interface TableBody {
  readonly columns: TableColumns;
  readonly values: PointReader | RateReader;
  readonly width: number | null;
  readonly stopAt: number;
  readonly vintageAt: number;
  readonly vintages: DayReader;
}

/** Converts the rows of a table to records, by its mapping. */
class TableReader {
  private readonly mapping: Mapping;
  private readonly preamble: Preamble;
  private readonly source: TableSource;
  private readonly problems: Problems;
  private body: TableBody | null = null;
  private vintage: string | null = null;
  private newest = '';

  constructor(mapping: Mapping, preamble: Preamble, source: TableSource, problems: Problems) {
    this.mapping = mapping;
    this.preamble = preamble;
    this.source = source;
    this.problems = problems;
  }

  /**
   * Adds the records of a row. @returns false if the table ended before it
   * @throws Refusal for another table than the mapping describes
   */
  take(row: TableRow, records: SourceRecord[]): boolean {
    if (this.body === null && this.preamble.takes(row)) return true;
    if (row.misquoted === undefined && row.fields.every(isEmpty)) return true;
    this.body ??= this.start(row, records);
    if (this.isEnd(row, this.body)) return false;
    if (this.hasTableWidth(row, this.body)) this.addRow(row, this.body, records);
    return true;
  }

  /**
   * Ends reading, with the newest day if it is the vintage.
   * @throws Refusal if there was no table
   */
  end(): SourceRecord[] {
    if (this.body) return this.newest === '' ? [] : [{ kind: 'vintage', date: this.newest }];
    this.preamble.headerRow();
    const { first } = this.preamble;
    // Wrong units indicate another table, which is a more precise problem.
    if (this.mapping.units && first !== null) this.start({ line: first, fields: [] }, []);
    throw new Refusal('empty_file', 'The table holds no row below its header');
  }

  /** Resolves the columns from the lines above the values. */
  private start(row: TableRow, records: SourceRecord[]): TableBody {
    const { mapping, preamble, source, problems } = this;
    const { vintage, rows = {} } = mapping;
    const { is1904 } = source;
    problems.rejects?.keepHeader((preamble.first ?? 1) - 1);
    const header = preamble.headerRow();
    const width = source.hasFixedWidth ? (header ?? row).fields.length : null;
    const naming = source.namesOf(header);
    const columns = new TableColumns(header, width, naming, preamble.mark);
    preamble.check(columns, row);
    const edition =
      vintage?.constant ?? (vintage ? preamble.vintage(vintage, naming, is1904) : null);
    if (edition !== null) records.push({ kind: 'vintage', date: edition });
    records.push(...source.descriptions(header));
    const templates = pointColumnsOf(mapping, columns, is1904);
    return {
      columns,
      values: mapping.rates
        ? new RateReader(mapping, columns, is1904, problems)
        : new PointReader(mapping, columns, templates, source, problems),
      width,
      stopAt: rows.stop ? columns.indexOf(rows.stop.column) : -1,
      vintageAt: vintage?.column === undefined ? -1 : columns.indexOf(vintage.column),
      vintages: new DayReader({ pattern: vintage?.pattern }, is1904),
    };
  }

  private isEnd({ fields, misquoted }: TableRow, { stopAt }: TableBody): boolean {
    const start = this.mapping.rows?.stop?.startsWith;
    if (start === undefined) return false;
    // A line with a misplaced quotation mark may be the note below the table.
    if (misquoted !== undefined) {
      return stopAt === 0 && plainText(misquoted).startsWith(plainText(start));
    }
    return plainText(shownText(fields[stopAt])).startsWith(plainText(start));
  }

  /** True if a row has the width of the table; otherwise rejects it. */
  private hasTableWidth({ line, fields, misquoted }: TableRow, { width }: TableBody): boolean {
    if (misquoted !== undefined) {
      rejectMisquoted(line, misquoted, this.problems);
      return false;
    }
    if (width === null || fields.length === width) return true;
    const message = `The row has ${fields.length} fields, the table ${width}`;
    this.problems.reject('wrong_column_count', message, { line });
    return false;
  }

  private addRow(row: TableRow, body: TableBody, records: SourceRecord[]): void {
    if (body.vintageAt >= 0) this.addVintage(row, body, records);
    const from = records.length;
    body.values.take(row, records as (PointRecord & RateRecord)[]);
    if (!this.mapping.vintage?.newest) return;
    for (let index = from; index < records.length; index += 1) {
      const { date } = records[index] as PointRecord | RateRecord;
      if (date > this.newest) this.newest = date;
    }
  }

  /** All rows of a table must state the same vintage. */
  private addVintage(row: TableRow, body: TableBody, records: SourceRecord[]): void {
    const field = row.fields[body.vintageAt];
    const day = body.vintages.read(field);
    if (day === this.vintage) return;
    const column = body.columns.naming(body.vintageAt, row.line);
    const place = { line: row.line, column, value: shownText(field) };
    if (day instanceof Fault) throw new Refusal('invalid_vintage', day.message, place);
    if (this.vintage !== null) {
      const message = `The rows above state the vintage ${this.vintage}`;
      throw new Refusal('invalid_vintage', message, place);
    }
    this.vintage = day;
    records.push({ kind: 'vintage', date: day });
  }
}

/** The attributes of a price in a mapping, by their names in an answer. */
function attributesOf({ code: _, ...attributes }: PriceEntry): Attributes {
  const textOf = (name: string, value: unknown) =>
    JSON_ATTRIBUTES.includes(name) ? JSON.stringify(value) : (value as string | null);
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, textOf(name, value)]),
  );
}

type PriceEntry = NonNullable<Mapping['prices']>[number];

/**
 * The prices, products and dimension values that a mapping describes.
 * @param line of the file to report as their place; null for their lines in the mapping
 */
function descriptionsOf(loaded: TableMapping, line: number | null): SourceRecord[] {
  const { prices = [], products = [], values = [] } = loaded.mapping;
  const placeOf = (list: string, index: number) =>
    line === null ? { line: loaded.lineOf(`/${list}/${index}`), file: loaded.path } : { line };
  return [
    ...products.map(
      (each, index): SourceRecord => ({ kind: 'product', ...placeOf('products', index), ...each }),
    ),
    ...values.map(
      (each, index): SourceRecord => ({ kind: 'value', ...placeOf('values', index), ...each }),
    ),
    ...prices.map(
      (each, index): SourceRecord => ({
        kind: 'price',
        ...placeOf('prices', index),
        code: each.code,
        attributes: attributesOf(each),
        // A shipped description does not overwrite later edits of the price.
        whenPresent: line === null ? 'compare' : 'keep',
      }),
    ),
  ];
}

const OLD_WORKBOOK = '\xd0\xcf\x11\xe0';

/** True if a file is a workbook by its first bytes, including old and encrypted workbooks. */
const isWorkbook = (head: Buffer): boolean =>
  isZip(head) || head.toString('latin1', 0, 4) === OLD_WORKBOOK;

/** Refuses a workbook for a text mapping, and text for a workbook mapping. */
function refuseOther(mapping: Mapping, isBook: boolean): void {
  const other = isBook ? mapping.text : mapping.workbook;
  const own = isBook ? mapping.workbook : mapping.text;
  if (other === undefined || own !== undefined) return;
  const [found, expected] = isBook ? ['a workbook', 'text'] : ['text', 'a workbook'];
  throw new Refusal('invalid_layout', `The file is ${found}, but the mapping is for ${expected}`);
}

/** Options of a mapping that is shipped with a format. */
interface Shipped {
  /** The text to read instead of the file. */
  readonly text?: AsyncGenerator<Buffer>;
}

/** Opens a workbook or a text. @param shipped for the mapping of a shipped format */
async function openTable(
  loaded: TableMapping,
  preamble: Preamble,
  { file, problems }: ReadContext,
  shipped: Shipped | null,
): Promise<{ source: TableSource; found: AsyncIterable<readonly TableRow[]> }> {
  const { mapping } = loaded;
  // Users do not have the file of a shipped mapping, so problems in it are reported at the header.
  const descriptions = (header: TableRow | null): readonly SourceRecord[] =>
    shipped ? descriptionsOf(loaded, header?.line ?? 1) : [];
  const hasPlaces = shipped === null;
  if (!isWorkbook(file.head) || shipped?.text) {
    const { delimiter = 'comma', encoding = 'utf-8' } = mapping.text ?? {};
    const isParsed = (line: number, text: string) => preamble.isParsed(line) && text.trim() !== '';
    const bytes = shipped?.text ?? inUtf8(file.bytes(), encoding, file.head, problems.rejects);
    return {
      source: {
        namesOf: namesOfText,
        descriptions,
        hasFixedWidth: true,
        is1904: false,
        hasPlaces,
      },
      found: rows(bytes, { delimiter, isParsed }, problems),
    };
  }
  problems.rejects?.refuse('a workbook');
  const workbook = await openWorkbook(file);
  const sheet = sheetOf(workbook, mapping.workbook?.sheet);
  const namesOf = (header: TableRow | null) =>
    shipped ? lettersAndNames(header, preamble.mark) : namesOfSheet(sheet.name);
  return {
    source: { namesOf, descriptions, hasFixedWidth: false, is1904: workbook.is1904, hasPlaces },
    found: sheetRows(workbook, sheet),
  };
}

/**
 * Reads text or a workbook, detected by content, with a mapping.
 * @param shipped for the mapping of a shipped format
 */
async function* readTable(
  loaded: TableMapping,
  context: ReadContext,
  shipped: Shipped | null = null,
): AsyncGenerator<SourceRecord[]> {
  const { mapping } = loaded;
  refuseOther(mapping, isWorkbook(context.file.head) && !shipped?.text);
  if (!shipped) yield descriptionsOf(loaded, null);
  const preamble = new Preamble(mapping);
  const { source, found } = await openTable(loaded, preamble, context, shipped);
  const reader = new TableReader(mapping, preamble, source, context.problems);
  for await (const block of found) {
    const records: SourceRecord[] = [];
    const isEnd = !block.every((row) => reader.take(row, records));
    yield records;
    if (isEnd) break;
  }
  yield reader.end();
}

/** The publisher of the rates of a mapping. */
export const rateSourceOf = ({ rates }: Mapping): RatePublisher | undefined =>
  rates && { slug: rates.source, name: rates.name, base: rates.base };

/** The format of tables with a mapping. Text and workbooks are detected by content. */
export const tableWith = (loaded: TableMapping): FileFormat => ({
  lineage: ['csv', 'ndjson', 'table'],
  needsVintage: false,
  mappingSha256: loaded.sha256,
  source: rateSourceOf(loaded.mapping),
  read: (context) => readTable(loaded, context),
});

/** Reads the mapping of a shipped format. @param url of the mapping file */
export const shippedMapping = (url: URL): TableMapping =>
  mappingOf(readFileSync(url), basename(url.pathname));

/**
 * Reads a publisher's file with the mapping of its format.
 * @throws Refusal for another file
 */
export async function* readShipped(
  mapping: TableMapping,
  context: ReadContext,
  shipped: Shipped = {},
): AsyncGenerator<SourceRecord[]> {
  try {
    yield* readTable(mapping, context, shipped);
  } catch (error) {
    const { problem } = error as Refusal;
    if (!(error instanceof Refusal) || problem.code !== 'missing_column') throw error;
    // The columns of a publisher's file are fixed: a missing one means another file.
    throw new Refusal('invalid_layout', problem.message, problem);
  }
}
