import { type Body, BodyStream, batched } from '../wire/body.ts';

/** Slices that are awaited before an answer begins: the head, a record, and its points. */
const SLICES_AHEAD = 3;

/** Bytes up to which an answer is awaited whole, so that its length is known. */
const BYTES_AHEAD = 65_536;

async function* continued(first: readonly Buffer[], rest: AsyncGenerator<Buffer>) {
  yield* first;
  yield* rest;
}

/**
 * What to send of slices that are still to be made: one buffer when they are few, else a stream of
 * which the first slices are there already. What fails before the first byte is still a problem,
 * and what fails later breaks the connection.
 */
export async function startedBody(slices: AsyncGenerator<Buffer>): Promise<Buffer | BodyStream> {
  const first: Buffer[] = [];
  for (let bytes = 0; first.length < SLICES_AHEAD || bytes < BYTES_AHEAD; ) {
    const { value, done } = await slices.next();
    if (done) return Buffer.concat(first);
    first.push(value);
    bytes += value.length;
  }
  const body: Body = { batches: batched(continued(first, slices)), bytes: null };
  return new BodyStream(body);
}
