import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../errors.ts';
import { CODINGS, type Coding, type WantedCoding, wantedCoding } from '../wire/accept.ts';
import { BodyStream } from '../wire/body.ts';
import { compressed, compressedBatches } from '../wire/compress.ts';

/** Bytes below which coding an answer saves nothing worth having. */
export const BYTES_MIN = 1_024;

/** The codings where gzip is there already, and so costs less than any other. */
const GZIP_FIRST: readonly Coding[] = ['gzip', 'zstd', 'br'];

/** What is sent, and the coding that it has already. */
export interface Payload {
  readonly bytes: Buffer | BodyStream;
  readonly coding: Coding | null;
}

/**
 * The coding that a client wants its answer in, by its Accept-Encoding header.
 * @param hasGzip whether the answer can be had as gzip at little cost
 * @throws Problem `not_acceptable` that names what there is
 */
export function codingOf({ headers }: FastifyRequest, hasGzip = false): WantedCoding {
  // Node joins the header with commas where it comes twice.
  const accept = headers['accept-encoding'] as string | undefined;
  const wanted = wantedCoding(accept, hasGzip ? GZIP_FIRST : CODINGS);
  if (wanted) return wanted;
  throw new Problem('not_acceptable', `Accept-Encoding must admit identity, ${CODINGS.join(', ')}`);
}

/** Sends bytes as they are, with their length where it is known. */
function sendAs(reply: FastifyReply, bytes: Buffer | BodyStream, coding: Coding | null) {
  const length = bytes instanceof BodyStream ? bytes.body.bytes : null;
  if (length !== null) reply.header('content-length', length);
  if (coding !== null) reply.header('content-encoding', coding);
  return reply.send(bytes);
}

/**
 * Sends an answer in the coding that its client wants; a few bytes go as they are. A stream is
 * coded while it is made.
 */
export async function sendCoded(
  reply: FastifyReply,
  { bytes, coding: has }: Payload,
  { coding, takesPlain }: WantedCoding,
): Promise<FastifyReply> {
  if (has !== null || coding === null) return sendAs(reply, bytes, has);
  if (bytes instanceof BodyStream) {
    const batches = compressedBatches(bytes.body.batches, coding);
    return sendAs(reply, new BodyStream({ batches, bytes: null }), coding);
  }
  if (bytes.length < BYTES_MIN && takesPlain) return sendAs(reply, bytes, null);
  return sendAs(reply, await compressed(bytes, coding), coding);
}
