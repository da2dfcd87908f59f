import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { codingOf, sendCoded } from './coded.ts';

/** Everything of a request, but its address, that an answer depends on. */
export const VARY = 'accept, accept-encoding, x-api-key, authorization';

/** A strong entity tag: of all that decides the bytes of an answer. */
export const tagOf = (...parts: readonly string[]): string => {
  const hash = createHash('sha256');
  // With its length before it no part can pass for two.
  for (const part of parts) hash.update(`${part.length}:${part}`);
  return `"${hash.digest('base64url')}"`;
};

/**
 * How the header If-None-Match names an answer: by its own tag, compared weakly (RFC 9110,
 * section 13.1.2), or as any that there is; null where it does not.
 */
export function namedBy({ headers }: FastifyRequest, tag: string): 'tag' | 'any' | null {
  const known = headers['if-none-match'];
  if (known === undefined) return null;
  if (known.trim() === '*') return 'any';
  return known.split(',').some((each) => each.trim().replace(/^W\//, '') === tag) ? 'tag' : null;
}

/** The headers of an answer that a client may keep but must ask about before each use. */
export const taggedHeaders = (tag: string): Record<string, string> => ({
  etag: tag,
  'cache-control': 'private, no-cache',
  vary: VARY,
});

/** Sends a body that a client may keep: strong ETag, 304 when the client has it already. */
export async function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  body: string,
): Promise<FastifyReply> {
  const wanted = codingOf(request);
  const tag = tagOf(type, wanted.coding ?? '', body);
  reply.headers(taggedHeaders(tag));
  if (namedBy(request, tag) !== null) return reply.code(304).send();
  return sendCoded(reply.type(type), { bytes: Buffer.from(body), coding: null }, wanted);
}
