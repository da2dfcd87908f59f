import type { Answer, Metadata } from '../prices/answer.ts';
import type { Plan } from '../prices/plan.ts';
import type { Body } from '../wire/body.ts';
import { type Fragment, fragmentOf } from './fragment.ts';
import { BYTES_PER_POINT, FRAMES, type LineFormat, SLICE_POINTS } from './frames.ts';
import { gzipSlices } from './gzip.ts';
import { BETWEEN, headOf } from './heads.ts';
import {
  HELD_BYTES,
  inSmall,
  isAskedAgain,
  joinedSlices,
  Layout,
  layoutKey,
  rememberLayout,
} from './layout.ts';
import {
  type BookRecord,
  headWithSummary,
  recordsOf,
  type Source,
  withoutRateIn,
} from './records.ts';

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
function* plainSlices(source: Source, answer: Answer, format: LineFormat): Generator<Buffer> {
  const { budget, turns } = source;
  const frame = FRAMES[format];
  for (const slice of frame.head(answer)) {
    turns.spend(Math.ceil(slice.length / BYTES_PER_POINT));
    yield* inSmall(slice);
  }
  let written = 0;
  for (const record of recordsOf(source, answer)) {
    const { stretches, terms } = record;
    // Fragments come first: the head says if any point has no rate.
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

/** Bytes of a batch: enough that a write costs little beside them. */
const BATCH_BYTES = 1_048_576;

function* continued(held: readonly Buffer[], rest: Generator<Buffer>) {
  yield* held;
  yield* rest;
}

/** Gathers slices to batches, and lets others run now and then while they are made. */
async function* batchesOf(slices: Iterable<Buffer>, { turns }: Source) {
  let batch: Buffer[] = [];
  let bytes = 0;
  for (const slice of slices) {
    batch.push(slice);
    bytes += slice.length;
    if (turns.isLong) await turns.pass();
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
    // A client who takes all at once would let nobody else run until it has it.
    await turns.pass();
  }
  if (batch.length > 0) yield batch;
}

/** What is sent again, and what it says of itself. */
export interface Repeated {
  readonly metadata: Metadata;
  readonly bytes: number;
  readonly body: () => Body;
}

/**
 * What is sent to who asks the same again at the same state, without finding its prices again; null
 * where it is not remembered, or is so long that a reader must not hold it.
 * @param revision the state of the answer, as on the wire
 */
export function repeatedBody(
  source: Source,
  plan: Plan,
  revision: string,
  format: LineFormat,
  coding: 'gzip' | null,
): Repeated | null {
  const key = layoutKey(source, plan, revision, format, coding);
  const known = key.of.get(key.text);
  if (!known?.slices || known.length > HELD_BYTES) return null;
  const { metadata, slices, length } = known;
  const body = (): Body => {
    source.counts.repeats += 1;
    source.budget.use(known);
    return { batches: [slices], bytes: length };
  };
  return { metadata, bytes: length, body };
}

/**
 * An answer as JSON or as lines of JSON, put together from what the book keeps, as it is or as
 * gzip. Its length is known unless making it would take more than one turn of the event loop: then
 * it begins at once.
 */
export function bookBody(
  source: Source,
  answer: Answer,
  format: LineFormat,
  coding: 'gzip' | null,
): Body {
  const { budget, edition, turns, counts } = source;
  const again = () => (coding === 'gzip' ? gzipSlices : plainSlices)(source, answer, format);
  const bodyOf = (layout: Layout): Body => {
    const { slices, length } = layout;
    const isHeld = slices !== null && length <= HELD_BYTES;
    const batches = isHeld ? [slices] : batchesOf(layout.slicesOr(again), source);
    return { batches, bytes: length };
  };
  const { metadata, context } = answer;
  const key = layoutKey(source, context.plan, metadata.revision, format, coding);
  const known = key.of.get(key.text);
  if (known) {
    counts.repeats += 1;
    budget.use(known);
    return bodyOf(known);
  }
  const { evictions } = budget.state;
  const slices = again();
  const made: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = slices.next();
    if (done) break;
    bytes += value.length;
    made.push(value);
    if (!turns.isDue) continue;
    const rest = bytes <= HELD_BYTES ? continued(made, slices) : again();
    return { batches: batchesOf(rest, source), bytes: null };
  }
  if (!isAskedAgain(key)) {
    const isHeld = bytes <= HELD_BYTES;
    return { batches: isHeld ? [joinedSlices(made).slices] : batchesOf(again(), source), bytes };
  }
  const layout = new Layout(key, metadata, made, budget.state.limit);
  // What was given up while it was made, or to make room for it, must not be held by it.
  const isWhole = () => edition.in === budget && budget.state.evictions === evictions;
  if (isWhole() && budget.add(layout) && isWhole()) rememberLayout(key, layout, budget);
  else {
    budget.remove(layout);
    if (layout.length > HELD_BYTES) layout.forget();
  }
  return bodyOf(layout);
}
