import { didYouMean } from '../../catalog/nearest.ts';
import { DELIMITERS } from '../parsing/rows.ts';
import { indexOfLetters, lettersOfIndex } from '../parsing/xlsx-cells.ts';
import { Refusal } from '../records/load-error.ts';
import type { PointField, PointPlaces } from '../records/source-record.ts';
import { DayReader, Fault, type Field, plainText, shownText, type TableRow } from './fields.ts';
import type { ColumnRef, Mapping, Published } from './schema.ts';

/** Names a column in messages, by its index from 0 and a line. */
export type ColumnNaming = (index: number, line: number) => string;

/** Suggests a delimiter that the mapping does not state. */
export const delimiterHint = (name: string, columns = 'columns'): string =>
  `${columns} are separated by ${name}s; set this in the mapping, text: { delimiter: ${name} }`;

/**
 * The hint for a one-column text that lacks a column: a delimiter that would split its header into
 * columns with this one. null if there is none.
 */
function otherDelimiter(header: TableRow | null, column: ColumnRef): string | null {
  const text = shownText(header?.fields[0]);
  const splits = Object.entries(DELIMITERS).find(([, delimiter]) => {
    const names = text.split(delimiter).map(plainText);
    const place = typeof column === 'number' ? column : indexOfLetters(column) + 1;
    const isThere = names.includes(plainText(String(column)));
    return names.length > 1 && (isThere || (place > 0 && place <= names.length));
  });
  if (!splits) return null;
  return delimiterHint(splits[0], 'Columns');
}

/** Removes footnote marks from the end of a name. */
export const withoutMark = (name: string, mark: string | undefined): string =>
  mark !== undefined && name.endsWith(mark)
    ? withoutMark(name.slice(0, -mark.length).trimEnd(), mark)
    : name;

/** Resolves the column references of a mapping. */
export class TableColumns {
  /** The header row; null if there is none. */
  readonly header: TableRow | null;
  readonly naming: ColumnNaming;
  private readonly names: readonly string[] | null;
  /** Number of columns; null for a workbook, whose rows have no fixed width. */
  private readonly width: number | null;

  constructor(header: TableRow | null, width: number | null, naming: ColumnNaming, mark?: string) {
    this.header = header;
    this.width = width;
    this.naming = naming;
    this.names = header
      ? Array.from(header.fields, (field) => withoutMark(plainText(shownText(field)), mark))
      : null;
  }

  private fail(reason: string, value: ColumnRef): never {
    const line = this.header?.line ?? null;
    const message = this.width === 1 ? (otherDelimiter(this.header, value) ?? reason) : reason;
    throw new Refusal('missing_column', message, { line, value: String(value) });
  }

  /**
   * The index of a column, from 0.
   * @throws Refusal if there is none, or more than one
   */
  indexOf(column: ColumnRef): number {
    if (typeof column === 'number') return this.inside(column - 1, column);
    if (!this.names) return this.inside(indexOfLetters(column), column);
    const name = plainText(column);
    const index = this.names.indexOf(name);
    if (index < 0) {
      this.fail(
        `The header has no column of this name${didYouMean(name, this.names.filter(Boolean))}`,
        column,
      );
    }
    if (this.names.indexOf(name, index + 1) >= 0) {
      this.fail('The header has two columns of this name: refer to one by its place', column);
    }
    return index;
  }

  private inside(index: number, column: ColumnRef): number {
    if (this.width === null || index < this.width) return index;
    return this.fail(`There is no such column; the table has ${this.width}`, column);
  }
}

/** The column indexes of one price; -1 for absent columns. */
export interface PointColumnIndexes {
  /** null if the code is in the column `codeAt`. */
  readonly code: string | null;
  readonly codeAt: number;
  /** The date in the heading of the values; null if the date is in the column `dateAt`. */
  readonly date: string | null;
  readonly dateAt: number;
  readonly low: number;
  readonly mid: number;
  readonly high: number;
  readonly publishedAt: number;
  readonly published: Published | undefined;
  readonly places: PointPlaces;
}

type ColumnIndexes = Omit<PointColumnIndexes, 'places'>;

