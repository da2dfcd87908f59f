import type { ColumnChunk, SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { Slice } from '../../std/turns.ts';
import type { RenderContext } from '../answer/answer.ts';
import { SLICE_BYTES } from './bytes.ts';
import { INT128_BYTES, PRECISION } from './int128.ts';
import { type Chunk, type Compressed, chunkOf, compressed, ValueBuffer } from './parquet-chunks.ts';
import type { Contents } from './points.ts';
import {
  batchesOf,
  rowsIn,
  type TableColumn,
  type TableColumnKind,
  tableColumns,
} from './table.ts';

/** Rows of one row group. Its points, some 3 MB, stay in memory while it is written. */
const GROUP_ROWS = 65_536;

/** The type of a column, without its name. */
type ParquetType = Omit<SchemaElement, 'name' | 'repetition_type'>;

const TYPES: Readonly<Record<Exclude<TableColumnKind, 'decimal'>, ParquetType>> = {
  text: {
    type: 'BYTE_ARRAY',
    converted_type: 'UTF8',
    logical_type: { type: 'STRING' },
  },
  day: {
    type: 'INT32',
    converted_type: 'DATE',
    logical_type: { type: 'DATE' },
  },
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  integer: { type: 'INT32' },
  boolean: { type: 'BOOLEAN' },
};

/**
 * The rows of an answer as one Parquet file, in pieces: a row for each point, or one without
 * values for a price without points.
 * @param records the contents of all records, in their order
 * @param about the metadata of the file, by key
 * @throws RangeError for a decimal that does not fit its column
 */
export async function* parquetSlices(
  context: RenderContext,
  records: AsyncIterable<Contents>,
  about: Readonly<Record<string, unknown>>,
): AsyncGenerator<Buffer> {
  const columns = tableColumns(context.plan);
  const elements = columns.map(elementOf);
  const out = new PieceWriter(SLICE_BYTES);
  const file = new ParquetWriter({
    writer: out,
    schema: [{ name: 'root', num_children: columns.length }, ...elements],
    createdBy: 'commodity-prices',
    kvMetadata: Object.entries(about).map(([key, value]) => ({
      key,
      value: JSON.stringify(value),
    })),
  });
  const slice = new Slice();
  for await (const batch of batchesOf(context, records, GROUP_ROWS, () => 1)) {
    const start = out.offset;
    const rows = BigInt(rowsIn(batch));
    const chunks: ColumnChunk[] = [];
    const pieces: Buffer[] = [];
    const buffer = new ValueBuffer();
    for (const [at, column] of columns.entries()) {
      const chunk = chunkOf(column, batch, buffer);
      const pages = await compressed(column, chunk);
      chunks.push(writeChunk(out, elements[at] as SchemaElement, chunk, pages));
      if (out.index >= SLICE_BYTES) pieces.push(out.take());
      // The compression ran outside the event loop.
      if (pages !== null) slice.restart();
      await slice.yieldIfOver();
    }
    // A slow client retains the compressed bytes, and not the points and the buffer.
    batch.length = 0;
    buffer.release();
    file.num_rows += rows;
    file.row_groups.push({
      columns: chunks,
      total_byte_size: chunks.reduce(
        (sum, each) => sum + (each.meta_data?.total_uncompressed_size ?? 0n),
        0n,
      ),
      total_compressed_size: BigInt(out.offset - start),
      num_rows: rows,
    });
    pieces.push(out.take());
    yield* pieces;
  }
  await file.finish();
  yield out.take();
}

/** The type of exact decimals. @param scale digits after the decimal point */
const decimalType = (scale: number): ParquetType => ({
  type: 'FIXED_LEN_BYTE_ARRAY',
  type_length: INT128_BYTES,
  converted_type: 'DECIMAL',
  logical_type: { type: 'DECIMAL', precision: PRECISION, scale },
  precision: PRECISION,
  scale,
});

const elementOf = ({ name, kind, scale }: TableColumn): SchemaElement => ({
  name,
  ...(kind === 'decimal' ? decimalType(scale) : TYPES[kind]),
  repetition_type: 'OPTIONAL',
});

/** Collects the bytes of chunks. */
class PieceWriter extends ByteWriter {
  /** The bytes since the last call, whose ownership passes to the caller. */
  take(): Buffer {
    const piece = Buffer.from(this.buffer, 0, this.index);
    this.buffer = new ArrayBuffer(SLICE_BYTES);
    this.view = new DataView(this.buffer);
    this.index = 0;
    return piece;
  }

  override async finish(): Promise<void> {}
}

/** Writes the dictionary of a chunk, if any, and its values. Returns the offset of the values. */
function writePages(out: PieceWriter, chunk: Chunk, pages: Compressed | null): number {
  const { dictionary, encoding, levels, values, rows, nulls } = chunk;
  if (dictionary !== null) {
    const { bytes, count } = dictionary;
    const sent = pages?.dictionary ?? bytes;
    writePageHeader(out, {
      type: 'DICTIONARY_PAGE',
      uncompressed_page_size: bytes.length,
      compressed_page_size: sent.length,
      dictionary_page_header: { num_values: count, encoding: 'PLAIN' },
    });
    out.appendBytes(sent);
  }
  const start = out.offset;
  const sent = pages?.values ?? values;
  writePageHeader(out, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: levels.length + values.length,
    compressed_page_size: levels.length + sent.length,
    data_page_header_v2: {
      num_values: rows,
      num_nulls: nulls,
      num_rows: rows,
      encoding,
      definition_levels_byte_length: levels.length,
      repetition_levels_byte_length: 0,
      is_compressed: pages !== null,
    },
  });
  out.appendBytes(levels);
  out.appendBytes(sent);
  return start;
}

/** The bytes that compression saved. */
function savedIn({ dictionary, values }: Chunk, pages: Compressed | null): number {
  if (pages === null) return 0;
  const texts = dictionary?.bytes.length ?? 0;
  return texts - pages.dictionary.length + values.length - pages.values.length;
}

/** Writes a chunk; returns its entry in the footer. */
function writeChunk(
  out: PieceWriter,
  { name, type = 'BYTE_ARRAY' }: SchemaElement,
  chunk: Chunk,
  pages: Compressed | null,
): ColumnChunk {
  const { dictionary, encoding, rows, nulls, least, greatest } = chunk;
  const start = out.offset;
  const valuesStart = writePages(out, chunk, pages);
  const size = out.offset - start;
  return {
    file_offset: BigInt(start),
    meta_data: {
      type,
      encodings: dictionary === null ? ['RLE', encoding] : ['RLE', 'PLAIN', encoding],
      path_in_schema: [name],
      codec: pages === null ? 'UNCOMPRESSED' : 'ZSTD',
      num_values: BigInt(rows),
      total_uncompressed_size: BigInt(size + savedIn(chunk, pages)),
      total_compressed_size: BigInt(size),
      data_page_offset: BigInt(valuesStart),
      ...(dictionary === null ? {} : { dictionary_page_offset: BigInt(start) }),
      statistics: {
        null_count: BigInt(nulls),
        ...(least === undefined ? {} : { min_value: least }),
        ...(greatest === undefined ? {} : { max_value: greatest }),
      },
    },
  };
}
