import { canonicalKey } from '../../prices/plan/plan.ts';
import type { Answer } from '../../prices/write/contents.ts';
import type { Body } from '../../std/body.ts';
import { gzipSlices } from '../gzip/gzip.ts';
import { OVERHEAD_BYTES, Remembered } from '../store/budget.ts';
import { HELD_BYTES, joinedSlices } from './answers.ts';
import { type Fragment, fragmentOf } from './fragment.ts';
import { type LineFormat, type Sink, type Source, walk } from './walk.ts';

/** The bytes of an answer: slices of fragments and heads as they are. */
const bytesSink = ({ budget, turns }: Source): Sink<Buffer, Fragment> => ({
  text: (bytes) => bytes,
  head: (head, isWhole) => (isWhole ? head.text : head.bare),
  block: (block, terms) => fragmentOf(block, terms, budget, turns),
  points: (fragment, { from, to }, _terms, hasComma) => {
    const slice = fragment.slice(from, to);
    return hasComma ? slice : slice.subarray(1);
  },
});

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

/** Slices but for their first bytes. */
function* after(bytes: number, slices: Iterable<Buffer>) {
  let left = bytes;
  for (const slice of slices) {
    if (left < slice.length) yield slice.subarray(left);
    left = Math.max(0, left - slice.length);
  }
}

/** Bytes of a buffer beside what it shows. */
const SLICE_BYTES = 128;

/**
 * How a long answer is put together, for those who ask the same: slices of fragments and heads, the
 * small ones joined. It is evicted before anything that it is made of.
 */
export class LongAnswer extends Remembered {
  override readonly holdsOthers = true;
  /** Null once it is evicted. */
  slices: readonly Buffer[] | null;
  /** Bytes of the answer. */
  readonly length: number;
  readonly bytes: number;
  readonly #of: Map<string, LongAnswer>;
  readonly #key: string;

  constructor(of: Map<string, LongAnswer>, key: string, parts: readonly Buffer[]) {
    super();
    const slices = joinedSlices(parts);
    const shared = new Set(parts);
    const own = slices.filter((slice) => !shared.has(slice));
    this.slices = slices;
    this.length = parts.reduce((sum, { length }) => sum + length, 0);
    const around = OVERHEAD_BYTES + 2 * key.length + SLICE_BYTES * slices.length;
    this.bytes = own.reduce((sum, { length }) => sum + length, around);
    this.#of = of;
    this.#key = key;
  }

  /**
   * Its slices, and once it is evicted those that are made again: a reader however slow must not
   * hold what the budget has evicted.
   */
  *slicesOr(again: () => Iterable<Buffer>): Generator<Buffer> {
    let bytes = 0;
    for (let index = 0; this.slices !== null; index += 1) {
      const slice = this.slices[index];
      if (slice === undefined) return;
      bytes += slice.length;
      yield slice;
    }
    yield* after(bytes, again());
  }

  forget(): void {
    this.slices = null;
    this.#of.delete(this.#key);
  }
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
  const { turns, budget, edition, rates } = source;
  const { metadata, context } = answer;
  const again = () =>
    coding === 'gzip'
      ? gzipSlices(source, answer, format)
      : walk(source, answer, format, bytesSink(source));
  const longBody = (long: LongAnswer): Body => ({
    batches: batchesOf(long.slicesOr(again), source),
    bytes: long.length,
  });
  const state = `${metadata.revision} ${rates?.slug}.${rates?.revision}`;
  const key = `${format} ${coding} ${state} ${canonicalKey(context.plan)}`;
  const known = edition.long.get(key);
  if (known) {
    budget.use(known);
    return longBody(known);
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
  if (bytes <= HELD_BYTES) return { batches: [joinedSlices(made)], bytes };
  const long = new LongAnswer(edition.long, key, made);
  // What was evicted while it was made, or to make room for it, must not be held by it.
  const isWhole = () => edition.in === budget && budget.state.evictions === evictions;
  // Warnings are in no other answer, and may be long.
  if (metadata.warnings.length === 0 && isWhole() && budget.add(long) && isWhole()) {
    edition.long.set(key, long);
  } else {
    budget.remove(long);
    long.forget();
  }
  return longBody(long);
}
