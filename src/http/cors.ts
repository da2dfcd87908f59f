import type { IncomingHttpHeaders } from 'node:http';
import fastifyCors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

/*
 * CORS: pages of the origins in `CORS_ORIGINS` may read responses. @fastify/cors adds the headers
 * to responses of the hooks, and `corsHeaders` adds them to those that are sent without hooks.
 */

/** The origins of `CORS_ORIGINS`. */
export const originsOf = (setting: string): ReadonlySet<string> =>
  new Set(setting.split(',').filter((origin) => origin !== ''));

/** Request headers that a page may send. */
const ALLOWED = [
  'accept',
  'authorization',
  'content-type',
  'if-none-match',
  'x-api-key',
  'x-min-revision',
  'x-request-id',
];

/** Seconds for which a browser caches a preflight. */
const PREFLIGHT_SECONDS = 600;

/** Response headers that a page may read, in addition to the safelisted ones. */
const EXPOSED = [
  'content-disposition',
  'etag',
  'link',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'www-authenticate',
  'x-api-key-expires',
  'x-data-revision',
  'x-has-more',
  'x-min-revision-unknown',
  'x-next-cursor',
  'x-next-seq',
  'x-request-id',
  'x-warnings',
  'x-warnings-count',
];

/**
 * Gives the OPTIONS route of @fastify/cors its access rule: a preflight has no credential. Call it
 * before the hook that requires the access rule of each route.
 */
export function openPreflights(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.url === '*') route.config = { ...route.config, access: 'none' };
  });
}

/**
 * Adds the CORS headers to every response to an allowed origin, including refusals by later hooks,
 * and answers the preflights of these origins.
 */
export async function allowOrigins(
  app: FastifyInstance,
  origins: ReadonlySet<string>,
): Promise<void> {
  await app.register(fastifyCors, {
    origin: (origin, done) => done(null, origin !== undefined && origins.has(origin)),
    methods: ['GET', 'HEAD', 'POST'],
    allowedHeaders: ALLOWED,
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    // The strict check rejects other OPTIONS requests in plain text, without a problem.
    strictPreflight: false,
  });
}

/**
 * Adds Origin to Vary, so that caches store a response for each origin. Routes replace the Vary of
 * @fastify/cors by that of their format.
 */
export function varyByOrigin(app: FastifyInstance): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const vary = reply.getHeader('vary');
    // A refusal keeps the header that @fastify/cors has set.
    if (vary !== 'Origin') reply.header('vary', vary === undefined ? 'Origin' : `${vary}, Origin`);
    done(null, payload);
  });
}

const NO_HEADERS: Readonly<Record<string, string>> = {};
const VARYING: Readonly<Record<string, string>> = { vary: 'Origin' };
const EXPOSED_TEXT = EXPOSED.join(', ');

/**
 * The CORS headers of a response that is sent without hooks, equal to those of @fastify/cors.
 * Rejections under overload use it, because it costs one lookup.
 */
export function corsHeaders(
  origins: ReadonlySet<string>,
  { origin }: IncomingHttpHeaders,
): Readonly<Record<string, string>> {
  if (origins.size === 0) return NO_HEADERS;
  if (origin === undefined || !origins.has(origin)) return VARYING;
  return {
    ...VARYING,
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED_TEXT,
  };
}
