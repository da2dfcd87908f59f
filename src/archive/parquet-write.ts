import type { SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import {
  PARQUET_DATE,
  PARQUET_INSTANT,
  PARQUET_TEXT,
  type ParquetType,
  parquetDecimal,
  scaledDecimal,
} from '../std/parquet.ts';
import { valuesOf } from './copy.ts';
import type { Sink, WrittenFile } from './sink.ts';
import type { Column, ColumnKind } from './tables.ts';

/** Values and rates have at most 15 digits before the decimal point and 10 after it. */
const PRECISION = 25;
const SCALE = 10;
/** Fewest bytes for 25 digits and a sign. */
const DECIMAL_BYTES = 11;

/** The Parquet encoding of a kind of value. */
interface ParquetEncoding {
  readonly element: ParquetType;
  /** Encodes the text that PostgreSQL exported (`EXPRESSIONS` in copy.ts). */
  encode(text: string): unknown;
}

/** A decimal times 10^10. @throws RangeError for more than 10 decimals */
export const scaled = (text: string): bigint => scaledDecimal(text, SCALE);

const asText: ParquetEncoding = {
  element: PARQUET_TEXT,
  encode: (text) => text,
};

const ENCODINGS: Readonly<Record<ColumnKind, ParquetEncoding>> = {
  integer: {
    element: { type: 'INT32' },
    encode: Number,
  },
  bigint: {
    element: { type: 'INT64' },
    encode: BigInt,
  },
  boolean: {
    element: { type: 'BOOLEAN' },
    encode: (text) => text === 't',
  },
  decimal: {
    element: parquetDecimal(PRECISION, SCALE, DECIMAL_BYTES),
    encode: scaled,
  },
  // Factors of units have unlimited digits.
  number: asText,
  date: {
    element: PARQUET_DATE,
    encode: Number,
  },
  instant: {
    element: PARQUET_INSTANT,
    encode: BigInt,
  },
  json: asText,
  bytes: {
    element: { type: 'BYTE_ARRAY' },
    encode: (hex) => new Uint8Array(Buffer.from(hex, 'hex')),
  },
  text: asText,
};

/** The encoding of the values of a column. */
export const encodingOf = ({ kind }: Pick<Column, 'kind'>): ParquetEncoding => ENCODINGS[kind];

/** The schema of the file of a table. */
export const schemaOf = (columns: readonly Column[]): SchemaElement[] => [
  { name: 'root', num_children: columns.length },
  ...columns.map(({ name, kind, isRequired }) => ({
    name,
    ...ENCODINGS[kind].element,
    repetition_type: isRequired ? ('REQUIRED' as const) : ('OPTIONAL' as const),
  })),
];

/** Rows of one row group, which is built in memory. */
export const GROUP_ROWS = 65_536;

/** Writes each row group to the sink, with backpressure. */
class SinkWriter extends ByteWriter {
  readonly #sink: Sink;

  constructor(sink: Sink) {
    super(1_048_576);
    this.#sink = sink;
  }

  async flush(): Promise<void> {
    await this.#sink.write(this.getBytes());
    this.index = 0;
  }

  override async finish(): Promise<void> {
    await this.flush();
  }
}

/**
 * Writes the rows of a table, given in PostgreSQL's text format, as one Parquet file with row
 * groups of 65,536 rows, compressed with Snappy.
 */
export async function writeParquet(
  sink: Sink,
  columns: readonly Column[],
  pieces: AsyncIterable<readonly string[]>,
): Promise<WrittenFile> {
  const encodings = columns.map(encodingOf);
  const writer = new ParquetWriter({
    writer: new SinkWriter(sink),
    schema: schemaOf(columns),
    createdBy: 'commodity-prices',
  });
  let data: unknown[][] = columns.map(() => []);
  let rows = 0;
  const writeGroup = async (): Promise<void> => {
    // Without an offset index, only the footer grows with the number of rows.
    const columnData = columns.map(({ name }, at) => ({
      name,
      data: data[at] ?? [],
      offsetIndex: false,
    }));
    await writer.write({ columnData, rowGroupSize: GROUP_ROWS });
    data = columns.map(() => []);
    rows = 0;
  };
  for await (const lines of pieces) {
    for (const line of lines) {
      valuesOf(line).forEach((value, at) => {
        data[at]?.push(value === null ? null : encodings[at]?.encode(value));
      });
      rows += 1;
      if (rows === GROUP_ROWS) await writeGroup();
    }
  }
  if (rows > 0) await writeGroup();
  await writer.finish();
  return sink.finish();
}
