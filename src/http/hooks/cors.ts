import type { FastifyInstance, onRequestHookHandler } from 'fastify';

/*
 * Cross-origin requests (CORS protocol of the Fetch standard). @fastify/cors 11 is not used: it
 * adds a route for every OPTIONS request, which takes the place of the answer with the methods of
 * an address (RFC 9110, 9.3.7), and needs an access rule. Its `Vary` is replaced by that of the
 * format, so code of our own would be needed anyway.
 */

/** Response headers that a page may read, in addition to the safelisted ones. */
const EXPOSED = [
  'content-disposition',
  'etag',
  'link',
  'ratelimit',
  'retry-after',
  'x-data-revision',
  'x-min-revision-unknown',
  'x-next-cursor',
  'x-next-seq',
  'x-request-id',
  'x-warnings',
  'x-warnings-count',
].join(', ');

/** Request headers that a page may send. */
const ALLOWED = [
  'accept',
  'authorization',
  'content-type',
  'if-none-match',
  'x-api-key',
  'x-min-revision',
  'x-request-id',
].join(', ');

/** Seconds for which a browser caches a preflight. */
const PREFLIGHT_SECONDS = 600;

/** The origins of `CORS_ORIGINS`. */
export const originsOf = (setting: string): ReadonlySet<string> =>
  new Set(setting.split(',').filter((origin) => origin !== ''));

/** Hook: adds the CORS headers to every response to an allowed origin, including refusals. */
export const allowOrigin =
  (origins: ReadonlySet<string>): onRequestHookHandler =>
  ({ headers: { origin } }, reply, done) => {
    if (origin !== undefined && origins.has(origin)) {
      reply.header('access-control-allow-origin', origin);
      reply.header('access-control-expose-headers', EXPOSED);
    }
    done();
  };

/** Hook: answers the preflight of an allowed origin, which needs no credential. */
export const answerPreflight =
  (origins: ReadonlySet<string>): onRequestHookHandler =>
  ({ method, headers }, reply, done) => {
    const { origin, 'access-control-request-method': asked } = headers;
    const isPreflight = method === 'OPTIONS' && origin !== undefined && asked !== undefined;
    if (!isPreflight || !origins.has(origin)) {
      done();
      return;
    }
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': ALLOWED,
        'access-control-max-age': PREFLIGHT_SECONDS,
      })
      .send();
  };

/** Adds Origin to Vary, so that caches store a response for each origin. */
export function varyByOrigin(app: FastifyInstance): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'origin' : `${vary}, origin`);
    done(null, payload);
  });
}
