import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { cachedByRevision } from '../../db/shared-work.ts';
import { CODINGS, type Coding, type CodingPreference } from '../../std/negotiation.ts';
import { compressed, compressedOnce } from './compress.ts';
import { cacheHeaders, codingOf, etagMatch, tagOf } from './send.ts';

/** A document in one content coding, with its headers. */
interface Representation {
  readonly bytes: Buffer;
  readonly tag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A public document that does not change while the process runs. */
interface StaticDocument {
  readonly type: string;
  /** Produces the document; called once. */
  readonly read: () => string | Buffer | Promise<string | Buffer>;
  /** True for a script or style sheet, which bypasses the rate limit of open addresses. */
  readonly isPart?: boolean;
  /** Additional headers; they override the default ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Maximum size for the best level, which compresses it within 0.1 s. */
const SMALL_BYTES = 65_536;

/** Adds a route for a static document. */
export function documentRoute(
  app: FastifyInstance,
  url: string,
  document: StaticDocument,
  schema: object = { hide: true },
): void {
  const formOf = representationsOf(document);
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { bytes, tag, headers } = await formOf(codingOf(request));
    if (etagMatch(request, tag) === null) {
      return reply.headers(headers).header('content-length', bytes.length).send(bytes);
    }
    return reply.code(304).headers(cacheHeaders(tag)).send();
  };
  const { isPart = false } = document;
  app.get(url, { config: { access: 'none', isPart }, schema, handler });
}

/** Makes each form of a document once, at its first use: an answer is a lookup and one write. */
function representationsOf({ type, read, headers }: StaticDocument) {
  const content = cachedByRevision(
    1,
    () => type,
    async () => Buffer.from(await read()),
  );
  const formOf = cachedByRevision(
    1 + CODINGS.length,
    (coding: Coding | null) => coding ?? '',
    async (coding): Promise<Representation> => {
      const plain = await content();
      const tag = tagOf(type, coding ?? '', plain.toString('latin1'));
      const coded = coding === null ? {} : { 'content-encoding': coding };
      const compress = plain.length <= SMALL_BYTES ? compressedOnce : compressed;
      return {
        bytes: coding === null ? plain : await compress(plain, coding),
        tag,
        headers: { ...cacheHeaders(tag), ...headers, 'content-type': type, ...coded },
      };
    },
  );
  // Short documents are compressed too: their compression costs nothing after the first use.
  return ({ coding }: CodingPreference): Promise<Representation> => formOf(coding);
}
