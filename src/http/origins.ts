import type { IncomingHttpHeaders } from 'node:http';

/** Response headers that a page may read, in addition to the safelisted ones. */
export const EXPOSED = [
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
];

/** The origins of `CORS_ORIGINS`. */
export const originsOf = (setting: string): ReadonlySet<string> =>
  new Set(setting.split(',').filter((origin) => origin !== ''));

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
