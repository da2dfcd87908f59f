import { Builder, type Offset } from 'flatbuffers';
import { PRECISION } from './int128.ts';
import type { TableColumn } from './table.ts';

/*
 * Messages of an Arrow IPC stream: flatbuffers of the tables in Message.fbs and Schema.fbs of the
 * format. Two libraries write them too. apache-arrow takes half a second to load, 21 MB of memory
 * and 8 MB of disk. flechette is small, but writes only whole tables, not one batch after another.
 */

const VERSION_5 = 4;
const SCHEMA = 1;
const RECORD_BATCH = 3;

/** Values of the union Type. */
const TYPES = { integer: 2, text: 5, boolean: 6, decimal: 7, day: 8, instant: 10 } as const;

const DAYS = 0;
const MILLISECONDS = 1;
const MICROSECONDS = 2;

/** Padding bytes after a length. */
export const paddingOf = (length: number): number => -length & (ALIGNMENT - 1);

/** Writes the type of a column as a table. */
function writeType(builder: Builder, { kind, scale }: TableColumn): Offset {
  const zone = kind === 'instant' ? builder.createString('UTC') : 0;
  builder.startObject(3);
  if (kind === 'integer') {
    builder.addFieldInt32(0, 32, 0);
    builder.addFieldInt8(1, 1, 0);
  } else if (kind === 'decimal') {
    builder.addFieldInt32(0, PRECISION, 0);
    builder.addFieldInt32(1, scale, 0);
  } else if (kind === 'day') {
    builder.addFieldInt16(0, DAYS, MILLISECONDS);
  } else if (kind === 'instant') {
    builder.addFieldInt16(0, MICROSECONDS, 0);
    builder.addFieldOffset(1, zone, 0);
  }
  return builder.endObject();
}

/** Writes a vector of tables. */
function writeVector(builder: Builder, offsets: readonly Offset[]): Offset {
  builder.startVector(4, offsets.length, 4);
  for (const offset of offsets.toReversed()) builder.addOffset(offset);
  return builder.endVector();
}

function writeField(builder: Builder, column: TableColumn): Offset {
  const name = builder.createString(column.name);
  const type = writeType(builder, column);
  const children = writeVector(builder, []);
  builder.startObject(7);
  builder.addFieldOffset(0, name, 0);
  builder.addFieldInt8(1, 1, 0);
  builder.addFieldInt8(2, TYPES[column.kind], 0);
  builder.addFieldOffset(3, type, 0);
  builder.addFieldOffset(5, children, 0);
  return builder.endObject();
}

function writeEntry(builder: Builder, [key, value]: readonly [string, string]): Offset {
  const [keyText, valueText] = [builder.createString(key), builder.createString(value)];
  builder.startObject(2);
  builder.addFieldOffset(0, keyText, 0);
  builder.addFieldOffset(1, valueText, 0);
  return builder.endObject();
}

/** Alignment of messages and buffers in a stream, in bytes. */
const ALIGNMENT = 8;

const CONTINUATION = 0xffff_ffff;

/** A message with its length prefix. @param bodyBytes bytes of the buffers that follow */
function messageOf(builder: Builder, type: number, header: Offset, bodyBytes: number): Buffer {
  builder.startObject(5);
  builder.addFieldInt16(0, VERSION_5, 0);
  builder.addFieldInt8(1, type, 0);
  builder.addFieldOffset(2, header, 0);
  builder.addFieldInt64(3, BigInt(bodyBytes), 0n);
  builder.finish(builder.endObject());
  const message = builder.asUint8Array();
  const padding = paddingOf(message.length);
  const bytes = Buffer.alloc(8 + message.length + padding);
  bytes.writeUInt32LE(CONTINUATION, 0);
  bytes.writeInt32LE(message.length + padding, 4);
  bytes.set(message, 8);
  return bytes;
}

/** The first message of a stream: its columns, and metadata by key. */
export function schemaMessage(
  columns: readonly TableColumn[],
  metadata: readonly (readonly [string, string])[],
): Buffer {
  const builder = new Builder(16_384);
  const fields = writeVector(
    builder,
    columns.map((column) => writeField(builder, column)),
  );
  const entries = writeVector(
    builder,
    metadata.map((entry) => writeEntry(builder, entry)),
  );
  builder.startObject(4);
  builder.addFieldOffset(1, fields, 0);
  builder.addFieldOffset(2, entries, 0);
  return messageOf(builder, SCHEMA, builder.endObject(), 0);
}

/** The values of a column in a record batch. */
export interface ArrowColumn {
  readonly nulls: number;
  /** The buffers of the type in the order of the format, without padding. */
  readonly buffers: readonly Buffer[];
}

/** Writes a vector of structs of two whole numbers. */
function writePairs(builder: Builder, pairs: readonly (readonly [number, number])[]): Offset {
  builder.startVector(16, pairs.length, 8);
  for (const [first, second] of pairs.toReversed()) {
    builder.prep(8, 16);
    builder.writeInt64(BigInt(second));
    builder.writeInt64(BigInt(first));
  }
  return builder.endVector();
}

/** The message before the buffers of a record batch. */
export function batchMessage(rows: number, columns: readonly ArrowColumn[]): Buffer {
  const builder = new Builder(16_384);
  const ranges: [number, number][] = [];
  let end = 0;
  for (const { length } of columns.flatMap(({ buffers }) => buffers)) {
    ranges.push([end, length]);
    end += length + paddingOf(length);
  }
  const buffers = writePairs(builder, ranges);
  const nodes = writePairs(
    builder,
    columns.map(({ nulls }) => [rows, nulls] as const),
  );
  builder.startObject(5);
  builder.addFieldInt64(0, BigInt(rows), 0n);
  builder.addFieldOffset(1, nodes, 0);
  builder.addFieldOffset(2, buffers, 0);
  return messageOf(builder, RECORD_BATCH, builder.endObject(), end);
}

/** The end of a stream. */
export const STREAM_END = Buffer.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);
