import type { Answer } from '../prices/answer.ts';
import type { Body } from '../wire/body.ts';
import type { LineFormat } from './frames.ts';
import { gzipSlices } from './gzip.ts';
import type { Source } from './records.ts';
import { plainSlices } from './slices.ts';

/** Bytes of a batch: enough that a write costs little beside them. */
const BATCH_BYTES = 1_048_576;

/** Bytes of an answer that is held as a whole while it is written. */
const HELD_BYTES = 16_777_216;

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
    if (turns.isDue) await turns.pass();
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
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
  const slicesOf = coding === 'gzip' ? gzipSlices : plainSlices;
  const slices = slicesOf(source, answer, format);
  const held: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = slices.next();
    if (done) break;
    bytes += value.length;
    if (bytes <= HELD_BYTES) held.push(value);
    if (!source.turns.isDue) continue;
    const rest = bytes <= HELD_BYTES ? continued(held, slices) : slicesOf(source, answer, format);
    return { batches: batchesOf(rest, source), bytes: null };
  }
  if (bytes <= HELD_BYTES) return { batches: [held], bytes };
  // What a slow reader has not taken yet may be forgotten meanwhile, and is then made again.
  return { batches: batchesOf(slicesOf(source, answer, format), source), bytes };
}
