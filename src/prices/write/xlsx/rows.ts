import type { PointColumns } from '../../../conversion/columns.ts';
import type { RenderContext } from '../../answer/answer.ts';
import { ascii, ByteWriter, fullSlices, POINT_BYTES_MAX } from '../bytes.ts';
import type { Contents } from '../points.ts';
import { type SharedValue, sharedValues } from '../rows.ts';
import { type TableColumn, tableColumns, timeOf, valuesIn } from '../table.ts';
import {
  booleanCell,
  DAY,
  dayCell,
  EMPTY,
  instantCell,
  lettersOf,
  NUMBER,
  NUMBER_TEXT,
  numberCell,
  serialOf,
  textCell,
} from './cells.ts';

/** Writes the variable part of a row: the cell of a point after its reference. */
type PointCell = (index: number) => void;

/** Usual size of the cells of a point. */
const POINT_BYTES = 240;

/** Most bytes of the number of a row. */
const ROW_BYTES = 7;

/**
 * The rows of a record, each with constant bytes, and between them the number of the row or the
 * cell of a point.
 */
export class RecordRows {
  readonly #out = new ByteWriter('');
  /** The bytes before each variable part, and those after the last. */
  readonly #texts: Buffer[] = [];
  /** The variable parts; null for the number of the row. */
  readonly #parts: (PointCell | null)[] = [];
  readonly #room: number;
  readonly #usual: number;
  #digits = ascii('');
  /** The number of rows: one for each point, or one for a record without points. */
  readonly length: number;

  constructor(context: RenderContext, contents: Contents) {
    const points = contents.points?.length ? contents.points : null;
    this.length = points?.length ?? 1;
    this.#shape(context, contents, points);
    const shared = this.#texts.reduce((sum, { length }) => sum + length, 0);
    const numbers = ROW_BYTES * this.#parts.length;
    this.#usual = shared + numbers + POINT_BYTES;
    // The marks around the values of a point double their bytes at most.
    this.#room = shared + numbers + 2 * POINT_BYTES_MAX;
  }

  #shape(context: RenderContext, contents: Contents, points: PointColumns | null): void {
    const { decimalsAsText } = context.plan.options;
    const shared = sharedValues(context, contents);
    const run = { contents, shared, points, from: 0, to: this.length };
    let text = '<row r="';
    const add = (part: PointCell | null): void => {
      this.#texts.push(Buffer.from(text));
      this.#parts.push(part);
      text = '';
    };
    add(null);
    text = '">';
    for (const [place, column] of tableColumns(context.plan).entries()) {
      const values = valuesIn(run, column);
      const reference = `<c r="${lettersOf(place)}`;
      if (values.of === 'record') {
        const cell = sharedCell(values.value, column, decimalsAsText);
        if (cell === null) continue;
        text += reference;
        add(null);
        text += cell;
        continue;
      }
      text += reference;
      add(null);
      if (values.of === 'decimal') add(this.#decimal(values.column, decimalsAsText));
      else if (values.of === 'text') add(this.#text(values.at));
      else if (column.kind === 'day') add(this.#day(values.at));
      else add(column.kind === 'instant' ? this.#instant(values.at) : this.#integer(values.at));
    }
    this.#texts.push(Buffer.from(`${text}</row>`));
  }

  #decimal(column: PointColumns['mid'], isText: boolean): PointCell {
    const out = this.#out;
    const { before, after } = isText ? NUMBER_TEXT : NUMBER;
    return (index) => {
      if (Number.isNaN(column.scaled[index] as number)) {
        out.put(EMPTY);
        return;
      }
      out.put(before);
      out.number(column, index, this.#room);
      out.put(after);
    };
  }

  #text(at: (index: number) => string | null): PointCell {
    const out = this.#out;
    const known = new Map<string, Buffer>();
    return (index) => {
      const text = at(index);
      if (text === null) {
        out.put(EMPTY);
        return;
      }
      const cell = known.get(text) ?? Buffer.from(textCell(text));
      known.set(text, cell);
      out.put(cell);
    };
  }

  #day(at: (index: number) => number): PointCell {
    const out = this.#out;
    return (index) => {
      const day = at(index);
      const serial = Number.isNaN(day) ? null : serialOf(day);
      if (serial !== null) {
        out.put(DAY.before);
        out.integer(serial);
        out.put(DAY.after);
      } else if (Number.isNaN(day)) out.put(EMPTY);
      else out.text(dayCell(day));
    };
  }

  #instant(at: (index: number) => number): PointCell {
    const out = this.#out;
    return (index) => {
      const micros = at(index);
      if (Number.isNaN(micros)) out.put(EMPTY);
      else out.text(instantCell(micros));
    };
  }

  #integer(at: (index: number) => number): PointCell {
    const out = this.#out;
    return (index) => {
      const value = at(index);
      if (Number.isNaN(value)) {
        out.put(EMPTY);
        return;
      }
      out.put(NUMBER.before);
      out.integer(value);
      out.put(NUMBER.after);
    };
  }

  /**
   * Writes some of the rows, in slices.
   * @param from index of the first
   * @param count how many
   * @param row the number of the first in its sheet
   */
  *slices(from: number, count: number, row: number): Generator<Buffer> {
    const out = this.#out;
    const parts = this.#parts;
    const texts = this.#texts;
    const end = texts[parts.length] as Buffer;
    yield* fullSlices(out, count, this.#usual, this.#room, (at) => {
      this.#digits = ascii(String(row + at));
      for (let place = 0; place < parts.length; place += 1) {
        out.put(texts[place] as Buffer);
        const part = parts[place] as PointCell | null;
        if (part === null) out.put(this.#digits);
        else part(from + at);
      }
      out.put(end);
    });
    yield out.end();
  }
}

/** Widths of columns in characters, by kind and by name. */
const KIND_WIDTHS: Readonly<Record<TableColumn['kind'], number>> = {
  text: 16,
  decimal: 14,
  day: 11,
  instant: 20,
  integer: 12,
  boolean: 12,
};
const NAME_WIDTHS: Readonly<Record<string, number>> = {
  code: 13,
  name: 44,
  shortName: 28,
  currency: 9,
  product: 28,
  specification: 40,
};

/** The widths of the columns of an answer. */
export const widthsOf = (columns: readonly TableColumn[]): readonly number[] =>
  columns.map(({ name, kind }) => NAME_WIDTHS[name] ?? KIND_WIDTHS[kind]);

/** A value that all rows of a record share, as a cell; null for an empty one. */
function sharedCell(
  value: SharedValue,
  { kind }: TableColumn,
  isDecimalText: boolean,
): string | null {
  if (value === null) return null;
  if (typeof value === 'object') {
    return isDecimalText ? textCell(value.decimal) : numberCell(value.decimal);
  }
  if (typeof value === 'boolean') return booleanCell(value);
  if (kind === 'day') return dayCell(timeOf(value, kind));
  return kind === 'instant' ? instantCell(timeOf(value, kind)) : textCell(value);
}
