import type { FastifyInstance, onRequestHookHandler } from 'fastify';

/*
 * Cross-origin requests of pages (the CORS protocol of the Fetch standard). @fastify/cors is not
 * used: its preflight is a route of its own, which comes after the credentials and has no access,
 * and a refusal from before it would have none of its headers, so that no page could read it.
 */

/** Headers of answers that a page may read beside those that the standard lists. */
const EXPOSED = [
  'content-disposition',
  'etag',
  'link',
  'ratelimit',
  'retry-after',
  'x-data-revision',
  'x-next-cursor',
  'x-next-seq',
  'x-request-id',
  'x-warnings',
  'x-warnings-count',
].join(', ');

/** Headers of requests that a page may send. */
const ALLOWED = [
  'accept',
  'authorization',
  'content-type',
  'if-none-match',
  'x-api-key',
  'x-request-id',
].join(', ');

/** Seconds for which a browser keeps the answer to a preflight. */
const PREFLIGHT_SECONDS = 600;

/** The origins of `CORS_ORIGINS`. */
export const originsOf = (setting: string): ReadonlySet<string> =>
  new Set(setting.split(',').filter((origin) => origin !== ''));

/** Names an allowed origin in every answer to it, refusals included. */
export const allowOrigin =
  (origins: ReadonlySet<string>): onRequestHookHandler =>
  ({ headers: { origin } }, reply, done) => {
    if (origin !== undefined && origins.has(origin)) {
      reply.header('access-control-allow-origin', origin);
      reply.header('access-control-expose-headers', EXPOSED);
    }
    done();
  };

/** Answers the preflight of an allowed origin; it has no credential and needs none. */
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

/** Says that answers depend on the origin: a cache gives no page the answer of another. */
export function varyByOrigin(app: FastifyInstance): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'origin' : `${vary}, origin`);
    done(null, payload);
  });
}
