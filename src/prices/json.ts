import { summaryJson } from '../conversion/summary.ts';
import type { Contents, Terms } from './contents.ts';
import { encodePoints } from './encode.ts';
import type { Writer } from './formats.ts';
import { membersOf } from './record.ts';

const SERIES = Buffer.from(',"series":[');
const RECORD_END = Buffer.from(']}');

/** One record as JSON, in slices; members are in the order of the contract. */
export function* recordJson(terms: Terms, contents: Contents): Generator<Buffer> {
  const { receipt, summary, points } = contents;
  const members = membersOf(terms.plan.market, contents.price, terms.references, contents.shown);
  const conversion = receipt ? `,"conversion":${JSON.stringify(receipt)}` : '';
  const changes = summary ? `,"summary":${summaryJson(summary)}` : '';
  yield Buffer.from(`${JSON.stringify(members).slice(0, -1)}${conversion}${changes}`);
  yield SERIES;
  if (points) yield encodePoints(points);
  yield RECORD_END;
}

/** `application/json`: one document. */
export const jsonWriter: Writer = {
  head: ({ metadata }) => Buffer.from(`{"$metadata":${JSON.stringify(metadata)},"data":[`),
  record: recordJson,
  between: Buffer.from(','),
  end: Buffer.from(']}'),
};

const LINE_END = Buffer.from('\n');
const NOTHING = Buffer.alloc(0);

/** `application/x-ndjson`: a record in each line, the same bytes as in the JSON document. */
export const ndjsonWriter: Writer = {
  head: () => NOTHING,
  *record(terms, contents) {
    yield* recordJson(terms, contents);
    yield LINE_END;
  },
  between: NOTHING,
  end: NOTHING,
};
