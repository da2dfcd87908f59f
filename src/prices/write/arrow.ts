import { Slice } from '../../std/turns.ts';
import type { RenderContext } from '../answer/answer.ts';
import {
  type ArrowColumn,
  batchMessage,
  paddingOf,
  STREAM_END,
  schemaMessage,
} from './arrow-messages.ts';
import { INT128_BYTES, Int128 } from './int128.ts';
import type { Contents } from './points.ts';
import {
  batchesOf,
  type Run,
  rowsIn,
  type TableColumn,
  tableColumns,
  timeOf,
  valuesIn,
} from './table.ts';

/** Target bytes of a record batch, which stays in memory while a slow client reads. */
const BATCH_BYTES = 2_097_152;

/** Target bytes of the first record batch: the response begins once it is encoded. */
const FIRST_BATCH_BYTES = 131_072;

/** Maximum number of rows in a record batch. */
const BATCH_ROWS = 8_192;

/** Zeros for columns without values; shared by all responses and never written to. */
const ZEROS = Buffer.alloc(INT128_BYTES * (BATCH_ROWS + 1));

/**
 * The rows of an answer as one Arrow IPC stream, in record batches that grow to some 2 MB. It has a
 * row for each point, and one without values for a price without points.
 * @param records the contents of all records, in their order
 * @param about the metadata of the schema, by key
 * @throws RangeError for a decimal that does not fit its column
 */
export async function* arrowSlices(
  context: RenderContext,
  records: AsyncIterable<Contents>,
  about: Readonly<Record<string, unknown>>,
): AsyncGenerator<Buffer> {
  const columns = tableColumns(context.plan);
  const metadata = Object.entries(about).map(
    ([key, value]) => [key, JSON.stringify(value)] as const,
  );
  yield schemaMessage(columns, metadata);
  const slice = new Slice();
  const costOf = (shared: Run['shared']) => rowCost(columns, shared);
  for await (const batch of batchesOf(context, records, BATCH_BYTES, costOf, FIRST_BATCH_BYTES)) {
    const encoded: ArrowColumn[] = [];
    for (const column of columns) {
      encoded.push(columnOf(column, batch));
      await slice.yieldIfOver();
    }
    const message = batchMessage(rowsIn(batch), encoded);
    // A slow client does not retain the points.
    batch.length = 0;
    yield message;
    for (const buffer of encoded.flatMap(({ buffers }) => buffers)) {
      if (buffer.length > 0) yield buffer;
      const padding = paddingOf(buffer.length);
      if (padding > 0) yield ZEROS.subarray(0, padding);
    }
    slice.restart();
  }
  yield STREAM_END;
}

/** Validity bitmap: one bit for each row with a value. */
class Validity {
  readonly #bits: Buffer;
  #row = 0;
  nulls = 0;

  constructor(rows: number) {
    this.#bits = Buffer.alloc(Math.ceil(rows / 8));
  }

  add(hasValue: boolean): void {
    const at = this.#row >> 3;
    if (hasValue) this.#bits[at] = (this.#bits[at] as number) | (1 << (this.#row & 7));
    else this.nulls += 1;
    this.#row += 1;
  }

  /** Empty if each row has a value, as the format allows. */
  get buffer(): Buffer {
    return this.nulls === 0 ? ZEROS.subarray(0, 0) : this.#bits;
  }

  column(...values: readonly Buffer[]): ArrowColumn {
    return { nulls: this.nulls, buffers: [this.buffer, ...values] };
  }
}

/** Bytes of a value of each kind, or of its offset. */
const WIDTHS = { text: 4, decimal: INT128_BYTES, day: 4, instant: 8, integer: 4, boolean: 1 / 8 };

/** True if no row of a batch has a value in a column. */
const isEmptyIn = (column: TableColumn, batch: readonly Run[]): boolean =>
  batch.every((run) => {
    const values = valuesIn(run, column);
    return values.of === 'record' && values.value === null;
  });

/** A column without values. */
function emptyColumn({ kind }: TableColumn, rows: number): ArrowColumn {
  const values = ZEROS.subarray(0, Math.ceil(WIDTHS[kind] * (kind === 'text' ? rows + 1 : rows)));
  const bits = ZEROS.subarray(0, Math.ceil(rows / 8));
  const buffers = kind === 'text' ? [bits, values, ZEROS.subarray(0, 0)] : [bits, values];
  return { nulls: rows, buffers };
}

