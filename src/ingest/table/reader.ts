import { rejectWrongQuote } from '../parsing/csv-rows.ts';
import type { PointRecord, SourceRecord } from '../records.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import {
  DayReader,
  Fault,
  isEmpty,
  plainText,
  shownText,
  type TableRow,
  textOf,
} from './fields.ts';
import { Columns, type Naming, templatesOf } from './layout.ts';
import { PointReader } from './points.ts';
import type { Preamble } from './preamble.ts';
import type { Mapping } from './schema.ts';

/** What the reader must know of a file besides its rows. */
export interface TableSource {
  namesOf(header: TableRow | null): Naming;
  /** Whether all rows must have as many fields as the first. */
  readonly hasEdges: boolean;
  readonly is1904: boolean;
}

/** What is known once the lines above the values were read. */
interface Body {
  readonly columns: Columns;
  readonly points: PointReader;
  readonly width: number | null;
  /** Rows are left out unless these columns hold one of these texts. */
  readonly only: readonly (readonly [at: number, texts: ReadonlySet<string>])[];
  readonly stopAt: number;
  readonly vintageAt: number;
  readonly vintages: DayReader;
}

const isBlank = ({ fields }: TableRow): boolean => fields.every(isEmpty);

/** A row as a text, to be set aside. */
const textOfRow = (fields: TableRow['fields']): string => fields.map(shownText).join('\t');

/** Makes records of the rows of a table as its mapping says. */
export class TableReader {
  private readonly mapping: Mapping;
  private readonly preamble: Preamble;
  private readonly source: TableSource;
  private readonly problems: Problems;
  private body: Body | null = null;
  private vintage: string | null = null;

  constructor(mapping: Mapping, preamble: Preamble, source: TableSource, problems: Problems) {
    this.mapping = mapping;
    this.preamble = preamble;
    this.source = source;
    this.problems = problems;
  }

  /**
   * Adds the records of a row; returns false when the table has ended before it.
   * @throws Refusal when the table is not the one that the mapping describes
   */
  take(row: TableRow, records: SourceRecord[]): boolean {
    if (row.line < this.preamble.first) {
      this.preamble.keep(row);
      return true;
    }
    const { last = Number.POSITIVE_INFINITY, stop } = this.mapping.rows ?? {};
    if (row.line > last) return false;
    const blank = isBlank(row);
    if (blank && row.wrong === undefined) return stop?.blank !== true;
    this.body ??= this.start(row, records);
    if (this.isEnd(row, this.body)) return false;
    if (this.isWhole(row, this.body)) this.addRow(row, this.body, records);
    return true;
  }

  /**
   * Ends the reading.
   * @throws Refusal when there was no table
   */
  end(): void {
    if (this.body) return;
    this.preamble.headerRow();
    throw new Refusal('empty_file', 'The table holds no row below its header');
  }

  /** Finds the columns by what stands above the values. */
  private start(row: TableRow, records: SourceRecord[]): Body {
    const { mapping, preamble, source } = this;
    const header = preamble.headerRow();
    const width = source.hasEdges ? (header ?? row).fields.length : null;
    const naming = source.namesOf(header);
    const columns = new Columns(header, width, naming);
    preamble.check(columns);
    const { date, vintage, rows = {} } = mapping;
    const dayIn = (cell: string | undefined, from: typeof vintage): string | null =>
      cell === undefined || !from ? null : preamble.dayIn(from, naming, source.is1904);
    const edition = vintage?.constant ?? dayIn(vintage?.cell, vintage);
    if (edition !== null) records.push({ kind: 'vintage', date: edition });
    const day = date?.constant ?? dayIn(date?.cell, date);
    const templates = templatesOf(mapping, columns, day, source.is1904);
    return {
      columns,
      points: new PointReader(mapping, columns, templates, source.is1904, this.problems),
      width,
      only: (rows.only ?? []).map((each) => [columns.indexOf(each.column), new Set(each.in)]),
      stopAt: rows.stop?.column === undefined ? -1 : columns.indexOf(rows.stop.column),
      vintageAt: vintage?.column === undefined ? -1 : columns.indexOf(vintage.column),
      vintages: new DayReader(vintage ?? {}, source.is1904),
    };
  }

  private isEnd({ fields, wrong }: TableRow, { stopAt }: Body): boolean {
    const start = this.mapping.rows?.stop?.startsWith;
    if (start === undefined) return false;
    // A line with a stray quotation mark may be the note below the table, as far as one can see.
    if (wrong !== undefined) return stopAt === 0 && plainText(wrong).startsWith(plainText(start));
    return plainText(shownText(fields[stopAt])).startsWith(plainText(start));
  }

  /** Whether a row has the shape of the table; else it is rejected. */
  private isWhole({ line, fields, wrong }: TableRow, { width }: Body): boolean {
    if (wrong !== undefined) {
      rejectWrongQuote(line, wrong, this.problems);
      return false;
    }
    if (width === null || fields.length === width) return true;
    const message = `The row has ${fields.length} fields, the table ${width}`;
    this.problems.reject('wrong_column_count', message, { line, text: textOfRow(fields) });
    return false;
  }

  private addRow(row: TableRow, body: Body, records: SourceRecord[]): void {
    body.points.remember(row);
    for (const [at, texts] of body.only) {
      const text = textOf(row.fields[at], 'invalid_text');
      if (text instanceof Fault) {
        const column = body.columns.naming(at, row.line);
        const place = { line: row.line, column, text: textOfRow(row.fields) };
        this.problems.reject(text.code, text.message, place);
        return;
      }
      if (!texts.has(text)) return;
    }
    if (body.vintageAt >= 0) this.addVintage(row, body, records);
    body.points.take(row, records as PointRecord[]);
  }

  /** A table is one edition: its rows may not tell different ones. */
  private addVintage(row: TableRow, body: Body, records: SourceRecord[]): void {
    const field = row.fields[body.vintageAt];
    const day = body.vintages.read(field);
    if (day === this.vintage) return;
    const column = body.columns.naming(body.vintageAt, row.line);
    const place = { line: row.line, column, value: shownText(field) };
    if (day instanceof Fault) throw new Refusal('invalid_vintage', day.message, place);
    if (this.vintage !== null) {
      const message = `The rows before are of the edition of ${this.vintage}`;
      throw new Refusal('invalid_vintage', message, place);
    }
    this.vintage = day;
    records.push({ kind: 'vintage', date: day });
  }
}
