import type { FastifyInstance, FastifyReply } from 'fastify';
import { Health as HealthSchema, Live, ref } from '../../contract/schemas/components.ts';
import type { DatabaseHealth, Health } from '../../db/health.ts';
import { retryAfter } from '../../errors.ts';
import { healthOperation, liveOperation, readyOperation } from './operations.ts';

const newestOf = (all: Iterable<string>): string | null => {
  let newest: string | null = null;
  for (const each of all) if (newest === null || isLater(each, newest)) newest = each;
  return newest;
};

/** Compares instants without their `Z`, because their number of decimals varies. */
const isLater = (a: string, b: string): boolean => a.slice(0, -1) > b.slice(0, -1);

const bodyOf = (version: string, rateSource: string, seen: DatabaseHealth) => {
  const isWell = seen.database === 'ok' && seen.schema === 'ok';
  const { database, schema, rateSources } = seen;
  const latestPublishedAt = newestOf(seen.publishedAt.values());
  const isKnown = rateSources?.includes(rateSource);
  const rates = isKnown === undefined ? 'unknown' : isKnown ? 'ok' : 'unknown_source';
  // Without a published value or the source of rates, the service is degraded.
  const isWhole = latestPublishedAt !== null && rates === 'ok';
  const status = !isWell ? 'unavailable' : isWhole ? 'ok' : 'degraded';
  const checks = { database, schema, rates, data: { latestPublishedAt } };
  return { status, version, time: new Date().toISOString(), checks };
};

type HealthBody = ReturnType<typeof bodyOf>;

/** Readiness during a stop: running requests finish, but no new ones should be sent. */
const stopping = (body: HealthBody) => ({
  ...body,
  status: 'unavailable',
  checks: { ...body.checks, service: 'shutting_down' },
});

/**
 * Adds the health routes. They need no credential and run no query: they report the last background
 * check.
 * @param rateSource the configured source of exchange rates
 */
export function healthRoutes(
  app: FastifyInstance,
  version: string,
  rateSource: string,
  health: Health,
): void {
  const answer = async (reply: FastifyReply, isReadiness: boolean) => {
    const body = bodyOf(version, rateSource, await health.seen());
    const seen = isReadiness && app.isStopping ? stopping(body) : body;
    reply.header('cache-control', 'no-store');
    if (seen.status === 'unavailable') reply.code(503).header('retry-after', retryAfter());
    return seen;
  };
  const response = (description: string) => ({
    200: { description, ...ref(HealthSchema) },
    503: { description: 'The service cannot answer at the moment', ...ref(HealthSchema) },
  });
  for (const [url, operation] of [
    ['/health', healthOperation('health', 'Health of the service')],
    ['/v3/prices/health', healthOperation('pricesHealth', 'Health of the price endpoints')],
    ['/ready', readyOperation],
  ] as const) {
    app.get(url, {
      config: { access: 'none', isHealth: true },
      schema: { ...operation, response: response('The service can answer') },
      handler: (_request, reply) => answer(reply, url === '/ready'),
    });
  }
  app.get('/live', {
    config: { access: 'none', isHealth: true },
    schema: { ...liveOperation, response: { 200: { description: 'It runs', ...ref(Live) } } },
    handler: async (_request, reply) => {
      reply.header('cache-control', 'no-store');
      return { status: 'ok' };
    },
  });
}
