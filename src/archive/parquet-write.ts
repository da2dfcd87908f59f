import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { Column } from './columns.ts';
import { valuesOf } from './copy-text.ts';
import { encodingOf, schemaOf } from './parquet-columns.ts';
import type { Sink, Written } from './sink.ts';

/** Rows of one row group: what the memory holds at once. */
export const GROUP_ROWS = 65_536;

/** Hands each row group to the file as soon as it is made, and waits for it. */
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

/** Writes the rows of a table as one Parquet file. */
interface ParquetTable {
  /** Takes rows as lines of PostgreSQL's text format. */
  add(lines: readonly string[]): Promise<void>;
  finish(): Promise<Written>;
}

/** Begins the Parquet file of a table: row groups of 65,536 rows, compressed with Snappy. */
export function parquetTable(sink: Sink, columns: readonly Column[]): ParquetTable {
  const encodings = columns.map(encodingOf);
  const writer = new ParquetWriter({
    writer: new SinkWriter(sink),
    schema: schemaOf(columns),
    createdBy: 'commodity-prices',
  });
  let data: unknown[][] = columns.map(() => []);
  let held = 0;
  const writeGroup = async (): Promise<void> => {
    // Where each page lies is left out: it is all that would grow with the rows but the footer.
    const columnData = columns.map(({ name }, at) => ({
      name,
      data: data[at] ?? [],
      offsetIndex: false,
    }));
    await writer.write({ columnData, rowGroupSize: GROUP_ROWS });
    data = columns.map(() => []);
    held = 0;
  };
  return {
    async add(lines) {
      for (const line of lines) {
        valuesOf(line).forEach((value, at) => {
          data[at]?.push(value === null ? null : encodings[at]?.encode(value));
        });
        held += 1;
        if (held === GROUP_ROWS) await writeGroup();
      }
    },
    async finish() {
      if (held > 0) await writeGroup();
      await writer.finish();
      return sink.finish();
    },
  };
}
