import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Readers } from '../../prices/answer/answer.ts';
import type { RequestOrigin } from '../../prices/plan/plan.ts';
import { BodyStream } from '../../std/body-stream.ts';
import { UNHELD_BYTES } from '../../std/held-bytes.ts';
import type { AnswerCache, KeptAnswer } from './answer-cache.ts';
import { cacheHeaders, etagMatch, sendPayload } from './send.ts';

/** A request whose answer may be kept. */
interface KeptQuery {
  /** See `requestKey`; null if the answer must not come from the cache. */
  readonly key: string | null;
  readonly origin: Pick<RequestOrigin, 'readableMarkets'>;
}

/** Size up to which a response is produced completely before it is sent, with its length. */
export const BYTES_AHEAD = 65_536;

/** True if the answer warns about its `x-min-revision`, and so is of this request alone. */
export const isUnknown = ({ context }: FastifyRequest): boolean =>
  context.unknownMinRevision !== null;

/** The kept answer to a request; null without one. */
export async function keptAnswer(
  request: FastifyRequest,
  { answers, readers }: { readonly answers: AnswerCache | null; readonly readers: Readers },
  { key, origin }: KeptQuery,
): Promise<KeptAnswer | null> {
  if (answers === null || key === null || isUnknown(request)) return null;
  const { context } = request;
  const { snapshot } = readers;
  const kept = await context.work.until(answers.find(key, origin, () => context.newest, snapshot));
  if (kept === null || kept.length <= UNHELD_BYTES) return kept;
  // A slow reader retains a kept answer even after its eviction.
  return context.hold(kept.length, kept) ? kept : null;
}

/** Sends a kept answer. */
export function sendKept(
  request: FastifyRequest,
  reply: FastifyReply,
  { origin, coding, slices, length }: KeptAnswer,
): FastifyReply {
  const { tag, headers } = origin;
  if (tag !== null && etagMatch(request, tag) !== null) {
    return sendNotModified(reply, headers['x-data-revision'] ?? '', tag);
  }
  reply.headers(headers);
  if (request.method === 'HEAD') {
    reply.header('content-length', length);
    if (coding !== null) reply.header('content-encoding', coding);
    return reply.send();
  }
  const bytes =
    length > BYTES_AHEAD
      ? new BodyStream({ batches: [slices], bytes: length })
      : Buffer.concat(slices);
  return sendPayload(reply, { bytes, coding });
}

/** Sends a 304 with the headers of the cached response. */
export function sendNotModified(
  reply: FastifyReply,
  revision: string,
  tag: string | null,
): FastifyReply {
  return reply
    .headers({ 'x-data-revision': revision, ...cacheHeaders(tag ?? '') })
    .code(304)
    .send();
}