function withPlaces(place: ColumnIndexes, naming: ColumnNaming): PointColumnIndexes {
  const columns: Readonly<Record<PointField, number>> = {
    code: place.codeAt,
    date: place.dateAt,
    low: place.low,
    mid: place.mid,
    high: place.high,
    publishedAt: place.publishedAt,
  };
  // A code or date without a column of its own belongs to the column of the values.
  const indexOf = (field: PointField): number =>
    columns[field] < 0 && (field === 'code' || field === 'date') ? place.mid : columns[field];
  const nameOf = (field: PointField, line: number): string =>
    indexOf(field) < 0 ? field : naming(indexOf(field), line);
  return { ...place, places: { nameOf } };
}

/** The columns whose headings are dates, with their days. */
function datedColumns(
  { dateColumns }: Mapping,
  columns: TableColumns,
  is1904: boolean,
): [index: number, day: string][] {
  const { header } = columns;
  if (!dateColumns || !header) return [];
  const first = columns.indexOf(dateColumns.first);
  const filled = header.fields.findLastIndex((field) => plainText(shownText(field)) !== '');
  const last = dateColumns.last === undefined ? filled : columns.indexOf(dateColumns.last);
  if (last < first) {
    throw new Refusal('missing_column', 'No heading from the first column on is a date', {
      line: header.line,
    });
  }
  const days = new DayReader(dateColumns, is1904);
  const found: [number, string][] = [];
  for (let index = first; index <= last; index += 1) {
    const field: Field | undefined = header.fields[index];
    const day = days.read(field);
    if (day instanceof Fault) {
      const { line } = header;
      const place = { line, column: columns.naming(index, line), value: shownText(field) };
      throw new Refusal(day.code, `The heading is not a date: ${day.message}`, place);
    }
    found.push([index, day]);
  }
  return found;
}

/**
 * The columns of each point in a row. A table with a code in each row has one point, and a table of
 * rates none. Otherwise there is a point for each price or date with columns of its own.
 * @throws Refusal if the table lacks a column of the mapping
 */
export function pointColumnsOf(
  mapping: Mapping,
  columns: TableColumns,
  is1904: boolean,
): PointColumnIndexes[] {
  const at = (column: ColumnRef | undefined): number =>
    column === undefined ? -1 : columns.indexOf(column);
  const { code, low, mid, high, published } = mapping;
  const shared = {
    code: code?.constant ?? null,
    codeAt: at(code?.column),
    date: null,
    dateAt: at(mapping.date?.column),
    low: at(low),
    mid: at(mid),
    high: at(high),
    publishedAt: at(mapping.publishedAt?.column),
    published,
  };
  const place = (own: Partial<ColumnIndexes>): PointColumnIndexes =>
    withPlaces({ ...shared, ...own }, columns.naming);
  if (mid !== undefined) return [place({})];
  if (mapping.dateColumns) {
    return datedColumns(mapping, columns, is1904).map(([index, date]) =>
      place({ date, mid: index }),
    );
  }
  if (!Array.isArray(mapping.columns)) {
    return Object.entries(mapping.columns ?? {}).map(([name, each]) =>
      place({ code: each, mid: at(name) }),
    );
  }
  return mapping.columns.map((each) =>
    place({
      code: each.code,
      low: at(each.low),
      mid: at(each.mid),
      high: at(each.high),
      published: each.published ?? published,
    }),
  );
}

/** Names the columns of a text by heading, or by place if there is none. */
export const namesOfText =
  (header: TableRow | null): ColumnNaming =>
  (index, line) => {
    const isBelow = header !== null && line >= header.line;
    const name = isBelow ? plainText(shownText(header.fields[index])) : '';
    return name || `column ${index + 1}`;
  };

/** Names the columns of a sheet by letters and heading: `C Copper`. */
export const lettersAndNames =
  (header: TableRow | null, mark: string | undefined): ColumnNaming =>
  (index, line) => {
    const isBelow = header !== null && line >= header.line;
    const name = isBelow ? withoutMark(plainText(shownText(header.fields[index])), mark) : '';
    return `${lettersOfIndex(index)} ${name}`.trim();
  };

/** Names the cells of a sheet as formulas do: `Prices!C17`. */
export function namesOfSheet(sheet: string): ColumnNaming {
  const name = /^\w+$/.test(sheet) ? sheet : `'${sheet.replaceAll("'", "''")}'`;
  return (index, line) => `${name}!${lettersOfIndex(index)}${line}`;
}
