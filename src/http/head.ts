import { randomFillSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { onRequestHookHandler } from 'fastify';
import helmet from 'helmet';
import { v7 as uuidv7 } from 'uuid';
import { Problem } from '../errors.ts';
import { containsSecret } from '../std/secrets.ts';

const ACCEPTED = /^[\w-]{8,64}$/;

const ID_BYTES = 16;
/** Random bytes for the next ids: one large draw costs little more than a small one. */
const pool = new Uint8Array(256 * ID_BYTES);
let poolOffset = pool.length;

function randomBytes(): Uint8Array {
  if (poolOffset === pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  poolOffset += ID_BYTES;
  return pool.subarray(poolOffset - ID_BYTES, poolOffset);
}

/** The request id of the client if its form is valid, else a new UUIDv7. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  const isPlain = typeof sent === 'string' && ACCEPTED.test(sent) && !containsSecret(sent);
  return isPlain ? sent : uuidv7({ rng: randomBytes });
}

/**
 * The security headers of helmet, computed once because they are the same for each response. Pages
 * set their own content security policy. HSTS is the task of the proxy that terminates TLS.
 */
function securityHeaders(): Record<string, string> {
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

/** Headers of every response, including refusals. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = securityHeaders();

/** Number of times that a header was sent; Node's `headers` has one value only. */
function headerCount({ rawHeaders }: IncomingMessage, name: string): number {
  let times = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) times += 1;
  }
  return times;
}

/** RFC 9112, section 3.2: HTTP/1.1 requires one Host. Node checks only that one exists. */
export function hasOneHost(request: IncomingMessage): boolean {
  const hosts = headerCount(request, 'host');
  return hosts === 1 || (hosts === 0 && request.httpVersion === '1.0');
}

const noHost = (): Problem =>
  new Problem('malformed_request', 'Send one Host header', { headers: { connection: 'close' } });

/** Hook: adds the headers of every response. */
export const commonHeaders: onRequestHookHandler = (request, reply, done) => {
  reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
  done();
};

/** Hook: rejects an invalid Host header and a long address. */
export const checkHead =
  (urlBytesMax: number): onRequestHookHandler =>
  (request, _reply, done) => {
    if (!hasOneHost(request.raw)) throw noHost();
    if (Buffer.byteLength(request.url) > urlBytesMax) {
      throw new Problem('uri_too_long', 'Shorten the address, or send the request by POST');
    }
    done();
  };
