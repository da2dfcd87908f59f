import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { keptAt } from '../../db/shared-work.ts';
import { BodyStream } from '../../std/body.ts';
import { CODINGS, type Coding, type CodingPreference } from '../../std/negotiation.ts';
import { compressed, compressedOnce } from './compress.ts';
import { BYTES_MIN, cacheHeaders, codingOf, etagMatch, tagOf } from './send.ts';

/** The bytes of a document in one content coding, and the headers of its answers. */
interface Representation {
  readonly bytes: Buffer;
  readonly tag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A document that does not change while the process runs, and is open to anyone. */
interface StaticDocument {
  readonly type: string;
  /** Reads or makes the document; called once. */
  readonly read: () => string | Buffer | Promise<string | Buffer>;
  /** True for a small part of a page, which passes the gate of open addresses. */
  readonly isPart?: boolean;
  /** Headers beside those of its type and tag, or instead of them. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The most bytes of a document that the best level compresses within a tenth of a second. */
const SMALL_BYTES = 65_536;

/** The most bytes of a document that are written at once. */
const SLICE_BYTES = 32_768;

/** The rest between two slices, in milliseconds: requests for prices are answered meanwhile. */
const PAUSE_MS = 2;

async function* slicesOf(bytes: Buffer): AsyncGenerator<readonly Buffer[]> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (at > 0) await pause(PAUSE_MS);
    yield [bytes.subarray(at, at + SLICE_BYTES)];
  }
}

const payloadOf = (bytes: Buffer): Buffer | BodyStream =>
  bytes.length <= SLICE_BYTES
    ? bytes
    : new BodyStream({ batches: slicesOf(bytes), bytes: bytes.length });

/** Makes each form of a document once, at its first use: an answer is a lookup and one write. */
function representationsOf({ type, read, headers }: StaticDocument) {
  const content = keptAt(
    1,
    () => type,
    async () => Buffer.from(await read()),
  );
  const formOf = keptAt(
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
  return async ({ coding, acceptsIdentity }: CodingPreference): Promise<Representation> => {
    const isShort = async () => acceptsIdentity && (await formOf(null)).bytes.length < BYTES_MIN;
    return formOf(coding === null || (await isShort()) ? null : coding);
  };
}

/** Adds a route that answers with a document. */
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
      return reply.headers(headers).header('content-length', bytes.length).send(payloadOf(bytes));
    }
    return reply.code(304).headers(cacheHeaders(tag)).send();
  };
  const { isPart = false } = document;
  app.get(url, { config: { access: 'none', isPart }, schema, handler });
}
