import type { FileHandle } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  type SchemaElement,
} from 'hyparquet';
import { schemaOf } from '../../src/archive/parquet-write.ts';
import type { Column, ColumnKind } from '../../src/archive/tables.ts';
import { fieldOf } from './copy-fields.ts';

const SCALE = 10;
const DAY_MS = 86_400_000;

/** The decimal number of a big-endian number of its tenth decimals, without zeros at its end. */
export function unscaled(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  const number = BigInt.asIntN(8 * bytes.length, BigInt(`0x${hex}`));
  const digits = String(number < 0n ? -number : number).padStart(SCALE + 1, '0');
  const text = `${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`.replace(/\.?0+$/, '');
  return number < 0n ? `-${text}` : text;
}

/** A number of days since 1970 as a date. */
const dateOf = (days: number): string => new Date(days * DAY_MS).toISOString().slice(0, 10);

/** A number of microseconds since 1970 as an instant; no Date sees the microseconds. */
function instantOf(micros: bigint): string {
  const ofSecond = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((micros - ofSecond) / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(ofSecond).padStart(6, '0')}Z`;
}

const textOfBytes = (bytes: unknown): string => Buffer.from(bytes as Uint8Array).toString('utf8');

/** The text that PostgreSQL takes for a value of the file, whose annotations are left aside. */
const DECODERS: Readonly<Record<ColumnKind, (value: unknown) => string>> = {
  integer: String,
  bigint: String,
  boolean: String,
  decimal: (bytes) => unscaled(bytes as Uint8Array),
  number: textOfBytes,
  date: (days) => dateOf(days as number),
  instant: (micros) => instantOf(micros as bigint),
  json: textOfBytes,
  bytes: (bytes) => `\\x${Buffer.from(bytes as Uint8Array).toString('hex')}`,
  text: textOfBytes,
};

/** A part of a file that is open, as the reader asks for it. */
const bufferOf = (handle: FileHandle, size: number): AsyncBuffer => ({
  byteLength: size,
  async slice(start, end = size) {
    const bytes = new Uint8Array(Math.max(0, Math.min(end, size) - start));
    for (let at = 0; at < bytes.length; ) {
      const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
      if (bytesRead === 0) throw new Error('the file ends too early');
      at += bytesRead;
    }
    return bytes.buffer;
  },
});

/** The definition of a column, as one text. */
const described = (element: SchemaElement): string =>
  [
    element.name,
    element.type,
    element.type_length,
    element.repetition_type,
    element.converted_type,
    element.precision,
    element.scale,
    element.num_children,
  ].join(' ');

function requireSchema({ schema }: FileMetaData, columns: readonly Column[]): void {
  const expected = schemaOf(columns).map(described);
  const found = schema.map(described);
  // The name of the root, and whether it repeats, say nothing.
  const wrong = expected.findIndex((each, at) => at > 0 && each !== found[at]);
  if (wrong < 0 && found.length === expected.length) return;
  const what = columns[wrong - 1]?.name ?? 'a column too many';
  throw new Error(`its columns are not those of the manifest: ${what}`);
}

/**
 * The same columns without what their bytes mean: the reader would make binary numbers of decimals
 * and cut the microseconds of timestamps.
 */
const plain = (metadata: FileMetaData): FileMetaData => ({
  ...metadata,
  schema: metadata.schema.map((element) => {
    const { converted_type: _converted, logical_type: _logical, ...rest } = element;
    return rest;
  }),
});

/**
 * The rows of a Parquet file in PostgreSQL's text format, a row group at once.
 * @throws Error when the file is damaged or has other columns
 */
export async function* parquetRows(
  handle: FileHandle,
  size: number,
  columns: readonly Column[],
): AsyncGenerator<string> {
  const file = bufferOf(handle, size);
  const metadata = await parquetMetadataAsync(file, { geoparquet: false });
  requireSchema(metadata, columns);
  const decoders = columns.map(({ kind }) => DECODERS[kind]);
  const textOf = (value: unknown, at: number): string =>
    fieldOf(value === null || value === undefined ? null : (decoders[at]?.(value) ?? null));
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    let text = '';
    await parquetRead({
      file,
      metadata: plain(metadata),
      rowStart,
      rowEnd,
      utf8: false,
      geoparquet: false,
      onComplete: (rows) => {
        text = rows.map((row) => `${row.map(textOf).join('\t')}\n`).join('');
      },
    });
    rowStart = rowEnd;
    yield text;
  }
}
