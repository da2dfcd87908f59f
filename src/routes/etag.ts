import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

const VARY = 'accept, accept-encoding, x-api-key, authorization';

const matches = (header: string, tag: string): boolean =>
  header.trim() === '*' ||
  header.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);

/**
 * Sends a body that a client may keep but must ask about before each use: strong ETag, 304 when
 * the client has it already.
 */
export function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  body: string,
): FastifyReply {
  const hash = createHash('sha256').update(type).update('\n').update(body);
  const tag = `"${hash.digest('base64url')}"`;
  reply.headers({ etag: tag, 'cache-control': 'private, no-cache', vary: VARY });
  const known = request.headers['if-none-match'];
  if (known !== undefined && matches(known, tag)) return reply.code(304).send();
  return reply.type(type).send(body);
}
