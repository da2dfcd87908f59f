import { Problem } from '../../errors.ts';
import { UNHELD_BYTES } from '../../std/held-bytes.ts';
import { Slice } from '../../std/turns.ts';
import { type AnswerWork, memoryInUse, type RecordContext } from '../answer/answer.ts';
import { ascii, type ByteWriter, QUOTE } from './bytes.ts';
import type { Contents } from './points.ts';
import { headerRow, type RowNotation } from './rows.ts';

/** One column of a wide table: the mids of a price, in date order, in few bytes. */
interface WideColumn {
  readonly code: string;
  /** Currency and unit of the numbers, such as `USD/t`, and VAT that could not be excluded. */
  readonly currencyAndUnit: string;
  /** True if the numbers are not what the request asks for. */
  readonly isRefused: boolean;
  /** Shared by neighbouring columns of the same days. */
  readonly day: Int32Array;
  /** Scaled integers: 32 bits if all fit. NaN is null; the text of Infinity is in `texts`. */
  readonly scaled: Int32Array | Float64Array;
  /** The decimals of each number, or of all numbers. */
  readonly scale: Uint8Array | number;
  readonly texts: ReadonlyMap<number, string> | null;
  /** Estimate of its memory. */
  readonly bytes: number;
}

/** Name of the first column. */
const DATE = 'date';

/** Maximum bytes of a number that fits a double: one has up to 100 decimals. */
const CELL_BYTES_MAX = 112;

/** Memory of a column beside its values: objects, code, and key of its cells. */
const COLUMN_BYTES = 1_024;

/** Memory of the text of a number, without its characters. */
const TEXT_BYTES = 64;

/** Memory that a table requests at a time. */
const HOLD_BYTES = 1_048_576;

/** Reads the size of a table. @throws Problem `validation_failed` when it is too large */
export async function checkWide(records: AsyncIterable<Contents>, cellsMax: number): Promise<void> {
  const size = new WideSize(cellsMax);
  for await (const { points } of records) size.add(points?.day ?? new Int32Array());
}

const isInt32 = (value: number): boolean => (value | 0) === value;

const isEqual = (one: Int32Array, other: Int32Array): boolean =>
  one.length === other.length && one.every((day, index) => day === other[index]);

const NO_DAYS = new Int32Array();
const NO_VALUES = new Float64Array();

/** @param daysBefore the days of the column before */
function wideColumn(
  { price, currencyAndUnit, receipt, points }: Contents,
  daysBefore: Int32Array,
): WideColumn {
  const { currency, unitOfMeasure } = currencyAndUnit;
  const {
    scaled,
    scale,
    wide: texts,
  } = points?.mid ?? {
    scaled: NO_VALUES,
    scale: new Uint8Array(),
    wide: null,
  };
  const names = currency === null ? unitOfMeasure.name : `${currency.iso}/${unitOfMeasure.name}`;
  const day = points?.day ?? NO_DAYS;
  const isRepeated = isEqual(day, daysBefore);
  // Copies: views would pin the other columns of the series.
  const own = {
    day: isRepeated ? daysBefore : day.slice(),
    scaled: scaled.every(isInt32) ? Int32Array.from(scaled) : scaled.slice(),
    scale: scale.every((each) => each === scale[0]) ? (scale[0] ?? 0) : scale.slice(),
  };
  let bytes = COLUMN_BYTES + own.scaled.byteLength + (isRepeated ? 0 : day.byteLength);
  if (typeof own.scale !== 'number') bytes += own.scale.byteLength;
  for (const text of texts?.values() ?? []) bytes += TEXT_BYTES + text.length;
  return {
    code: price.code,
    currencyAndUnit: receipt?.vat === 'included' ? `${names} with VAT` : names,
    isRefused: receipt?.status === 'refused',
    ...own,
    texts,
    bytes,
  };
}

function tooWide(sizeMax: string): Problem {
  const detail = `A wide table has at most ${sizeMax}; request fewer prices or days`;
  return new Problem('validation_failed', 'The table is too large; errors names the option', {
    errors: [{ pointer: '/options/layout', code: 'out_of_range', detail }],
  });
}

/** The size of a table whose columns are added one by one. */
class WideSize {
  readonly days = new Set<number>();
  readonly #cellsMax: number;
  #columns = 0;
  #values = 0;

  constructor(cellsMax: number) {
    this.#cellsMax = cellsMax;
  }

