import { rejectWrongQuote } from '../parsing/rows.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { PointRecord, RateRecord, SourceRecord } from '../records/source-record.ts';
import { type ColumnNaming, pointColumnsOf, TableColumns } from './columns.ts';
import { DayReader, Fault, isEmpty, plainText, shownText, type TableRow } from './fields.ts';
import type { Preamble } from './preamble.ts';
import type { Mapping } from './schema.ts';
import { PointReader, RateReader } from './values.ts';

/** Properties of a file besides its rows. */
export interface TableSource {
  namesOf(header: TableRow | null): ColumnNaming;
  /** Records that precede the values, such as descriptions. */
  opening(header: TableRow | null): readonly SourceRecord[];
  /** Whether all rows must have as many fields as the first. */
  readonly hasFixedWidth: boolean;
  readonly is1904: boolean;
  /** Whether problems that the database finds need the column names of the file. */
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
export class TableReader {
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
    if (row.wrong === undefined && row.fields.every(isEmpty)) return true;
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
    // Wrong units may reveal another table, a more precise problem.
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
    records.push(...source.opening(header));
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

  private isEnd({ fields, wrong }: TableRow, { stopAt }: TableBody): boolean {
    const start = this.mapping.rows?.stop?.startsWith;
    if (start === undefined) return false;
    // A line with a misplaced quotation mark may be the note below the table.
    if (wrong !== undefined) return stopAt === 0 && plainText(wrong).startsWith(plainText(start));
    return plainText(shownText(fields[stopAt])).startsWith(plainText(start));
  }

  /** Whether a row has the width of the table; otherwise rejects it. */
  private hasTableWidth({ line, fields, wrong }: TableRow, { width }: TableBody): boolean {
    if (wrong !== undefined) {
      rejectWrongQuote(line, wrong, this.problems);
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