function textColumn(column: TableColumn, batch: readonly Run[]): ArrowColumn {
  const rows = rowsIn(batch);
  const validity = new Validity(rows);
  const offsets = Buffer.allocUnsafeSlow(4 * (rows + 1));
  const texts: Buffer[] = [];
  let end = 0;
  let at = offsets.writeInt32LE(0, 0);
  const add = (text: Buffer | null): void => {
    validity.add(text !== null);
    if (text !== null) {
      texts.push(text);
      end += text.length;
    }
    at = offsets.writeInt32LE(end, at);
  };
  const known = new Map<string, Buffer>();
  const bytesOf = (text: string | null): Buffer | null => {
    if (text === null) return null;
    const bytes = known.get(text) ?? Buffer.from(text);
    known.set(text, bytes);
    return bytes;
  };
  for (const run of batch) {
    const values = valuesIn(run, column);
    if (values.of === 'text') {
      for (let index = run.from; index < run.to; index += 1) add(bytesOf(values.at(index)));
    } else if (values.of === 'record') {
      const { value } = values;
      const text = typeof value === 'object' ? (value?.decimal ?? null) : String(value);
      const bytes = bytesOf(text);
      for (let row = run.from; row < run.to; row += 1) add(bytes);
    }
  }
  return validity.column(offsets, Buffer.concat(texts, end));
}

function decimalColumn(column: TableColumn, batch: readonly Run[]): ArrowColumn {
  const { name, scale } = column;
  const rows = rowsIn(batch);
  const validity = new Validity(rows);
  const bytes = Buffer.alloc(INT128_BYTES * rows);
  const number = new Int128();
  let at = 0;
  const add = (fits: boolean | null): void => {
    if (fits === false)
      throw new RangeError(`${name} has a number with more than ${scale} decimals`);
    validity.add(fits !== null);
    if (fits) number.writeLittleEndian(bytes, at);
    at += INT128_BYTES;
  };
  for (const run of batch) {
    const values = valuesIn(run, column);
    if (values.of === 'decimal') {
      const { scaled } = values.column;
      for (let index = run.from; index < run.to; index += 1) {
        add(Number.isNaN(scaled[index]) ? null : number.setPoint(values.column, index, scale));
      }
    } else if (values.of === 'record') {
      const { value } = values;
      const isNumber = value !== null && typeof value === 'object';
      const fits = isNumber ? number.setDecimal(value.decimal, scale) : null;
      for (let row = run.from; row < run.to; row += 1) add(fits);
    }
  }
  return validity.column(bytes);
}

const TWO_POW_32 = 2 ** 32;

/** Days, whole numbers and instants. */
function numberColumn(column: TableColumn, batch: readonly Run[]): ArrowColumn {
  const isLong = column.kind === 'instant';
  const rows = rowsIn(batch);
  const validity = new Validity(rows);
  const bytes = Buffer.alloc(WIDTHS[column.kind] * rows);
  let at = 0;
  const add = (number: number): void => {
    const hasValue = !Number.isNaN(number);
    validity.add(hasValue);
    const value = hasValue ? number : 0;
    if (isLong) {
      const high = Math.floor(value / TWO_POW_32);
      at = bytes.writeUInt32LE(value - high * TWO_POW_32, at);
      at = bytes.writeInt32LE(high, at);
    } else at = bytes.writeInt32LE(value, at);
  };
  for (const run of batch) {
    const values = valuesIn(run, column);
    if (values.of === 'number') {
      for (let index = run.from; index < run.to; index += 1) add(values.at(index));
    } else if (values.of === 'record') {
      const time = timeOf(values.value, column.kind);
      for (let row = run.from; row < run.to; row += 1) add(time);
    }
  }
  return validity.column(bytes);
}

/** True and false, a bit each. */
function booleanColumn(column: TableColumn, batch: readonly Run[]): ArrowColumn {
  const rows = rowsIn(batch);
  const validity = new Validity(rows);
  const bytes = Buffer.alloc(Math.ceil(rows / 8));
  let row = 0;
  for (const run of batch) {
    const values = valuesIn(run, column);
    const value = values.of === 'record' ? values.value : null;
    for (let index = run.from; index < run.to; index += 1) {
      validity.add(typeof value === 'boolean');
      if (value === true) bytes[row >> 3] = (bytes[row >> 3] as number) | (1 << (row & 7));
      row += 1;
    }
  }
  return validity.column(bytes);
}

/** The values of a column in a batch. @throws RangeError for a decimal that does not fit */
function columnOf(column: TableColumn, batch: readonly Run[]): ArrowColumn {
  if (isEmptyIn(column, batch)) return emptyColumn(column, rowsIn(batch));
  if (column.kind === 'text') return textColumn(column, batch);
  if (column.kind === 'decimal') return decimalColumn(column, batch);
  return column.kind === 'boolean' ? booleanColumn(column, batch) : numberColumn(column, batch);
}

/** Bytes of a row of a record: its texts, and values of other kinds. */
function rowCost(columns: readonly TableColumn[], shared: Run['shared']): number {
  let bytes = BATCH_BYTES / BATCH_ROWS;
  let own = 0;
  for (const { name, kind } of columns) {
    const value = shared[name];
    own += WIDTHS[kind] + (typeof value === 'string' ? value.length : 0);
  }
  if (own > bytes) bytes = own;
  return Math.ceil(bytes);
}
