import type { Format } from '../contract/formats.ts';
import type { Answer } from './answer.ts';
import type { Contents, Terms } from './contents.ts';
import { csvWriter } from './csv.ts';
import { jsonWriter, ndjsonWriter } from './json.ts';
import { contentsOfAll } from './records.ts';

/** How a format writes an answer, piece by piece. */
export interface Writer {
  /** What stands before the first record, in slices. */
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** One record, in slices. */
  readonly record: (terms: Terms, contents: Contents) => Iterable<Buffer>;
  /** What stands between two records. */
  readonly between: Buffer;
  /** What stands after the last record. */
  readonly end: Buffer;
}

const WRITERS: Readonly<Record<Format, Writer>> = {
  json: jsonWriter,
  csv: csvWriter,
  ndjson: ndjsonWriter,
};

/** The bytes of an answer, in slices; a failure midway throws and leaves them incomplete. */
export async function* slicesOf(answer: Answer, format: Format): AsyncGenerator<Buffer> {
  const writer = WRITERS[format];
  const { context, records } = answer;
  yield* writer.head(answer);
  let written = 0;
  for await (const contents of contentsOfAll(context, records)) {
    if (written > 0) yield writer.between;
    yield* writer.record(context, contents);
    written += 1;
  }
  yield writer.end;
}
