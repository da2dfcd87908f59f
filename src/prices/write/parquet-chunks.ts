import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import type { Encoding } from 'hyparquet';
import { INT128_BYTES, Int128 } from './int128.ts';
import { type Run, rowsIn, type TableColumn, timeOf, valuesIn } from './table.ts';

/*
 * Column chunks of Parquet. A run of equal values costs a few bytes and no time, because most
 * columns are constant in a record, or empty. The encoders of hyparquet-writer read each value
 * several times: a million points took ten times as long and blocked the event loop.
 */

/** A column chunk, before it is written. */
export interface Chunk {
  /** The values of the dictionary, PLAIN; null without a dictionary. */
  readonly dictionary: { readonly bytes: Buffer; readonly count: number } | null;
  readonly encoding: Encoding;
  /** Definition levels. */
  readonly levels: Buffer;
  /** The values that are not null, or their indexes in the dictionary. */
  readonly values: Buffer;
  readonly rows: number;
  readonly nulls: number;
  readonly least: Bound;
  readonly greatest: Bound;
}

/** A bound of the values of a chunk, for readers that skip row groups. */
type Bound = number | bigint | boolean | Uint8Array | undefined;

/** A reused buffer for the values of one chunk at a time, to avoid garbage. */
export class ValueBuffer {
  #bytes = NO_BYTES;

  release(): void {
    this.#bytes = NO_BYTES;
  }

  /** Uninitialized bytes, valid until the next call. */
  take(length: number): Buffer {
    if (this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(length);
    return this.#bytes;
  }
}

function writeVarInt(bytes: number[], value: number): void {
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
}

/** Small integers as RLE runs of the RLE/bit-packing hybrid. */
class RunLengths {
  readonly #runs: { value: number; count: number }[] = [];

  add(value: number, count: number): void {
    const last = this.#runs.at(-1);
    if (last?.value === value) last.count += count;
    else this.#runs.push({ value, count });
  }

  /** @param width bytes of a value */
  bytes(width: number): Buffer {
    const bytes: number[] = [];
    for (const { value, count } of this.#runs) {
      writeVarInt(bytes, 2 * count);
      for (let at = 0; at < width; at += 1) bytes.push((value >>> (8 * at)) & 0xff);
    }
    return Buffer.from(bytes);
  }
}

const NO_BYTES = Buffer.alloc(0);

/** The definition levels of a nullable column: the rows with a value. */
class Levels {
  readonly #runs = new RunLengths();
  #rows = 0;
  #nulls = 0;

  add(hasValue: boolean, count: number): void {
    this.#runs.add(hasValue ? 1 : 0, count);
    this.#rows += count;
    if (!hasValue) this.#nulls += count;
  }

  /** Adds rows with or without a value. */
  addPoints(from: number, to: number, hasValue: (index: number) => boolean): void {
    let start = from;
    for (let index = from + 1; index < to; index += 1) {
      if (hasValue(index) === hasValue(start)) continue;
      this.add(hasValue(start), index - start);
      start = index;
    }
    this.add(hasValue(start), to - start);
  }

