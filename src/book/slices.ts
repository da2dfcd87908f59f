import type { Answer } from '../prices/answer.ts';
import { type Fragment, fragmentOf } from './fragment.ts';
import { FRAMES, type LineFormat } from './frames.ts';
import { BETWEEN, headOf } from './heads.ts';
import { inSmall } from './layout.ts';
import {
  type BookRecord,
  headWithSummary,
  recordsOf,
  type Source,
  withoutRateIn,
} from './records.ts';

/** What the account of work is charged with for a slice: it costs about as much as two points. */
export const SLICE_POINTS = 2;

/** Bytes of other JSON that cost about as much as a point. */
export const BYTES_PER_POINT = 128;

/** The points of a record, without the comma before the first. */
function* pointSlices({ stretches }: BookRecord, fragments: readonly Fragment[]) {
  for (const [index, { from, to }] of stretches.entries()) {
    const slice = (fragments[index] as Fragment).slice(from, to);
    yield index === 0 ? slice.subarray(1) : slice;
  }
}

/** The head of a record, after what ends the record before it. */
function headText(source: Source, answer: Answer, record: BookRecord, withoutRate: number) {
  const { context: terms } = answer;
  if (terms.plan.options.includeSummary) {
    return headWithSummary(source, answer, record, withoutRate);
  }
  const { bookPrice: of, planned } = record;
  return headOf({ of, terms, planned, withoutRate }, source.budget, source.turns);
}

/** An answer in the book as slices, of fragments and heads as they are. */
export function* plainSlices(
  source: Source,
  answer: Answer,
  format: LineFormat,
): Generator<Buffer> {
  const { budget, turns } = source;
  const frame = FRAMES[format];
  for (const slice of frame.head(answer)) {
    turns.spend(Math.ceil(slice.length / BYTES_PER_POINT));
    yield* inSmall(slice);
  }
  let written = 0;
  for (const record of recordsOf(source, answer)) {
    const { stretches, terms } = record;
    // All of them come first: the head tells whether any point has no rate.
    const fragments = stretches.map(({ block }) => fragmentOf(block, terms, budget, turns));
    const withoutRate = terms.conversion ? withoutRateIn(record, fragments) : 0;
    const head = headText(source, answer, record, withoutRate);
    turns.spend(SLICE_POINTS * (1 + Math.max(1, fragments.length)));
    if (written > 0 && frame.between) yield frame.between;
    yield* inSmall(written > 0 && !frame.between ? head : head.subarray(BETWEEN.length));
    yield* pointSlices(record, fragments);
    written += 1;
  }
  yield written > 0 ? frame.end : frame.endOfNothing;
}
