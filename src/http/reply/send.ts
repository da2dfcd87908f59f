import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../errors.ts';
import { memoryInUse } from '../../prices/answer/answer.ts';
import { BodyStream } from '../../std/body-stream.ts';
import { UNHELD_BYTES } from '../../std/held-bytes.ts';
import {
  CODINGS,
  type Coding,
  type CodingPreference,
  preferredCoding,
} from '../../std/negotiation.ts';
import { compressed, compressedBatches } from './compress.ts';

/*
 * Sends answers: `accept.ts` negotiates the format, this file the ETag and the content coding,
 * `prices.ts` answers a request for prices, `calculations.ts` one for a calculation, and
 * `answer-cache.ts` keeps whole answers, which `kept-answers.ts` sends again.
 */

/** Minimum size of a response for compression. */
const BYTES_MIN = 1_024;

/** The bytes of a response, and their content coding. */
export interface Payload {
  readonly bytes: Buffer | BodyStream;
  readonly coding: Coding | null;
}

/**
 * Negotiates the content coding by the Accept-Encoding header.
 * @throws Problem `not_acceptable` that names the codings
 */
export function codingOf({ headers }: FastifyRequest): CodingPreference {
  // Node joins repeated headers with commas.
  const accept = headers['accept-encoding'] as string | undefined;
  const wanted = preferredCoding(accept);
  if (wanted) return wanted;
  throw new Problem('not_acceptable', `Accept-Encoding must admit identity, ${CODINGS.join(', ')}`);
}

/**
 * Takes the memory of a complete body from the budget. Call it before headers are set that belong
 * to the body only.
 * @throws Problem `overloaded` if bodies that are not read yet take the memory
 */
export function holdBody({ context }: FastifyRequest, bytes: number): void {
  if (bytes > UNHELD_BYTES && !context.hold(bytes)) throw memoryInUse();
}

/**
 * Sends coded bytes, with their length where it is known. Many bytes are sent as a stream, so that
 * a slow reader of them is noticed.
 */
export function sendPayload(reply: FastifyReply, { bytes: payload, coding }: Payload) {
  const isLong = !(payload instanceof BodyStream) && payload.length > UNHELD_BYTES;
  const bytes = isLong ? new BodyStream({ batches: [[payload]], bytes: payload.length }) : payload;
  const length = bytes instanceof BodyStream ? bytes.body.bytes : null;
  if (length !== null) reply.header('content-length', length);
  if (coding !== null) reply.header('content-encoding', coding);
  return reply.send(bytes);
}

/**
 * Bytes in the content coding that a client prefers. A small body stays without one. A stream is
 * encoded while it is produced.
 */
export async function coded(
  bytes: Buffer | BodyStream,
  { coding, acceptsIdentity }: CodingPreference,
): Promise<Payload> {
  if (coding === null) return { bytes, coding };
  if (bytes instanceof BodyStream) {
    const batches = compressedBatches(bytes.body.batches, coding);
    return { bytes: new BodyStream({ batches, bytes: null }), coding };
  }
  if (bytes.length < BYTES_MIN && acceptsIdentity) return { bytes, coding: null };
  return { bytes: await compressed(bytes, coding), coding };
}

/** Sends bytes in the content coding that the client of a request prefers. */
export async function sendCoded(
  request: FastifyRequest,
  reply: FastifyReply,
  bytes: Buffer | BodyStream,
): Promise<FastifyReply> {
  return sendPayload(reply, await coded(bytes, codingOf(request)));
}

/** Request headers that a response depends on. */
export const VARY = 'accept, accept-encoding, x-api-key, authorization';

/** A strong entity tag: a hash of everything that determines the bytes of an answer. */
export const tagOf = (...parts: readonly string[]): string => {
  const hash = createHash('sha256');
  // The length prefix makes the concatenation unambiguous.
  for (const part of parts) hash.update(`${part.length}:${part}`);
  return `"${hash.digest('base64url')}"`;
};

/**
 * The match of the header If-None-Match: `tag` for an equal tag, compared weakly (RFC 9110,
 * section 13.1.2), `any` for `*`, null for no match.
 */
export function etagMatch({ headers }: FastifyRequest, tag: string): 'tag' | 'any' | null {
  const known = headers['if-none-match'];
  if (known === undefined) return null;
  if (known.trim() === '*') return 'any';
  return known.split(',').some((each) => each.trim().replace(/^W\//, '') === tag) ? 'tag' : null;
}

/** Headers of a response that clients may cache but must revalidate before each use. */
export const cacheHeaders = (tag: string): Record<string, string> => ({
  etag: tag,
  'cache-control': 'private, no-cache',
  vary: VARY,
});

/** Headers of a cacheable answer, and a function that may keep its bytes. */
interface TaggedMore {
  /** A refusal for lack of memory has none of them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Gets the coded bytes and the tag, and returns the bytes to send. */
  readonly keep?: (payload: Payload, tag: string) => Payload;
}

/** Sends a body that a client may cache, with a strong ETag; 304 if the client has it already. */
export async function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  body: string,
  { headers = {}, keep = (payload) => payload }: TaggedMore = {},
): Promise<FastifyReply> {
  const wanted = codingOf(request);
  const tag = tagOf(type, wanted.coding ?? '', body);
  const sent = { ...headers, ...cacheHeaders(tag) };
  if (etagMatch(request, tag) !== null) return reply.code(304).headers(sent).send();
  const bytes = Buffer.from(body);
  holdBody(request, bytes.length);
  const payload = keep(await coded(bytes, wanted), tag);
  return sendPayload(reply.type(type).headers(sent), payload);
}
