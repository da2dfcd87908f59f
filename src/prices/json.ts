import { summaryJson } from '../conversion/summary.ts';
import type { Metadata } from './answer.ts';
import type { Contents, Description, Terms } from './contents.ts';
import { slicesOfPoints } from './encode.ts';
import type { Writer } from './formats.ts';
import { membersOf } from './record.ts';

const RECORD_END = Buffer.from(']}');

/** A record as JSON up to its points; members are in the order of the contract. */
export function recordHead(terms: Terms, { price, shown, receipt, summary }: Description): string {
  const members = membersOf(terms.plan.market, price, terms.references, shown);
  const conversion = receipt ? `,"conversion":${JSON.stringify(receipt)}` : '';
  const changes = summary ? `,"summary":${summaryJson(summary)}` : '';
  return `${JSON.stringify(members).slice(0, -1)}${conversion}${changes},"series":[`;
}

/** One record as JSON, in slices. */
export function* recordJson(terms: Terms, contents: Contents): Generator<Buffer> {
  yield Buffer.from(recordHead(terms, contents));
  if (contents.points) yield* slicesOfPoints(contents.points);
  yield RECORD_END;
}

/** What stands before the records of a document. */
export const documentHead = (metadata: Metadata): string =>
  `{"$metadata":${JSON.stringify(metadata)},"data":[`;

/** `application/json`: one document. */
export const jsonWriter: Writer = {
  head: ({ metadata }) => Buffer.from(documentHead(metadata)),
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
