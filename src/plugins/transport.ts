import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../errors.ts';
import { closeGently } from './in-turn.ts';
import type { Refusals } from './refuse.ts';

interface TransportOptions {
  readonly urlBytesMax: number;
  readonly connectionsMax: number;
  readonly refusals: Refusals;
}

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

/** What took too long to arrive, and is answered before it was refused, is answered once. */
export function answerOnce(app: FastifyInstance, refusals: Refusals): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (refusals.isAnswered(request.raw.socket)) reply.header('connection', 'close');
    done(null, payload);
  });
}

/** Limits on what arrives before anything is known about it. */
export function transport(app: FastifyInstance, options: TransportOptions): void {
  const { server } = app;
  server.maxConnections = options.connectionsMax;
  server.on('connection', closeGently);
  // Node would answer 417 without a body; a server may pass over what it does not know.
  server.on('checkExpectation', (request, reply) => server.emit('request', request, reply));
  // Node would hang up without a word.
  server.on('connect', (_request, socket) => {
    const headers = { allow: '' };
    const problem = new Problem('method_not_allowed', 'The service is no proxy', { headers });
    options.refusals.refuseWith(problem, socket);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (!hasOneHost(request.raw)) throw noHost();
    if (Buffer.byteLength(request.url) > options.urlBytesMax) {
      throw new Problem('uri_too_long', 'Shorten the address, or send the request by POST');
    }
    done();
  });
}
