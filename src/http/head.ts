import { randomFillSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { onRequestHookHandler } from 'fastify';
import helmet from 'helmet';
import { v7 as uuidv7 } from 'uuid';
import { Problem } from '../errors.ts';
import { containsSecret } from '../std/secrets.ts';

const ACCEPTED = /^[\w-]{8,64}$/;

const ID_BYTES = 16;
/** Random bytes for the next ids: drawing many at once costs little more than drawing a few. */
const pool = new Uint8Array(256 * ID_BYTES);
let drawn = pool.length;

function randomBytes(): Uint8Array {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  drawn += ID_BYTES;
  return pool.subarray(drawn - ID_BYTES, drawn);
}

/** The client's own request id when it is plain, else a new UUIDv7. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  const isPlain = typeof sent === 'string' && ACCEPTED.test(sent) && !containsSecret(sent);
  return isPlain ? sent : uuidv7({ rng: randomBytes });
}

/**
 * The headers that tell browsers to be careful, as helmet sets them. They are the same for each
 * answer, so helmet is asked once. What a page may load is said by the page; that all goes over
 * TLS by whoever ends it.
 */
function carefulHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const answer = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value;
    },
    removeHeader: () => {},
  } as unknown as ServerResponse;
  const set = helmet({ contentSecurityPolicy: false, hsts: false });
  set({} as IncomingMessage, answer, () => {});
  return headers;
}

/** Headers of every answer, refusals included. */
export const CAREFUL_HEADERS: Readonly<Record<string, string>> = carefulHeaders();

/** How often a header was sent; `headers` of Node has only one of it. */
function timesSent({ rawHeaders }: IncomingMessage, name: string): number {
  let times = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) times += 1;
  }
  return times;
}

/** RFC 9112, section 3.2: HTTP/1.1 has one Host. Node would refuse only none, without a body. */
export function hasOneHost(request: IncomingMessage): boolean {
  const hosts = timesSent(request, 'host');
  return hosts === 1 || (hosts === 0 && request.httpVersion === '1.0');
}

const noHost = (): Problem =>
  new Problem('malformed_request', 'Send one Host header', { headers: { connection: 'close' } });

/** Puts the headers on every answer that refusals have as well. */
export const commonHeaders: onRequestHookHandler = (request, reply, done) => {
  reply.header('x-request-id', request.id).headers(CAREFUL_HEADERS);
  done();
};

/** Refuses what is wrong with a request before anything is known about it. */
export const checkHead =
  (urlBytesMax: number): onRequestHookHandler =>
  (request, _reply, done) => {
    if (!hasOneHost(request.raw)) throw noHost();
    if (Buffer.byteLength(request.url) > urlBytesMax) {
      throw new Problem('uri_too_long', 'Shorten the address, or send the request by POST');
    }
    done();
  };
