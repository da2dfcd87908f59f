import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import helmet from 'helmet';

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

/** What every answer has, refusals included. */
export const CAREFUL_HEADERS: Readonly<Record<string, string>> = carefulHeaders();

/** Puts them on every answer, refusals included: register it before everything that refuses. */
export function careful(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(CAREFUL_HEADERS);
    done();
  });
}
