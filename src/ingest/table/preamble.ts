import { otherSeparator } from '../parsing/csv-rows.ts';
import { cellPlace } from '../parsing/xlsx-rows.ts';
import { Refusal } from '../rejects/problems.ts';
import { bordersOf } from './check.ts';
import { DayReader, Fault, plainText, shownText, type TableRow } from './fields.ts';
import { type Columns, delimiterHint } from './layout.ts';
import type { DateSource, Mapping } from './schema.ts';

/** The lines above the values that a mapping refers to: its header, and cells that it names. */
export class Preamble {
  readonly header: number;
  readonly first: number;
  private readonly mapping: Mapping;
  private readonly wanted: ReadonlySet<number>;
  private readonly rows = new Map<number, TableRow>();

  constructor(mapping: Mapping) {
    const { header, first } = bordersOf(mapping);
    const cells = [mapping.date?.cell, mapping.vintage?.cell];
    const lines = cells.map((cell) => cellPlace(cell ?? '')?.line ?? 0);
    const expected = (mapping.expect ?? []).map(({ row }) => row);
    this.header = header;
    this.first = first;
    this.mapping = mapping;
    this.wanted = new Set([header, ...lines, ...expected]);
  }

  /** Whether a line is of any use; titles may hold whatever they like. */
  isOfUse = (line: number): boolean => line >= this.first || this.wanted.has(line);

  keep(row: TableRow): void {
    if (this.wanted.has(row.line)) this.rows.set(row.line, row);
  }

  /**
   * The line with the names of the columns; null when the table has none.
   * @throws Refusal when it is empty or absent
   */
  headerRow(): TableRow | null {
    if (this.header === 0) return null;
    const row = this.rows.get(this.header);
    if (row?.wrong !== undefined) {
      const other = otherSeparator(row.wrong);
      const hint = other === null ? '' : `; ${delimiterHint(other)}`;
      throw new Refusal('invalid_quote', `A quotation mark in the header is out of place${hint}`, {
        line: this.header,
        value: row.wrong,
      });
    }
    if (row?.fields.some((field) => plainText(shownText(field)) !== '')) return row;
    throw new Refusal('missing_column', 'The header, the line with the names, is empty', {
      line: this.header,
    });
  }

  /**
   * Compares what must stand above the values.
   * @throws Refusal when something else does
   */
  check(columns: Columns): void {
    for (const { column, row, is } of this.mapping.expect ?? []) {
      const index = columns.indexOf(column);
      const found = shownText(this.rows.get(row)?.fields[index]);
      if (plainText(found) === plainText(is)) continue;
      const place = { line: row, column: columns.naming(index, row), value: found };
      throw new Refusal('invalid_layout', `The mapping expects "${is}" here`, place);
    }
  }

  /**
   * The day in a cell that the mapping names.
   * @throws Refusal when it holds none
   */
  dayIn(source: DateSource, naming: Columns['naming'], is1904: boolean): string {
    const { line, index } = cellPlace(source.cell ?? '') ?? { line: 0, index: 0 };
    const field = this.rows.get(line)?.fields[index];
    const day = new DayReader(source, is1904).read(field);
    if (!(day instanceof Fault)) return day;
    const place = { line, column: naming(index, line), value: shownText(field) };
    throw new Refusal(day.code, `The cell ${source.cell} gives no day: ${day.message}`, place);
  }
}