  finish(): Pick<Chunk, 'levels' | 'rows' | 'nulls'> {
    return { levels: this.#runs.bytes(1), rows: this.#rows, nulls: this.#nulls };
  }
}

/** The length prefix of some bytes. */
function lengthBefore({ length }: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(length);
  return bytes;
}

/** Texts: a dictionary, and indexes into it. */
function textChunk(column: TableColumn, batch: readonly Run[]): Chunk {
  const levels = new Levels();
  const places = new RunLengths();
  const known = new Map<string, number>();
  const texts: Buffer[] = [];
  const add = (text: string | null, count: number): void => {
    levels.add(text !== null, count);
    if (text === null) return;
    let place = known.get(text);
    if (place === undefined) {
      place = texts.length;
      known.set(text, place);
      texts.push(Buffer.from(text));
    }
    places.add(place, count);
  };
  for (const run of batch) {
    const values = valuesIn(run, column);
    if (values.of === 'text') {
      for (let index = run.from; index < run.to; index += 1) add(values.at(index), 1);
    } else if (values.of === 'record') {
      const { value } = values;
      const text = typeof value === 'object' ? (value?.decimal ?? null) : String(value);
      add(text, run.to - run.from);
    }
  }
  if (texts.length === 0) return { ...NO_VALUES, ...levels.finish() };
  const bits = Math.max(1, 32 - Math.clz32(texts.length - 1));
  const sorted = texts.toSorted(Buffer.compare);
  return {
    dictionary: {
      bytes: Buffer.concat(texts.flatMap((text) => [lengthBefore(text), text])),
      count: texts.length,
    },
    encoding: 'RLE_DICTIONARY',
    values: Buffer.concat([Buffer.of(bits), places.bytes(Math.ceil(bits / 8))]),
    least: sorted[0],
    greatest: sorted.at(-1),
    ...levels.finish(),
  };
}

const NO_VALUES = {
  dictionary: null,
  encoding: 'PLAIN',
  values: NO_BYTES,
  least: undefined,
  greatest: undefined,
} as const;

/** Decimals, without statistics: versions of readers compare their bounds by different rules. */
function decimalChunk(column: TableColumn, batch: readonly Run[], buffer: ValueBuffer): Chunk {
  const { scale } = column;
  const levels = new Levels();
  const bytes = buffer.take(INT128_BYTES * rowsIn(batch));
  const number = new Int128();
  let end = 0;
  const write = (fits: boolean): void => {
    if (!fits) throw new RangeError(`${column.name} has a number with more than ${scale} decimals`);
    number.writeBigEndian(bytes, end);
    end += INT128_BYTES;
  };
  for (const run of batch) {
    const rows = run.to - run.from;
    const values = valuesIn(run, column);
    if (values.of === 'decimal') {
      const { scaled } = values.column;
      const hasValue = (index: number): boolean => !Number.isNaN(scaled[index]);
      levels.addPoints(run.from, run.to, hasValue);
      for (let index = run.from; index < run.to; index += 1) {
        if (hasValue(index)) write(number.setPoint(values.column, index, scale));
      }
    } else if (values.of === 'record') {
      const { value } = values;
      const hasValue = value !== null && typeof value === 'object';
      levels.add(hasValue, rows);
      if (!hasValue) continue;
      const fits = number.setDecimal(value.decimal, scale);
      for (let row = 0; row < rows; row += 1) write(fits);
    }
  }
  return { ...NO_VALUES, values: bytes.subarray(0, end), ...levels.finish() };
}

const TWO_POW_32 = 2 ** 32;

/** Days, whole numbers and instants, PLAIN. */
function numberChunk(column: TableColumn, batch: readonly Run[], buffer: ValueBuffer): Chunk {
  const isLong = column.kind === 'instant';
  const levels = new Levels();
  const bytes = buffer.take((isLong ? 8 : 4) * rowsIn(batch));
  let end = 0;
  let least = Number.POSITIVE_INFINITY;
  let greatest = Number.NEGATIVE_INFINITY;
  const write = (value: number): void => {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
    if (isLong) {
      const high = Math.floor(value / TWO_POW_32);
      end = bytes.writeUInt32LE(value - high * TWO_POW_32, end);
      end = bytes.writeInt32LE(high, end);
    } else end = bytes.writeInt32LE(value, end);
  };
  for (const run of batch) {
    const values = valuesIn(run, column);
    if (values.of === 'number') {
      const { at } = values;
      levels.addPoints(run.from, run.to, (index) => !Number.isNaN(at(index)));
      for (let index = run.from; index < run.to; index += 1) {
        const value = at(index);
        if (!Number.isNaN(value)) write(value);
      }
      continue;
    }
    const value = values.of === 'record' ? timeOf(values.value, column.kind) : Number.NaN;
    const hasValue = !Number.isNaN(value);
    levels.add(hasValue, run.to - run.from);
    if (!hasValue) continue;
    for (let row = run.from; row < run.to; row += 1) write(value);
  }
  if (end === 0) return { ...NO_VALUES, ...levels.finish() };
  const bound = (value: number): Bound => (isLong ? BigInt(value) : value);
  return {
    ...NO_VALUES,
    values: bytes.subarray(0, end),
    least: bound(least),
    greatest: bound(greatest),
    ...levels.finish(),
  };
}

/** True and false. */
function booleanChunk(column: TableColumn, batch: readonly Run[]): Chunk {
  const levels = new Levels();
  const runs = new RunLengths();
  for (const run of batch) {
    const values = valuesIn(run, column);
    const value = values.of === 'record' ? values.value : null;
    levels.add(typeof value === 'boolean', run.to - run.from);
    if (typeof value === 'boolean') runs.add(value ? 1 : 0, run.to - run.from);
  }
  const bytes = runs.bytes(1);
  if (bytes.length === 0) return { ...NO_VALUES, ...levels.finish() };
  return {
    ...NO_VALUES,
    encoding: 'RLE',
    values: Buffer.concat([lengthBefore(bytes), bytes]),
    ...levels.finish(),
  };
}

/** The chunk of a column in a row group. @throws RangeError for a decimal that does not fit */
export function chunkOf(column: TableColumn, batch: readonly Run[], buffer: ValueBuffer): Chunk {
  if (column.kind === 'text') return textChunk(column, batch);
  if (column.kind === 'decimal') return decimalChunk(column, batch, buffer);
  if (column.kind === 'boolean') return booleanChunk(column, batch);
  return numberChunk(column, batch, buffer);
}

const zstd = promisify<Buffer, object, Buffer>(zstdCompress);

const {
  ZSTD_c_compressionLevel: LEVEL,
  ZSTD_c_windowLog: WINDOW,
  ZSTD_c_minMatch: MATCH,
  ZSTD_c_searchLog: SEARCH,
  ZSTD_c_strategy: STRATEGY,
  ZSTD_lazy: LAZY,
} = constants;

/** Bytes of an output chunk of the encoder. */
const PIECE_BYTES = 65_536;

/**
 * Decimals resemble their predecessors in a few bytes. A small window and short matches save a
 * third more than the levels of zstd, in the same time.
 */
const DECIMAL_OPTIONS = {
  params: { [LEVEL]: 3, [WINDOW]: 10, [MATCH]: 3, [SEARCH]: 3, [STRATEGY]: LAZY },
  chunkSize: PIECE_BYTES,
};

/** Days and instants repeat for each price. */
const OTHER_OPTIONS = { params: { [LEVEL]: 3 }, chunkSize: PIECE_BYTES };

/** Minimum size of values that are compressed. */
const BYTES_MIN = 256;

/** The pages of a chunk, compressed. */
export interface Compressed {
  readonly dictionary: Buffer;
  readonly values: Buffer;
}

/** Compresses the pages of a chunk with zstd, off the event loop; null if they are small. */
export async function compressed(
  { kind }: TableColumn,
  { dictionary, values }: Chunk,
): Promise<Compressed | null> {
  const texts = dictionary?.bytes ?? NO_BYTES;
  if (texts.length + values.length < BYTES_MIN) return null;
  const options = kind === 'decimal' ? DECIMAL_OPTIONS : OTHER_OPTIONS;
  return {
    dictionary: texts.length === 0 ? texts : await zstd(texts, options),
    values: await zstd(values, options),
  };
}