  /** Adds a column. @throws Problem `validation_failed` when the table is too large */
  add(day: Int32Array): void {
    for (const each of day) this.days.add(each);
    this.#columns += 1;
    this.#values += day.length;
    const cells = Math.max(this.#values, this.days.size * this.#columns);
    if (cells > this.#cellsMax) throw tooWide(`${this.#cellsMax} cells`);
  }
}

/**
 * Takes the memory of a table from the budget, in advance.
 * @throws Problem `overloaded` beyond the budget, `validation_failed` if it never has room
 */
class WideMemory {
  readonly #work: AnswerWork;
  #bytes = 0;
  #held = UNHELD_BYTES;

  constructor(work: AnswerWork) {
    this.#work = work;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    while (this.#bytes > this.#held) {
      if (this.#bytes > this.#work.holdMax) {
        const mb = Math.floor(this.#work.holdMax / 1_000_000);
        throw tooWide(`${mb} MB of numbers with all their digits`);
      }
      if (!this.#work.hold(HOLD_BYTES)) throw memoryInUse();
      this.#held += HOLD_BYTES;
    }
  }
}

/** Reads the columns of a table. @throws Problem if it is too large, see `wideSlices` */
async function wideColumns(records: AsyncIterable<Contents>, work: AnswerWork, cellsMax: number) {
  const columns: WideColumn[] = [];
  const size = new WideSize(cellsMax);
  const memory = new WideMemory(work);
  let days: Int32Array = NO_DAYS;
  for await (const contents of records) {
    const column = wideColumn(contents, days);
    size.add(column.day);
    memory.add(column.bytes);
    columns.push(column);
    days = column.day;
  }
  return { columns, days: [...size.days].sort((one, other) => one - other) };
}

/**
 * The codes. If currency or unit differ between columns, each code is followed by its own. Also in
 * a page, which does not know those of other pages, so that all pages have the same names.
 */
function namesOf(columns: readonly WideColumn[], isPage: boolean): string[] {
  const isUniform =
    new Set(columns.map(({ currencyAndUnit }) => currencyAndUnit)).size <= 1 &&
    !columns.some(({ isRefused }) => isRefused);
  return columns.map(({ code, currencyAndUnit }) =>
    isUniform && !isPage && code !== DATE ? code : `${code} [${currencyAndUnit}]`,
  );
}

/** Writes the mid at an index. @param room bytes that must still fit after it */
function writeMid(
  out: ByteWriter,
  { scaled, scale, texts }: WideColumn,
  index: number,
  room: number,
): void {
  const value = scaled[index] as number;
  const text = value === Number.POSITIVE_INFINITY ? texts?.get(index) : undefined;
  if (text === undefined) {
    out.decimal(value, typeof scale === 'number' ? scale : (scale[index] as number));
    return;
  }
  out.reserve(text.length + room);
  out.put(ascii(text));
}

/** The notation of a wide table with some names of columns. */
export interface WideNotation {
  readonly out: ByteWriter;
  /** Most bytes of the start or the end of a row, or of a cell beside its number. */
  readonly room: number;
  /** The bytes before the first row. */
  readonly start: Buffer;
  /** @param row 0 for the first */
  rowStart(row: number, day: number): void;
  cellStart(place: number, hasValue: boolean): void;
  cellEnd(hasValue: boolean): void;
  rowEnd(): void;
  /** The bytes after the last row. */
  end(rows: number): Iterable<Buffer>;
}

/**
 * A wide table as CSV or as JSON objects.
 * @param names the name of the dates, and those of the other columns
 * @param lastRows further rows at the end
 */
export function wideRows(
  notation: RowNotation,
  [date = '', ...names]: readonly string[],
  lastRows: Iterable<Buffer>,
): WideNotation {
  const { out, isJson, isText, rowEnd } = notation;
  const keys = names.map((name) => Buffer.from(notation.before(name, false)));
  const rowStart = notation.rowStart + notation.before(date, true);
  let from = 0;
  return {
    out,
    room: keys.reduce((longest, { length }) => Math.max(longest, length), 64),
    start: isJson ? Buffer.from('[') : headerRow([date, ...names], notation),
    rowStart(row, day) {
      if (isJson && row > 0) out.text(',');
      out.text(rowStart);
      notation.day(day);
    },
    cellStart(place, hasValue) {
      out.put(keys[place] as Buffer);
      if (!hasValue) out.decimal(Number.NaN, 0);
      else if (isText) out.byte(QUOTE);
      from = out.at;
    },
    cellEnd(hasValue) {
      if (notation.hasDecimalCommas) out.decimalCommas(from);
      if (hasValue && isText) out.byte(QUOTE);
    },
    rowEnd: () => out.text(rowEnd),
    end: () => (isJson ? [Buffer.from(']')] : lastRows),
  };
}

/**
 * A table of mids with a row for each date and a column for each code, in slices.
 * @param records the contents of all records, in the order of the columns
 * @param notationOf the notation of a table with these names of columns, the first that of dates
 * @throws Problem `validation_failed` when the table has too many cells, because it is held in
 *   memory, and `overloaded` if other answers hold the memory; both before the first slice
 */
export async function* wideSlices(
  { plan, work, wideCellsMax }: RecordContext,
  records: AsyncIterable<Contents>,
  notationOf: (names: readonly string[]) => WideNotation,
): AsyncGenerator<Buffer> {
  const { columns, days } = await wideColumns(records, work, wideCellsMax);
  const names = namesOf(columns, plan.page.limit !== null || plan.page.after !== null);
  const notation = notationOf([DATE, ...names]);
  const { out } = notation;
  const next = new Uint32Array(columns.length);
  const room = notation.room + CELL_BYTES_MAX;
  yield notation.start;
  const slice = new Slice();
  for (const [row, day] of days.entries()) {
    // A sheet has no bytes for an empty cell: millions of cells may fit one slice of bytes.
    if (slice.isOver) await slice.yieldIfOver();
    out.reserve(room);
    notation.rowStart(row, day);
    for (const [place, column] of columns.entries()) {
      const index = next[place] as number;
      const hasDay = column.day[index] === day;
      const hasValue = hasDay && !Number.isNaN(column.scaled[index]);
      out.reserve(room);
      notation.cellStart(place, hasValue);
      if (hasValue) writeMid(out, column, index, room);
      notation.cellEnd(hasValue);
      if (hasDay) next[place] = index + 1;
      // A row of many columns may be longer than a slice.
      if (!out.isFull) continue;
      yield out.end();
      slice.restart();
    }
    out.reserve(room);
    notation.rowEnd();
  }
  yield out.end();
  yield* notation.end(days.length);
}
