import { otherSeparator } from '../parsing/rows.ts';
import { cellPlace } from '../parsing/xlsx-cells.ts';
import { Refusal } from '../records/load-error.ts';
import { firstBelow, headerOf } from './check.ts';
import { DayReader, Fault, plainText, shownText, type TableRow } from './fields.ts';
import type { Mapping, VintageSource } from './schema.ts';
import {
  type ColumnNaming,
  delimiterHint,
  type TableColumns,
  withoutMark,
} from './value-columns.ts';

/** A header is expected within the first rows; a table without one has another layout. */
const TITLE_ROWS_MAX = 50;

/** The lines above the values to which a mapping refers: its header, and named cells. */
export class Preamble {
  /** The header line, 0 for none; null until it is found. */
  header: number | null;
  private readonly mapping: Mapping;
  private readonly holds: string | null = null;
  /** Footnote mark at the end of names. */
  readonly mark: string | undefined;
  private readonly wanted: ReadonlySet<number>;
  private readonly rows = new Map<number, TableRow>();
  private day: { readonly row: TableRow; readonly index: number } | null = null;

  constructor(mapping: Mapping) {
    const cell = cellPlace(mapping.vintage?.cell ?? '')?.line ?? 0;
    const expected = (mapping.expect ?? []).map(({ row }) => row);
    const { header } = mapping.rows ?? {};
    this.mapping = mapping;
    this.header = headerOf(mapping);
    if (typeof header === 'object') {
      this.holds = plainText(header.holds);
      this.mark = header.footnoteMark;
    }
    this.wanted = new Set([this.header ?? 0, cell, ...expected]);
  }

  /** The first line with values; null until the header is found. */
  get first(): number | null {
    return this.header === null ? null : firstBelow(this.mapping, this.header);
  }

  /** True if a line must be parsed. Titles may hold anything, even unbalanced quotes. */
  isParsed = (line: number): boolean =>
    this.first === null || line >= this.first || line === this.unitsLine || this.wanted.has(line);

  private get unitsLine(): number {
    return this.mapping.units && this.header ? this.header + 1 : 0;
  }

  /**
   * Consumes a row above the values. @returns false for a row with values
   * @throws Refusal if no header is found
   */
  takes(row: TableRow): boolean {
    if (this.header === null) {
      this.search(row);
      return true;
    }
    if (row.line >= (this.first ?? 0)) return false;
    if (this.wanted.has(row.line) || row.line === this.unitsLine) this.rows.set(row.line, row);
    return true;
  }

  /** Searches a row for the header and for the vintage. */
  private search(row: TableRow): void {
    const names = row.fields.map((field) => plainText(shownText(field)));
    const start = this.mapping.vintage?.startsWith?.toLowerCase();
    const index = names.findIndex(
      (each) => start !== undefined && each.toLowerCase().startsWith(start),
    );
    if (index >= 0) this.day = { row, index };
    if (this.wanted.has(row.line)) this.rows.set(row.line, row);
    if (names.some((name) => withoutMark(name, this.mark) === this.holds)) {
      this.header = row.line;
      this.rows.set(row.line, row);
    } else if (row.line >= TITLE_ROWS_MAX) throw this.missingHeader();
  }

  private missingHeader(): Refusal {
    const message = `None of the first lines has the name "${this.holds}"`;
    return new Refusal('invalid_layout', message);
  }

  /**
   * The header row; null if the table has none.
   * @throws Refusal if it is empty or absent
   */
  headerRow(): TableRow | null {
    if (this.header === null) throw this.missingHeader();
    if (this.header === 0) return null;
    const row = this.rows.get(this.header);
    if (row?.misquoted !== undefined) {
      const other = otherSeparator(row.misquoted);
      const hint = other === null ? '' : `; ${delimiterHint(other)}`;
      throw new Refusal('invalid_quote', `A quotation mark in the header is out of place${hint}`, {
        line: this.header,
        value: row.misquoted,
      });
    }
    if (row?.fields.some((field) => plainText(shownText(field)) !== '')) return row;
    throw new Refusal('missing_column', 'The header line is empty', {
      line: this.header,
    });
  }

  /**
   * Compares cells above the values with the expectations of the mapping.
   * @param next the first row with values
   * @throws Refusal if they differ
   */
  check(columns: TableColumns, next: TableRow): void {
    for (const { column, row, is } of this.mapping.expect ?? []) {
      const index = columns.indexOf(column);
      const found = shownText(this.rows.get(row)?.fields[index]);
      if (plainText(found) === plainText(is)) continue;
      const place = { line: row, column: columns.naming(index, row), value: found };
      throw new Refusal('invalid_layout', `The mapping expects "${is}" here`, place);
    }
    const units = this.rows.get(this.unitsLine);
    for (const [column, unit] of Object.entries(this.mapping.units ?? {})) {
      const index = columns.indexOf(column);
      const { line, fields } = units ?? next;
      const found = plainText(shownText(fields[index]));
      if (units && found === plainText(unit)) continue;
      const place = { line, column: columns.naming(index, line), value: found };
      throw new Refusal('unit_mismatch', `${column} must be in ${unit}`, place);
    }
  }

  /**
   * Parses the vintage in a cell above the values; null if it is in none.
   * @throws Refusal if the cell holds no day
   */
  vintage(source: VintageSource, naming: ColumnNaming, is1904: boolean): string | null {
    const { cell, pattern } = source;
    const named = cell === undefined ? null : cellPlace(cell);
    const found = named ? { row: this.rows.get(named.line), index: named.index } : this.day;
    if (!found) return null;
    const line = named?.line ?? found.row?.line ?? 0;
    const field = found.row?.fields[found.index];
    const day = new DayReader({ pattern }, is1904).read(field);
    if (!(day instanceof Fault)) return day;
    const place = { line, column: naming(found.index, line), value: shownText(field) };
    const message = `The vintage cell does not hold a day: ${day.message}`;
    throw new Refusal(named ? day.code : 'invalid_vintage', message, place);
  }
}
