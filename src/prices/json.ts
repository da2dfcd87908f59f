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
function* recordJson(terms: Terms, contents: Contents): Generator<Buffer> {
  yield Buffer.from(recordHead(terms, contents));
  if (contents.points) yield* slicesOfPoints(contents.points);
  yield RECORD_END;
}

/** Warnings in one slice of a head: there may be one for each record. */
const WARNINGS_PER_SLICE = 200;

/** What stands before the records of a document, in slices. */
export function* documentHead({ warnings, ...metadata }: Metadata): Generator<Buffer> {
  const text = JSON.stringify({ ...metadata, warnings: [] });
  yield Buffer.from(`{"$metadata":${text.slice(0, -2)}`);
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = JSON.stringify(warnings.slice(at, at + WARNINGS_PER_SLICE)).slice(1, -1);
    yield Buffer.from(at === 0 ? some : `,${some}`);
  }
  yield Buffer.from(']},"data":[');
}

/** `application/json`: one document. */
export const jsonWriter: Writer = {
  head: ({ metadata }) => documentHead(metadata),
  record: recordJson,
  between: Buffer.from(','),
  end: Buffer.from(']}'),
};

const LINE_END = Buffer.from('\n');
const NOTHING = Buffer.alloc(0);

/** `application/x-ndjson`: a record in each line, the same bytes as in the JSON document. */
export const ndjsonWriter: Writer = {
  head: () => [],
  *record(terms, contents) {
    yield* recordJson(terms, contents);
    yield LINE_END;
  },
  between: NOTHING,
  end: NOTHING,
};
