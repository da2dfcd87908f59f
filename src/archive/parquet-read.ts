import type { FileHandle } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  type SchemaElement,
} from 'hyparquet';
import type { Column } from './columns.ts';
import { fieldOf } from './copy-text.ts';
import { encodingOf, schemaOf } from './parquet-columns.ts';

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

/** What makes a column what it is, as one text. */
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
  const encodings = columns.map(encodingOf);
  const textOf = (value: unknown, at: number): string =>
    fieldOf(value === null || value === undefined ? null : (encodings[at]?.decode(value) ?? null));
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
