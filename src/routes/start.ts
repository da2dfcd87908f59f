import type { Opened } from '../book/opened.ts';
import type { Format } from '../contract/formats.ts';
import type { Answer, Metadata } from '../prices/answer.ts';
import { slicesOf } from '../prices/formats.ts';
import type { Plan } from '../prices/plan.ts';
import type { State } from '../prices/state.ts';
import { turn } from '../turns.ts';
import { type Body, BodyStream, batched } from '../wire/body.ts';
import type { WantedCoding } from '../wire/coding.ts';
import { BYTES_MIN, type Payload } from './coded.ts';

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
async function startedBody(slices: AsyncGenerator<Buffer>): Promise<Buffer | BodyStream> {
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

/** What to send of a body: few bytes as one buffer, where their number is known. */
function bodyPayload(body: Body): Buffer | BodyStream {
  const { bytes, batches } = body;
  if (bytes === null || bytes > BYTES_AHEAD || !Array.isArray(batches)) return new BodyStream(body);
  const slices: readonly Buffer[] = batches.flat();
  const [only] = slices;
  return only !== undefined && slices.length === 1 ? only : Buffer.concat(slices);
}

/** Whether gzip is not worth its while. */
const isSmall = ({ bytes }: Pick<Body, 'bytes'>, { takesPlain }: WantedCoding): boolean =>
  bytes !== null && bytes < BYTES_MIN && takesPlain;

/** What is sent to who asks the same again at the same state; null where it is put together. */
export function repeatedAnswer(
  opened: Opened,
  plan: Plan,
  format: Format,
  state: State,
  wanted: WantedCoding,
): { readonly metadata: Metadata; readonly payload: () => Payload } | null {
  const codings = wanted.coding === 'gzip' ? (['gzip', null] as const) : ([null] as const);
  for (const coding of codings) {
    const known = opened.repeated(plan, format, state, coding);
    if (known === null) return null;
    if (coding !== null && isSmall(known, wanted)) continue;
    const { metadata, body } = known;
    return { metadata, payload: () => ({ bytes: bodyPayload(body()), coding }) };
  }
  return null;
}

/** Records beyond which an answer begins in a turn of the event loop of its own. */
const RECORDS_AT_ONCE = 1_000;

/**
 * What to send of an answer: what the book puts together, as gzip at once where the client wants
 * that and more than a few bytes come of it, or else what a writer makes.
 * @param opened the book that the answer was read from, if it was
 */
export async function startedAnswer(
  opened: Opened | null,
  answer: Answer,
  format: Format,
  state: State,
  wanted: WantedCoding,
): Promise<Payload> {
  const { coding } = wanted;
  if (answer.metadata.count > RECORDS_AT_ONCE) await turn();
  if (coding === 'gzip') {
    const body = opened?.body(answer, format, state, coding);
    if (body && !isSmall(body, wanted)) return { bytes: bodyPayload(body), coding };
  }
  const body = opened?.body(answer, format, state, null);
  const bytes = body ? bodyPayload(body) : await startedBody(slicesOf(answer, format));
  return { bytes, coding: null };
}
